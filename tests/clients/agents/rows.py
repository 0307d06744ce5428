"""The clients and agents that `scripts/agents` runs: `clients.toml` has a row for each, with its pinned packages."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from tests.support.paths import ROOT

__all__ = ["ROWS", "Api", "Client", "Played", "Rows", "Task", "load"]

ROWS: Final = Path(__file__).with_name("clients.toml")
Api: TypeAlias = Literal["chat", "responses", "websocket", "messages"]


class Task(Struct, frozen=True, forbid_unknown_fields=True):
    """What a client is to do. `before` and `after` are files of its folder, by name; `says` is part of what it prints.

    In all of them `${word}` is a word that is drawn for the run, so that nobody can know it beforehand. `together` is
    how many calls one answer must hold, `refused` the status that a request over each API must be refused with.
    """

    prompt: str
    says: str
    together: int = 1
    refused: int = 0
    before: Mapping[str, str] = {}
    after: Mapping[str, str] = {}


class Played(Struct, frozen=True, forbid_unknown_fields=True):
    """An answer of the scripted model server: a text, or a call."""

    text: str = ""
    call: str = ""
    arguments: Mapping[str, Any] = {}


class Client(Struct, frozen=True, forbid_unknown_fields=True):
    """A client or agent. Its texts may hold `${url}` (the gateway's, without `/v1`), `${model}`, `${prompt}`,
    `${word}`, `${home}`, `${work}`, `${folder}` (of both), `${modules}` (its node_modules), `${scripts}`, `${root}`
    and `${python}` (the project's).

    `pip` or `npm` are pinned requirements, of which the first is the client; `python` is the lowest version that it
    runs on. `absent` says why it cannot be installed. `page` is what to read about it, relative to docs/contributing.

    `files` are written into its home and `setup` is called before `run`, which does the task. `plays` is what the model
    says where the simulated one cannot do what the client needs, `dialect` what the simulated one writes in. `calls` is
    off where the client offers no tools.
    `refused` are answers that the client is made to go on from, in the words of the table.
    """

    name: str
    shown: str
    page: str
    task: str
    apis: Sequence[Api]
    run: Sequence[str] = ()
    absent: str = ""
    pip: Sequence[str] = ()
    npm: Sequence[str] = ()
    python: str = ""
    setup: Sequence[Sequence[str]] = ()
    files: Mapping[str, str] = {}
    env: Mapping[str, str] = {}
    plays: Sequence[Played] = ()
    dialect: str = "harmony"
    calls: bool = True
    refused: Sequence[str] = ()
    patience_s: float = 300.0

    @property
    def packages(self) -> Sequence[str]:
        """What is installed of it."""
        return self.pip or self.npm

    @property
    def version(self) -> str:
        """The pin of the client itself; empty where there is none."""
        first = next(iter(self.packages), "")
        return first.rpartition("==" if self.pip else "@")[2]


class Rows(Struct, frozen=True, forbid_unknown_fields=True):
    """The file. `env` is set for every client: what switches off telemetry, updates and colours."""

    env: Mapping[str, str]
    tasks: Mapping[str, Task]
    clients: Sequence[Client]


def load(path: Path = ROWS) -> Rows:
    """Read the rows; raises `msgspec.ValidationError` with the place of a slip."""
    return msgspec.toml.decode(path.read_bytes(), type=Rows)


SCRIPTS: Final = Path(__file__).with_name("scripts")
PLACES: Final[Mapping[str, str]] = {"scripts": str(SCRIPTS), "root": str(ROOT)}
