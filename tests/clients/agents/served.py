"""A gateway for one client, in a process of its own: `callwright serve` with a log of its requests, and with records.

It serves the simulated model, or goes to a scripted model server.
"""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from tests.clients.agents.rows import Played
from tests.support.servers import ModelServer
from tests.support.turns import wrote

__all__ = ["Asked", "Called", "Seen", "Turn", "gateway", "seen_in", "upstream"]

_LOG: Final = "gateway.log"
_RECORDS: Final = "turns"
_STORE: Final = "responses.db"
_SAYS_SO: Final = "export OPENAI_BASE_URL="
_ENDS_S: Final = 30.0


class Asked(Struct):
    """A line of the request log."""

    method: str
    path: str
    status: int
    error: str = ""


class Called(Struct):
    """A call that went out to the client."""

    name: str
    complete: bool = True


class Turn(Struct):
    """What is looked at of a recorded turn."""

    endpoint: str
    streamed: bool = False
    calls: list[Called] = []


class Seen(Struct):
    """What the gateway saw of a client."""

    asked: list[Asked]
    turns: list[Turn]


@contextlib.contextmanager
def upstream(name: str, dialect: str, plays: Sequence[Played]) -> Iterator[str]:
    """The settings of a model `name`: the simulated one in this dialect, or one that plays these answers."""
    if not plays:
        yield f'upstream = "simulated"\nmode = "raw"\ndialect = "{dialect}"'
        return
    server = ModelServer()
    try:
        server.plays(*(wrote("native", one.text, [(one.call, one.arguments)] if one.call else ()) for one in plays))
        server.names = (name,)
        yield f'upstream = "{server.url}"\nmode = "native"'
    finally:
        server.stop()


@contextlib.contextmanager
def gateway(folder: Path, model: str, settings: str) -> Iterator[str]:
    """A gateway that serves this model, until the end of the block: its address."""
    config = folder / "callwright.toml"
    config.write_text(
        f'[server]\nport = 0\nlog_format = "json"\n\n[record]\ndir = "{folder / _RECORDS}"\n\n'
        f'[store]\nurl = "sqlite:///{folder / _STORE}"\n\n'
        f'[[models]]\nname = "{model}"\ncontext_length = 131072\n{settings}\n'
    )
    command = (sys.executable, "-m", "callwright", "serve", "--config", str(config))
    with (folder / _LOG).open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, cwd=folder)
    assert process.stdout is not None
    try:
        address, line = "", ""
        while not line.strip().startswith(_SAYS_SO):
            line = process.stdout.readline().decode()
            assert line, f"the gateway did not start: {(folder / _LOG).read_text()}"
            address = line.split(" at ")[1].strip().removesuffix("/v1") if " at http" in line else address
        yield address
    finally:
        process.terminate()
        try:
            process.wait(_ENDS_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def seen_in(folder: Path) -> Seen:
    """What was seen by the gateway that has ended, by its log and its records."""
    lines = (json.loads(line) for line in (folder / _LOG).read_text().splitlines() if line.startswith("{"))
    asked = [msgspec.convert(line, Asked) for line in lines if line["message"] == "request"]
    files = sorted((folder / _RECORDS).glob("*.jsonl"))
    records = (line for file in files for line in file.read_bytes().splitlines())
    return Seen(asked, [msgspec.json.decode(line, type=Turn) for line in records])
