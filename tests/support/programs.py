"""The programs of `docs/contributing/agent-programs.md`: how each is started, and its result, in every framework.

Each step is a process of its own, in one folder. The model is that of `tests.support.program_model`.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

from tests.support.paths import ROOT
from tests.support.waiting import PATIENCE_S

__all__ = ["PROGRAMS", "Program", "Step", "environment", "follow", "held_stream", "model_server"]


class Step(Struct, frozen=True):
    """One start of a program: its arguments, what it prints, and which files are there afterwards."""

    arguments: tuple[str, ...]
    prints: str
    leaves: tuple[str, ...] = ()
    removes: tuple[str, ...] = ()


class Program(Struct, frozen=True):
    """A program: the steps of each of its courses, and the files that it finds."""

    name: str
    courses: tuple[tuple[Step, ...], ...]
    files: Mapping[str, str] = {}


_ASKED: Final = Step(("ask", "state.json"), "May I? delete_file {'path': 'notes.txt'}\n", leaves=("notes.txt",))
_TOLD: Final = Step(("chat.json", "My name is Anna."), "I see.\n")

PROGRAMS: Final = {
    one.name: one
    for one in (
        Program("two_tools", ((Step((), "4 degrees in Oslo; 17 degrees in Paris; 92.00 EUR\n"),),)),
        Program("typed_answer", ((Step((), "Anna 32.5 ['lamp', 'bulb']\n"),),)),
        Program(
            "streaming",
            (
                (
                    Step(
                        (),
                        "[find_orders Anna]\n"
                        "[find_orders: 17 and 18 of Anna]\n"
                        "Anna has two orders: 17 and 18 of Anna. Both come this week.\n",
                    ),
                ),
            ),
        ),
        Program(
            "approval",
            (
                (_ASKED, Step(("yes", "state.json"), "It is gone.\n", removes=("notes.txt",))),
                (_ASKED, Step(("no", "state.json"), "I left it.\n", leaves=("notes.txt",))),
            ),
            files={"notes.txt": "to be deleted\n"},
        ),
        Program(
            "team",
            (
                (
                    Step(
                        (),
                        "billing: Invoice 7 is over 30 EUR. It can be disputed for 14 days.\n60 tokens\n",
                    ),
                ),
            ),
        ),
        Program("mcp_tools", ((Step((), "Take the train from the airport.\n"),),)),
        Program("many_calls", ((Step((), "19 pages, without [7]\nat most 5 at once\n"),),)),
        Program(
            "long_chat",
            (
                (
                    _TOLD,
                    *(Step(("chat.json", f"This is thing {number}."), "I see.\n") for number in range(2, 6)),
                    Step(("chat.json", "What is my name?"), "Anna. You have said 6 things.\n"),
                ),
            ),
        ),
    )
}


def environment(url: str) -> dict[str, str]:
    """What the programs find in their environment: the model, and no wish to tell anybody else."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CALLWRIGHT_", "LANGSMITH_"))}
    return {
        **kept,
        "OPENAI_BASE_URL": url,
        "OPENAI_API_KEY": "none",
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "LANGSMITH_TRACING": "false",
    }


@contextmanager
def model_server(*options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The model of the programs, in a process of its own: its URL, and the process."""
    command = [sys.executable, "-m", "tests.support.program_model", *options]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            url = process.stdout.readline().strip()
            assert url.startswith("http://127.0.0.1:"), "the model server did not start"
            yield url, process
        finally:
            process.kill()


def follow(program: Program, command: Sequence[str], folder: Path, url: str) -> None:
    """Take each course of a program, started by a command. Raises AssertionError for what does not come of it."""
    for number, steps in enumerate(program.courses):
        course = folder / f"{program.name}-{number}"
        course.mkdir(parents=True)
        for name, text in program.files.items():
            (course / name).write_text(text, encoding="utf-8")
        for step in steps:
            done = subprocess.run(
                [*command, *step.arguments],
                cwd=course,
                env=environment(url),
                capture_output=True,
                text=True,
                encoding="utf-8",
                timeout=PATIENCE_S,
                check=False,
            )
            told = f"{program.name} {' '.join(step.arguments)}:\n{done.stdout}{done.stderr[-4000:]}"
            assert (done.returncode, done.stdout) == (0, step.prints), told
            assert all((course / name).exists() for name in step.leaves), told
            assert not any((course / name).exists() for name in step.removes), told


def held_stream(command: Sequence[str], folder: Path) -> str:
    """What a program prints whose model holds the rest of its text back until the first words were printed. One that
    prints nothing before the text is whole does not come to an end: then AssertionError.
    """
    with model_server("--hold") as (url, model):
        assert model.stdin is not None
        with subprocess.Popen(
            command, cwd=folder, env=environment(url), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            assert process.stdout is not None
            patience = threading.Timer(PATIENCE_S, process.kill)
            patience.start()
            try:
                printed = b""
                while b"Anna has" not in printed:
                    piece = os.read(process.stdout.fileno(), 4096)
                    assert piece, f"it ended with {printed!r}"
                    printed += piece
                assert b"week" not in printed
                model.stdin.write("\n")
                model.stdin.flush()
                return (printed + process.stdout.read()).decode()
            finally:
                patience.cancel()
                process.kill()
