"""`scripts/serve` for a reader who has one terminal: starts the gateway of a page, and comes back when it listens.

    python -m tests.support.page_gateway OPTIONS…

prints what `callwright serve OPTIONS` prints, and leaves it running in the place of the one that ran before. Its port
and the folder for its output are in the environment.
"""

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.support.waiting import until

__all__ = ["PORT_VARIABLE", "STATE_VARIABLE", "free_port", "is_started", "start", "stop"]

PORT_VARIABLE: Final = "PAGE_GATEWAY_PORT"
STATE_VARIABLE: Final = "PAGE_GATEWAY_STATE"
_HOST: Final = "127.0.0.1"
_PID: Final = "gateway.pid"
_PORTS: Final = range(20_000, 32_000)  # below those that systems give to connections


def free_port() -> int:
    """A port at which nothing listens, and which no connection of others is given until somebody does."""
    while True:
        port = random.choice(_PORTS)
        with contextlib.suppress(OSError), socket.create_server((_HOST, port)):
            return port


def start(port: int, state: Path, *options: str) -> int:
    """Start it and print what it says until it listens: 0, or the exit status of one that has ended."""
    stop(port, state)
    output, errors = state / "gateway.out", state / "gateway.err"
    command = [str(Path(sys.executable).parent / "callwright"), "serve", "--port", str(port), *options]
    with output.open("wb") as stdout, errors.open("wb") as stderr:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, start_new_session=True
        )
    (state / _PID).write_text(str(process.pid))
    until(lambda: process.poll() is not None or b"OPENAI_BASE_URL" in output.read_bytes())
    print(output.read_text(encoding="utf-8"), end="")
    print(errors.read_text(encoding="utf-8"), end="", file=sys.stderr)
    return process.poll() or 0


def is_started(state: Path) -> bool:
    """Whether a gateway was started there."""
    return (state / _PID).exists()


def stop(port: int, state: Path) -> None:
    """End the gateway that was started there, if any, and wait until its port is free."""
    pid = state / _PID
    if pid.exists():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(int(pid.read_text()), signal.SIGTERM)
        pid.unlink()
        until(lambda: not _is_open(port))


def _is_open(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((_HOST, port)):
        return True
    return False


if __name__ == "__main__":
    sys.exit(start(int(os.environ[PORT_VARIABLE]), Path(os.environ[STATE_VARIABLE]), *sys.argv[1:]))
