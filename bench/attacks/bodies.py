"""Large bodies of many requests at once, none of which comes to its end."""

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Final

from loading import HOST

from .attack import Attack, Cost, Target

__all__ = ["ATTACKS"]

_CONNECTIONS: Final = 64
_BODY: Final = 16_000_000
_AT_ONCE: Final = 8
_HELD_S: Final = 3.0
_PATIENCE_S: Final = 60.0


def _bodies(target: Target) -> Cost:
    """All of each body but its last byte; then hold the connections for a while."""
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {_BODY}\r\n\r\n".encode()
    piece = b" " * 1_000_000

    def send(connection: socket.socket) -> int:
        try:
            connection.sendall(head)
            for _ in range(_BODY // len(piece) - 1):
                connection.sendall(piece)
            connection.sendall(piece[:-1])
        except OSError:
            return 0
        return 1

    with ExitStack() as stack, ThreadPoolExecutor(_AT_ONCE) as pool:
        connections = [
            stack.enter_context(socket.create_connection((HOST, target.port), timeout=_PATIENCE_S))
            for _ in range(_CONNECTIONS)
        ]
        sent = sum(pool.map(send, connections))
        time.sleep(_HELD_S)
    return Cost(0, 0, 0, f"{sent} of {_CONNECTIONS} were read, {_BODY / 1e6:.0f} MB each")


ATTACKS: Final = [Attack("large bodies", f"{_CONNECTIONS} times {_BODY / 1e6:.0f} MB", _bodies, Cost(900, 500, 0, ""))]
