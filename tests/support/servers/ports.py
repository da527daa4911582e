"""Ports for servers that tests start."""

import socket

__all__ = ["free_ports"]


def free_ports(count: int) -> list[int]:
    """So many different ports on loopback that nobody listens on."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
