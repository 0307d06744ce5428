"""The examples of the documentation: found in its pages, and run as a reader runs them.

A fenced block is one of these, by its language and by what stands on the lines before it:

    ```sh ```python             is run; a page's Python blocks are one program, as in one interpreter
    ```text ```json             directly behind such a block: what that prints. `…` stands for anything; of JSON
                                white space does not count
    <!-- file: NAME -->         is written to NAME
    ```toml                     otherwise a whole configuration, which loads
    <!-- not run: REASON -->    is not run, because a plain machine lacks something
    <!-- needs: NAME, … -->     is run where these packages can be imported, or commands are there
    <!-- waits: PATTERN -->     is run once there is such a file, which something writes in the background
    <!-- serve: OPTIONS -->     from here on, the gateway is one of `scripts/serve OPTIONS`
    ```                         without a language: a picture

A page is followed in an empty folder that looks like the clone: it has `.venv/bin`, `scripts/serve` and `examples`. A
simulated gateway answers at http://127.0.0.1:8642, once a page names it; really it has a port of its own.
"""

import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self, TypeAlias

from tests.support.page_gateway import PORT_VARIABLE, STATE_VARIABLE, free_port, is_started, stop
from tests.support.paths import ROOT
from tests.support.waiting import PATIENCE_S, until

__all__ = ["Block", "Reader", "blocks_of", "does_match", "is_there", "needed", "role_of"]

Role: TypeAlias = Literal["run", "output", "file", "configuration", "not run", "picture", "unexplained"]

_FENCE: Final = re.compile(r"^(?P<indent> *)(?P<fence>`{3,})(?P<language>[\w+-]*)\s*$")
_DIRECTIVE: Final = re.compile(r"^ *<!-- (?P<name>file|not run|needs|serve|waits): *(?P<value>.*?) *-->\s*$")
_WHITE_SPACE: Final = re.compile(r'("(?:[^"\\]|\\.)*")|\s+')
_PORT: Final = "8642"
_PORT_WORD: Final = re.compile(rf"(?<!\d){_PORT}(?!\d)")
_SERVE: Final = re.compile(r"(scripts/|callwright )serve\b")


@dataclass(frozen=True)
class Block:
    """A fenced block: where it begins, what stands in it, and what is said of it on the lines before it."""

    line: int
    language: str
    text: str
    said: dict[str, str] = field(default_factory=dict)
    follows: bool = False  # directly behind the block before it


def blocks_of(text: str) -> list[Block]:
    """The fenced blocks of a page, in its order."""
    found: list[Block] = []
    said: dict[str, str] = {}
    follows = False
    lines = iter(enumerate(text.splitlines(), 1))
    for number, line in lines:
        if fence := _FENCE.match(line):
            inside = _inside(lines, fence)
            found.append(Block(number, fence["language"], inside, said, follows and not said))
            said, follows = {}, True
        elif directive := _DIRECTIVE.match(line):
            said = {**said, directive["name"]: directive["value"]}
        elif line.strip():
            said, follows = {}, False
    return found


def _inside(lines: Iterator[tuple[int, str]], fence: re.Match[str]) -> str:
    inside: list[str] = []
    for _, line in lines:
        if line.strip() == fence["fence"]:
            return "".join(f"{each}\n" for each in inside)
        inside.append(line.removeprefix(fence["indent"]))
    raise AssertionError("a fenced block has no end")


def role_of(block: Block, before: Block | None) -> Role:
    """What a block is for; `before` is the one before it."""
    if "not run" in block.said:
        return "not run"
    if "file" in block.said:
        return "file"
    if block.language in ("sh", "bash", "python"):
        return "run"
    if block.language in ("text", "json"):
        shown = before and ("not run" in before.said or role_of(before, None) == "run")
        return "output" if block.follows and shown else "unexplained"
    if block.language == "toml":
        return "configuration"
    return "unexplained" if block.language else "picture"


def does_match(expected: str, printed: str, language: str = "text") -> bool:
    """Whether this was printed as the page shows it."""
    pattern = ".*?".join(re.escape(part) for part in _plain(expected, language).split("…"))
    return re.fullmatch(pattern, _plain(printed, language), re.DOTALL) is not None


def _plain(text: str, language: str) -> str:
    if language == "json":
        return _WHITE_SPACE.sub(lambda found: found[1] or "", text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


@dataclass(frozen=True)
class _Printed:
    output: str
    errors: str
    failed: bool


class Reader:
    """Who follows a page in an empty folder, block by block. A context, behind which no process is left."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "clone"
        self._state = folder / "state"
        self._port = free_port()
        self._python: _Python | None = None
        for made in (self._state / "home", self.folder / ".venv" / "bin", self.folder / "scripts"):
            made.mkdir(parents=True)
        self._environment = {
            "PATH": os.pathsep.join([str(self.folder / ".venv" / "bin"), _BIN, os.environ["PATH"]]),
            "CALLWRIGHT_UPSTREAM": "simulated",  # as scripts/serve sets it: no page may find a server of this machine
            "HOME": str(self._state / "home"),
            "LC_ALL": "C.UTF-8",
            PORT_VARIABLE: str(self._port),
            STATE_VARIABLE: str(self._state),
        }
        for name, text in _PROGRAMS.items():
            program = self.folder / name
            program.write_text(text, encoding="utf-8")
            program.chmod(0o755)
        (self.folder / "examples").symlink_to(ROOT / "examples")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._python:
            self._python.stop()
        stop(self._port, self._state)

    def follow(self, blocks: Sequence[Block]) -> None:
        """Do what these blocks say, in their order; an AssertionError names the line that does not hold."""
        before: Block | None = None
        printed: _Printed | None = None
        for block in blocks:
            role = role_of(block, before)
            if role == "output":
                self._compare(block, printed)
            else:
                printed = self._do(block, role)
            before = block

    def _do(self, block: Block, role: Role) -> _Printed | None:
        if role == "file":
            self._write(block.said["file"], block.text)
        if "serve" in block.said:
            self._succeed(block, self._shell(f"scripts/serve {block.said['serve']}"))
        if role != "run" or not all(map(is_there, needed(block))):
            return None
        if pattern := block.said.get("waits"):
            until(lambda: any(path.stat().st_size for path in self.folder.glob(pattern)))
        if _PORT_WORD.search(block.text) and not _SERVE.search(block.text) and not is_started(self._state):
            self._succeed(block, self._shell("scripts/serve"))
        run = self._run_python if block.language == "python" else self._shell
        return self._succeed(block, run(self._ported(block.text)))

    def _write(self, name: str, text: str) -> None:
        path = self.folder / name
        assert path.resolve().is_relative_to(self.folder), name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self._ported(text), encoding="utf-8")

    def _shell(self, code: str) -> _Printed:
        process = subprocess.Popen(
            ["bash", "-e", "-c", code],
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            start_new_session=True,
        )
        try:
            output, errors = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, errors = process.communicate()
            errors += f"It was not done in {PATIENCE_S:g} seconds."
        return _Printed(self._as_shown(output), self._as_shown(errors), process.returncode != 0)

    def _run_python(self, code: str) -> _Printed:
        self._python = self._python or _Python(self.folder, self._environment, self._state / "python.err")
        done = self._python.run(code)
        return _Printed(self._as_shown(done.output), self._as_shown(done.errors), done.failed)

    def _ported(self, text: str) -> str:
        return _PORT_WORD.sub(str(self._port), text)

    def _as_shown(self, text: str) -> str:
        return text.replace(str(self._port), _PORT)

    def _succeed(self, block: Block, done: _Printed) -> _Printed:
        assert not done.failed, f"line {block.line} fails:\n{block.text}\n{done.output}\n{done.errors}"
        return done

    def _compare(self, block: Block, printed: _Printed | None) -> None:
        if printed is None:  # it was not run
            return
        seen = (printed.output, printed.output + printed.errors)
        said = f"line {block.line} shows:\n{block.text}\nwhat is printed:\n{seen[1]}"
        assert any(does_match(block.text, each, block.language) for each in seen), said


class _Python:
    """One interpreter, which is given block after block."""

    def __init__(self, folder: Path, environment: dict[str, str], errors: Path) -> None:
        self._errors = errors
        with errors.open("wb") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _INTERPRETER],
                cwd=folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                encoding="utf-8",
            )

    def run(self, code: str) -> _Printed:
        """What the block prints, and whether it raised something."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        known = self._errors.stat().st_size
        patience = threading.Timer(PATIENCE_S, self._process.kill)
        patience.start()
        self._process.stdin.write(json.dumps(code) + "\n")
        self._process.stdin.flush()
        output = ""
        for line in self._process.stdout:
            output += line
            if line.endswith(("\0ok\n", "\0failed\n")):
                break
        patience.cancel()
        errors = self._errors.read_bytes()[known:].decode()
        text, _, ended = output.rpartition("\0")
        return _Printed(text, errors, ended != "ok\n")

    def stop(self) -> None:
        self._process.kill()
        self._process.communicate()


def needed(block: Block) -> list[str]:
    """The packages and commands without which a block is not run."""
    return re.findall(r"[^\s,]+", block.said.get("needs", ""))


def is_there(name: str) -> bool:
    spec = importlib.util.find_spec(name)
    is_package = spec is not None and spec.origin is not None  # a folder of that name on the path is none
    return is_package or shutil.which(name) is not None


_BIN: Final = str(Path(sys.executable).parent)
_PROGRAMS: Final = {
    "scripts/serve": f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m tests.support.page_gateway "$@"\n',
    "scripts/tiny_gguf": f'#!/bin/sh\nexec "{sys.executable}" "{ROOT}/tests/support/tiny_gguf.py" "$@"\n',
    ".venv/bin/activate": "",  # it is on PATH already
    ".venv/bin/python": f'#!/bin/sh\nexec "{sys.executable}" "$@"\n',
    ".venv/bin/callwright": f"""#!/bin/sh
if [ "$1" = serve ]; then
    shift
    PYTHONPATH="{ROOT}" exec "{sys.executable}" -m tests.support.page_gateway "$@"
fi
exec "{_BIN}/callwright" "$@"
""",
}
_INTERPRETER: Final = """
import json, sys, traceback, types
main = sys.modules["__main__"] = types.ModuleType("__main__")
for line in sys.stdin:
    try:
        exec(compile(json.loads(line), "<block>", "exec"), vars(main))
        ended = "ok"
    except BaseException:
        traceback.print_exc()
        ended = "failed"
    sys.stderr.flush()
    print(end="\\0" + ended + "\\n", flush=True)
"""
