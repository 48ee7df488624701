"""What a training's processes listen on while it trains, and whether Ray answers those who do not know its token."""

from __future__ import annotations

import ipaddress
import os
import subprocess
import time
from pathlib import Path

import psutil

# One method of each of Ray's servers, called without a token, with a wrong one, and with the right one.
CALLS = """
import grpc, os, sys
(method, port), token = sys.argv[1:], os.environ["TOKEN"]
for given in ("", "0" * 64, token):
    call = grpc.insecure_channel(f"127.0.0.1:{port}").unary_unary(method)
    try:
        call(b"", timeout=120, wait_for_ready=True, metadata=[("authorization", f"Bearer {given}")] if given else None)
        print("OK")
    except grpc.RpcError as error:
        print(error.code().name)
"""
METHODS = {"gcs_server": "/ray.rpc.NodeInfoGcsService/CheckAlive", "raylet": "/ray.rpc.NodeManagerService/GetNodeStats"}
SECONDS_BETWEEN_LOOKS = 1.0


class Watch:
    """Looks at the processes whose environment names a folder."""

    def __init__(self, mark: Path, python: Path | None = None) -> None:
        """Begin to watch; with the Python of a framework over Ray, Ray's servers are called, too."""
        self.mark, self.python, self.last = str(mark), python, 0.0
        self.processes: set[str] = set()
        self.sockets: dict[tuple[str, int], str] = {}  # by address and port, the command
        self.answers: dict[str, list[list[str]]] = {}  # of Ray's servers
        self.tokens: set[str] = set()  # Ray's, as its processes have it

    def look(self) -> None:
        """See what is there now, unless that was done just now."""
        if time.monotonic() - self.last < SECONDS_BETWEEN_LOOKS:
            return
        for process in psutil.process_iter():
            try:
                environment = process.environ()
                if process.pid == os.getpid() or self.mark not in str(environment):
                    continue
                words = process.cmdline()
                listening = [found.laddr for found in process.net_connections("inet") if found.status == "LISTEN"]
            except (psutil.Error, OSError):
                continue
            self.processes.add(" ".join(words))
            self.tokens |= {environment["RAY_AUTH_TOKEN"]} if "RAY_AUTH_TOKEN" in environment else set()
            server = Path(words[0]).name if words else ""
            for address in listening:
                if (address.ip, address.port) not in self.sockets:
                    self.sockets[address.ip, address.port] = " ".join(words)[:200]
                    if self.python and server in METHODS:
                        token = environment.get("RAY_AUTH_TOKEN", "1" * 64)
                        self._call(server, address.port, token)
        self.last = time.monotonic()

    def _call(self, server: str, port: int, token: str) -> None:
        assert self.python is not None
        words = [str(self.python), "-c", CALLS, METHODS[server], str(port)]
        clean = {name: value for name, value in os.environ.items() if self.mark not in value}
        done = subprocess.run(
            words, env=clean | {"TOKEN": token}, capture_output=True, text=True, check=True, timeout=200
        )
        self.answers.setdefault(server, []).append(done.stdout.split())

    def elsewhere(self) -> dict[tuple[str, int], str]:
        """Sockets that can be reached from another machine."""

        def is_loopback(text: str) -> bool:
            address = ipaddress.ip_address(text)
            mapped = getattr(address, "ipv4_mapped", None)
            return (mapped or address).is_loopback

        return {place: command for place, command in self.sockets.items() if not is_loopback(place[0])}
