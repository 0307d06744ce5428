"""Another client while an attack runs, in a process of its own so that nobody but the gateway keeps it waiting.

    python -m bench.attacks.watch PORT

Sends a small request every 20 ms, each on a connection of its own, until its standard input is closed. Then it prints
how many there were, how many failed, and the longest and the second longest wait in ms.
"""

import json
import socket
import sys
import threading
import time
from contextlib import suppress
from typing import Final

from loading import HOST

__all__ = ["KEY", "SHA256"]

# The other client's key, where an attack has keys.
KEY: Final = "cw-watcher"
SHA256: Final = "5999e633b38b83d39c37cda804d36653972742a6154f33a8e71c3d4913e18fe5"
_EVERY_S: Final = 0.02
_PATIENCE_S: Final = 30.0
# A model that nobody has is answered without a model's server, but wants a place as any other request.
_REQUEST: Final = (
    f"GET /v1/models/watched HTTP/1.1\r\nhost: {HOST}\r\nauthorization: Bearer {KEY}\r\nconnection: close\r\n\r\n"
).encode()
_ANSWERED: Final = (b"200", b"404")


def _asks(port: int) -> bool:
    with suppress(OSError), socket.create_connection((HOST, port), timeout=_PATIENCE_S) as connection:
        connection.sendall(_REQUEST)
        came = b""
        while piece := connection.recv(65_536):
            came += piece
        return came[9:12] in _ANSWERED
    return False


def main() -> None:
    """Ask until told to stop."""
    port, over = int(sys.argv[1]), threading.Event()

    def wait() -> None:
        sys.stdin.read()
        over.set()

    threading.Thread(target=wait, daemon=True).start()
    waits_ms: list[float] = [0.0, 0.0]
    failed = 0
    print("watching", flush=True)
    while not over.wait(_EVERY_S):
        began = time.perf_counter()
        failed += not _asks(port)
        waits_ms.append(1_000 * (time.perf_counter() - began))
    first, second = sorted(waits_ms, reverse=True)[:2]
    print(json.dumps({"asked": len(waits_ms) - 2, "failed": failed, "longest_ms": first, "second_ms": second}))


if __name__ == "__main__":
    main()
