"""Keeps the processes of a training, and vLLM's, on the loopback address when all of them are on one node.

Most packages are told by environment variables. Two have no setting for it, and are changed in every Python process, by
python_startup/sitecustomize.py: torch's TCPStore, which anybody who reaches it may write to, listens on all interfaces,
and Ray starts a dashboard where a trainer calls `ray.init()` without arguments. On several nodes nothing is changed.

Each of these processes imports this module when it starts, so it imports little itself.
"""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from frameworks import import_hooks
from system.errors import ROOT

LOOPBACK = "127.0.0.1"
STARTUP = Path(__file__).with_name("python_startup")
STORE_ARGUMENTS = (
    "host_name", "port", "world_size", "is_master", "timeout", "wait_for_workers", "multi_tenant", "master_listen_fd",
    "use_libuv",
)  # fmt: skip


def ray_token() -> dict[str, str]:
    """Environment variables of a Ray that runs nothing for those who do not know its token, which is in no file."""
    import secrets

    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


def python_path(*folders: Path) -> str:
    """PYTHONPATH with these folders before what it holds."""
    return os.pathsep.join([*map(str, folders), *filter(None, [os.environ.get("PYTHONPATH")])])


def environment(temporary: Path) -> dict[str, str]:
    """Environment variables of processes that are all on this node.

    Args:
        temporary: folder of theirs in place of /tmp; below it vLLM has sockets.

    Raises:
        UserError: the user's own folder is not safe; see system/private_folder.py.
    """
    import socket

    from system import private_folder

    # What torch compiles and loads again; as released, below a name in /tmp that others can guess.
    compiled = os.environ.get("TORCHINDUCTOR_CACHE_DIR") or private_folder.make(
        private_folder.of_user(on_disk=True) / "torchinductor"
    )
    interface = next((name for _, name in socket.if_nameindex() if name.startswith("lo")), "lo")
    return {
        "PYTHONPATH": python_path(STARTUP, ROOT),
        "TMPDIR": str(temporary),
        "TORCHINDUCTOR_CACHE_DIR": str(compiled),
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # Ray's switch for a cluster of this node alone, on its loopback
        "VLLM_HOST_IP": LOOPBACK,
        "GLOO_SOCKET_IFNAME": interface,
        "NCCL_SOCKET_IFNAME": interface,
    }


def keep_store_on_loopback(module: ModuleType) -> None:
    """Have a TCPStore that serves at the loopback address listen there, not on all interfaces."""
    import socket

    original: Any = module.TCPStore

    class TCPStore(original):
        def __init__(self, *values: Any, **named: Any) -> None:
            named |= dict(zip(STORE_ARGUMENTS, values, strict=False))
            local = named["host_name"] in (LOOPBACK, "localhost")
            if local and named.get("is_master") and named.get("master_listen_fd") is None:
                listener = socket.socket()
                try:
                    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    listener.bind((LOOPBACK, named.get("port", 0)))
                    listener.listen()
                except OSError:  # this process serves there already, and the store knows; or it will say that it cannot
                    listener.close()
                else:
                    # libuv's server does not take a socket over
                    named |= {"port": listener.getsockname()[1], "use_libuv": False}
                    named["master_listen_fd"] = listener.detach()
            super().__init__(**named)

    for name, part in list(sys.modules.items()):  # those that have imported it by now
        if name.startswith(module.__name__) and getattr(part, "TCPStore", None) is original:
            part.TCPStore = TCPStore  # type: ignore[attr-defined]


def without_dashboard(module: ModuleType) -> None:
    """Have Ray start without its dashboard unless a caller wants it."""
    module.init = functools.partial(module.init, include_dashboard=False)  # type: ignore[attr-defined]


def keep_to_loopback() -> None:
    """Change torch and Ray in this process."""
    import_hooks.after_import({"torch.distributed": keep_store_on_loopback, "ray": without_dashboard})
