"""Lets one client do its task before a gateway of its own, in a folder and a home of its own, and judges what happened.

    python -m tests.clients.agents.one NAME PLACE FOLDER

`PLACE` is JSON: where the client is installed. What became of it is printed as JSON. Where the network is this
process' own, its loopback device is switched on first.
"""

import contextlib
import fcntl
import os
import re
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any, Final, TypeVar

import msgspec

from tests.clients.agents.install import Place
from tests.clients.agents.judge import Outcome, Ran, judged
from tests.clients.agents.rows import PLACES, Client, Rows, load
from tests.clients.agents.served import gateway, seen_in, upstream

__all__ = ["MODEL", "run_client"]

T = TypeVar("T")
MODEL: Final = "callwright-model"
_COLOURS: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")  # and other codes for terminals
_NOT_FOUND: Final = 127  # as a shell says it
_GET_FLAGS: Final = 0x8913  # SIOCGIFFLAGS and SIOCSIFFLAGS of Linux
_SET_FLAGS: Final = 0x8914
_UP: Final = 0x1
_REQUEST: Final = "16sh14x"  # struct ifreq: a name, and flags


def main() -> None:
    """Run the client that the command line names."""
    name, place, folder = sys.argv[1:]
    if sys.platform == "linux":
        switch_loopback_on()
    rows = load()
    client = next(one for one in rows.clients if one.name == name)
    outcome = run_client(rows, client, msgspec.json.decode(place, type=Place), Path(folder))
    print(msgspec.json.encode(outcome).decode())


def switch_loopback_on() -> None:
    """Of a network that was just made; elsewhere it is on."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        asked = fcntl.ioctl(any_socket, _GET_FLAGS, struct.pack(_REQUEST, b"lo", 0))
        flags: int = struct.unpack(_REQUEST, asked)[1]
        if not flags & _UP:
            fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack(_REQUEST, b"lo", flags | _UP))


def run_client(rows: Rows, client: Client, place: Place, folder: Path) -> Outcome:
    """Let the client do its task; `folder` is empty, and holds all that it leaves behind."""
    home, work = folder / "home", folder / "work"
    home.mkdir()
    work.mkdir()
    word = f"w{secrets.token_hex(3)}"
    given = {**PLACES, "word": word, "model": MODEL, "home": str(home), "work": str(work), "folder": str(folder)}
    given |= {"python": sys.executable, "modules": place.modules}
    task = _filled(rows.tasks[client.task], given)
    given["prompt"] = task.prompt
    _write(work, task.before)
    with (
        upstream(MODEL, client.dialect, _filled(client, given).plays) as settings,
        gateway(folder, MODEL, settings) as url,
    ):
        ready = _filled(client, {**given, "url": url})
        _write(home, ready.files)
        ran = _run(ready, {**_environment(place, home), **rows.env, **ready.env}, folder)
    return judged(client, task, ran, seen_in(folder), work)


def _filled(told: T, given: Mapping[str, str]) -> T:
    """The same with its placeholders filled in, as far as they are given."""

    def fill(value: Any) -> Any:
        match value:
            case str():
                return Template(value).safe_substitute(given)
            case list() | tuple():
                return [fill(one) for one in value]
            case dict():
                return {fill(key): fill(one) for key, one in value.items()}
        return value

    return msgspec.convert(fill(msgspec.to_builtins(told)), type(told))


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _environment(place: Place, home: Path) -> dict[str, str]:
    """What a program finds that is alone in a new home. Nothing of the caller's is handed on but where programs are."""
    own = {"config": ".config", "data": ".local/share", "state": ".local/state", "cache": ".cache"}
    xdg = {f"XDG_{name.upper()}_HOME": str(home / path) for name, path in own.items()}
    path = os.pathsep.join((place.programs, os.environ.get("PATH", os.defpath)))
    return {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8", "NO_PROXY": "127.0.0.1,localhost", **xdg}


def _run(client: Client, environment: Mapping[str, str], folder: Path) -> Ran:
    """Call what prepares the client, then the client; what fails first is the last that is called."""
    for command in client.setup:
        ran = _call(command, environment, folder, client.patience_s)
        if ran.status != 0:
            return ran
    return _call(client.run, environment, folder, client.patience_s)


def _call(command: Sequence[str], environment: Mapping[str, str], folder: Path, patience_s: float) -> Ran:
    """Call a program in the work folder, and end what it leaves behind in its process group."""
    program = shutil.which(command[0], path=environment["PATH"]) or command[0]
    output, errors = folder / "output.txt", folder / "errors.txt"
    with output.open("wb") as out, errors.open("wb") as err:
        try:
            process = subprocess.Popen(
                [program, *command[1:]],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=folder / "work",
                env=dict(environment),
                start_new_session=True,
            )
        except OSError as error:
            return Ran(_NOT_FOUND, "", f"{command[0]}: {error.strerror}")
        try:
            status: int | None = process.wait(patience_s)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return Ran(status, *(_COLOURS.sub("", path.read_text(errors="replace")) for path in (output, errors)))


if __name__ == "__main__":
    main()
