"""Ports that nobody gets by chance."""

from __future__ import annotations

import errno
import socket
from pathlib import Path

import pytest

from frameworks import free_ports
from tests import needs

pytestmark = needs.linux


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, until the test ends; without it a class has the method of its base."""
    monkeypatch.setattr(socket.socket, "bind", socket.socket.bind)
    free_ports.choose_outside(socket)


@pytest.mark.usefixtures("changed")
@pytest.mark.parametrize(
    "family, host", [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET, ""), (socket.AF_INET6, "::1")]
)
def test_a_free_port_is_none_of_those_of_connections(family: socket.AddressFamily, host: str) -> None:
    if family == socket.AF_INET6 and not socket.has_dualstack_ipv6():
        pytest.skip("needs IPv6")
    first_of_connections = int(free_ports.CONNECTIONS.read_text().split()[0])
    chosen = set()
    for _ in range(20):
        with socket.socket(family) as server:
            server.bind((host, 0))
            server.listen()
            chosen.add(server.getsockname()[1])
    assert len(chosen) > 10 and all(free_ports.FIRST <= port < first_of_connections for port in chosen)


@pytest.mark.usefixtures("changed")
def test_other_sockets_are_bound_as_ever(tmp_path: Path) -> None:
    first_of_connections = int(free_ports.CONNECTIONS.read_text().split()[0])
    with socket.socket() as server, socket.socket() as second, socket.socket(type=socket.SOCK_DGRAM) as datagrams:
        server.bind(("127.0.0.1", 0))
        server.listen()
        with pytest.raises(OSError) as taken:
            second.bind(server.getsockname())
        assert taken.value.errno == errno.EADDRINUSE
        datagrams.bind(("127.0.0.1", 0))
        assert datagrams.getsockname()[1] >= first_of_connections
        with pytest.raises(OSError), socket.socket() as nowhere:
            nowhere.bind(("192.0.2.1", 0))
    with socket.socket(socket.AF_UNIX) as local:
        local.bind(str(tmp_path / "s"))


def test_where_connections_may_have_all_ports_the_kernel_chooses(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for content in ("1024\t65535\n", "", "?"):
        (tmp_path / "range").write_text(content)
        monkeypatch.setattr(free_ports, "CONNECTIONS", tmp_path / "range")
        monkeypatch.setattr(socket.socket, "bind", socket.socket.bind)
        free_ports.choose_outside(socket)
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            assert server.getsockname()[1]
