"""Has the processes of a training choose ports that the kernel gives to nobody.

Trainers find a free port by binding to port 0, close it, and listen there seconds later. The kernel takes such a port
from those of outgoing connections, so that on a busy machine a connection of any program may have it by then.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from frameworks import import_hooks

FIRST = 20_000  # those of Ray's workers are below
TRIES = 100
CONNECTIONS = Path("/proc/sys/net/ipv4/ip_local_port_range")  # the first and the last port of outgoing connections


def choose_outside(module: ModuleType) -> None:
    """Have TCP sockets that are bound to port 0 take one below the ports of connections, where there are any.

    Args:
        module: socket.
    """
    try:
        ports = range(FIRST, int(CONNECTIONS.read_text().split()[0]))
    except (OSError, ValueError, IndexError):  # no Linux
        return
    bind = module.socket.bind

    def bind_outside(self: Any, address: Any) -> Any:
        if self.type == module.SOCK_STREAM and isinstance(address, tuple) and address[1:2] == (0,):
            for _ in range(TRIES if ports else 0):
                port = ports[int.from_bytes(os.urandom(4), "big") % len(ports)]
                with suppress(OSError):  # somebody has it; or the last try says what else is wrong
                    return bind(self, (address[0], port, *address[2:]))
        return bind(self, address)

    module.socket.bind = bind_outside


def install() -> None:
    """Do so in this process."""
    import_hooks.after_import({"socket": choose_outside})
