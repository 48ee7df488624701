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
for tried in ("", "0" * 64, token):
    call = grpc.insecure_channel(f"127.0.0.1:{port}").unary_unary(method)
    try:
        call(b"", timeout=600, metadata=[("authorization", f"Bearer {tried}")] if tried else None)
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
        self.calls: dict[tuple[str, int], subprocess.Popen[str]] = {}  # of Ray's servers
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
                command = process.cmdline()
                listening = [one.laddr for one in process.net_connections("inet") if one.status == "LISTEN"]
            except (psutil.Error, OSError):
                continue
            self.processes.add(" ".join(command))
            self.tokens |= {environment["RAY_AUTH_TOKEN"]} if "RAY_AUTH_TOKEN" in environment else set()
            server = Path(command[0]).name if command else ""
            for address in listening:
                address_and_port = (address.ip, address.port)
                if address_and_port not in self.sockets:
                    self.sockets[address_and_port] = " ".join(command)[:200]
                elif self.python and server in METHODS and address_and_port not in self.calls:  # seen twice: it stays
                    self.calls[address_and_port] = self._call(
                        server, address.port, environment.get("RAY_AUTH_TOKEN", "1" * 64)
                    )
        self.last = time.monotonic()

    def _call(self, server: str, port: int, token: str) -> subprocess.Popen[str]:
        command = [str(self.python), "-c", CALLS, METHODS[server], str(port)]
        clean = {name: value for name, value in os.environ.items() if self.mark not in value}
        return subprocess.Popen(command, env=clean | {"TOKEN": token}, stdout=subprocess.PIPE, text=True)

    def saw(self, text: str) -> bool:
        """Whether a process was seen whose command has this text."""
        return any(text in command for command in self.processes)

    def answers(self) -> list[list[str]]:
        """What each of Ray's servers said to a call without a token, with a wrong one, and with the right one."""
        return [call.communicate()[0].split() for call in self.calls.values()]

    def elsewhere(self) -> dict[tuple[str, int], str]:
        """Sockets that can be reached from another machine."""

        def is_loopback(text: str) -> bool:
            address = ipaddress.ip_address(text)
            mapped = getattr(address, "ipv4_mapped", None)
            return (mapped or address).is_loopback

        return {socket: command for socket, command in self.sockets.items() if not is_loopback(socket[0])}

    def check_ray(self) -> None:
        """Assert that Ray listens on loopback alone, and answers those who know its token, which no process shows."""
        assert self.sockets and not self.elsewhere()
        # The object manager, which raylet has on a port of its own, does not know the method.
        answers, asks = self.answers(), ["UNAUTHENTICATED", "UNAUTHENTICATED", "OK"]
        assert answers.count(asks) == 2 and all("OK" not in answer[:2] for answer in answers), answers
        (token,) = self.tokens
        assert len(token) == 64 and not self.saw(token)  # everybody can see command lines
