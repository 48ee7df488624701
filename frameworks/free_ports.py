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


def bind_outside(bind: Any, new: Any, address: tuple[Any, ...]) -> None:
    """Bind a TCP socket to a free port below those of connections; to any free one where these begin too low.

    Args:
        bind: of the class of sockets, as released.
        new: the socket.
        address: of which the port is 0.
    """
    try:
        ports = range(FIRST, int(CONNECTIONS.read_text().split()[0]))
    except (OSError, ValueError, IndexError):  # no Linux
        ports = range(0)
    for _ in range(TRIES if ports else 0):
        port = ports[int.from_bytes(os.urandom(4), "big") % len(ports)]
        with suppress(OSError):  # somebody has it, or the last try says what else is wrong
            bind(new, (address[0], port, *address[2:]))
            return
    bind(new, address)


def choose_outside(module: ModuleType) -> None:
    """Have TCP sockets that are bound to port 0 take such a port.

    Args:
        module: socket.
    """
    bind = module.socket.bind

    def bind_as_ever_or_outside(self: Any, address: Any) -> None:
        if self.type == module.SOCK_STREAM and isinstance(address, tuple) and address[1:2] == (0,):
            bind_outside(bind, self, address)
        else:
            bind(self, address)

    module.socket.bind = bind_as_ever_or_outside


def install() -> None:
    """Do so in this process."""
    import_hooks.after_import({"socket": choose_outside})
