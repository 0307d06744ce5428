"""Gateways in processes of their own, to which signals can be sent."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.servers import HOST

CALLWRIGHT = str(Path(sys.executable).parent / "callwright")


_BOUNDED = "from callwright.settings import bounds; vars(bounds).update({}); from callwright.cli import main; main()"


@contextmanager
def gateway(*options: str, port: int = 0, **bounds: float) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """`callwright serve` with these options: its address, once it listens, and its process. `bounds` are constants of
    `callwright.settings.bounds`.
    """
    command = [sys.executable, "-c", _BOUNDED.format(bounds)] if bounds else [CALLWRIGHT]
    with served(*command, "serve", "--port", str(port), *options) as started:
        yield started


@contextmanager
def served(
    *command: str,
    env: Mapping[str, str] | None = None,
    until_said: bytes = b"OPENAI_BASE_URL",
    stdin: int | None = None,
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A command that starts a gateway: its address, once it listens and has said this, and its process."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, stdin=stdin)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        address, line = "", b""
        while not address or until_said not in line:
            line = process.stdout.readline()
            assert process.poll() is None, process.stderr.read().decode()
            if b" at http" in line:
                address = line.split(b" at ")[1].decode().strip().removesuffix("/v1")
        assert address.startswith(f"http://{HOST}:")
        yield address, process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
