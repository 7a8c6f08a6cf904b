"""Ports stay reserved while no server listens on them."""

from __future__ import annotations

import socket
import sys

import pytest

from kinform.testing.controlplane._ports import LOOPBACK, Ports


def test_no_port_is_given_twice() -> None:
    ports = Ports()
    taken = [ports.take() for _ in range(50)]
    ports.close()
    assert len(set(taken)) == 50


@pytest.mark.skipif(sys.platform != "linux", reason="ports are held on Linux only")
def test_a_held_port_can_be_shared_by_a_server_and_is_refused_to_others() -> None:
    ports = Ports()
    port = ports.take()
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind((LOOPBACK, port))
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        server.bind((LOOPBACK, port))
        server.listen()
        with socket.create_connection((LOOPBACK, port)), server.accept()[0]:
            pass
    ports.close()


@pytest.mark.skipif(sys.platform != "linux", reason="ports are held on Linux only")
def test_a_held_port_refuses_connections_while_no_server_listens() -> None:
    ports = Ports()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((LOOPBACK, ports.take()))
    ports.close()


def test_closing_gives_the_ports_back() -> None:
    ports = Ports()
    port = ports.take()
    ports.close()
    ports.close()
    with socket.socket() as other:
        other.bind((LOOPBACK, port))
