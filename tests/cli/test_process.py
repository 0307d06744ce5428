"""Commands as processes: streams that are closed or fail, signals, and numbers that are none."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from callwright import write
from callwright.cli import main
from callwright.cli.options import NumberRange
from tests.support.waiting import until

COMMAND = str(Path(sys.executable).with_name("callwright"))
ENVIRONMENT = {**os.environ, "PYTHONWARNINGS": "error"}
NOT_READ = "Error: Cannot read standard input: Bad file descriptor.\n"
NOT_WRITTEN = "Error: Cannot write the output: Bad file descriptor.\n"

# A command, how its streams stand, and what it tells: nothing else, and its status is not 0.
REFUSED: list[tuple[str, str, str]] = [
    ("parse --dialect hermes", "<&-", NOT_READ),
    ("render --dialect hermes", "<&-", NOT_READ),
    ("chat", "<&-", NOT_READ),
    ("bulk parse - - --dialect hermes", "<&-", NOT_READ),
    ("dialects", ">&-", NOT_WRITTEN),
    ("--help", ">&-", NOT_WRITTEN),
    ("parse --dialect hermes", "</dev/null >&-", NOT_WRITTEN),
    ("bulk parse rows.jsonl - --dialect hermes", ">&-", NOT_WRITTEN),
    ("--help", ">/dev/full", "Error: Cannot write the output: No space left on device.\n"),
    ("parse --help", ">/dev/full", "Error: Cannot write the output: No space left on device.\n"),
    *(
        (command, "", "Error: Cannot read /proc/self/mem: Input/output error.\n")
        for command in (
            "parse --dialect hermes /proc/self/mem",
            "parse --dialect hermes --tools /proc/self/mem /dev/null",
            "render --dialect hermes /proc/self/mem",
            "replay /proc/self/mem",
        )
    ),
]


def rows(path: Path, count: int) -> None:
    text = write([{"name": "fold_map", "arguments": {"sheet": "north " * 20}}], dialect="hermes")
    path.write_text(f"{json.dumps({'output': text})}\n" * count)


@pytest.mark.processes
@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="there is no /proc")
@pytest.mark.parametrize(("command", "streams", "told"), REFUSED)
def test_a_stream_that_cannot_be_used_is_told_in_a_line(tmp_path: Path, command: str, streams: str, told: str) -> None:
    rows(tmp_path / "rows.jsonl", 1)
    done = subprocess.run(
        f"exec {COMMAND} {command} {streams}",
        shell=True,
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.returncode in (1, 2)
    assert done.stderr.splitlines(keepends=True)[-1] == told
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.processes
def test_what_is_told_on_a_closed_stream_goes_nowhere() -> None:
    done = subprocess.run(
        f"exec {COMMAND} parse --dialect nope 2>&-", shell=True, env=ENVIRONMENT, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, b"")


# --- signals ---


def children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


@pytest.mark.processes
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="there is no /proc")
@pytest.mark.parametrize(
    ("sign", "status", "told"),
    [(signal.SIGINT, 1, "\nAborted!\n"), (signal.SIGTERM, 143, ""), (signal.SIGHUP, 129, "")],
)
def test_workers_that_start_say_nothing_of_a_signal(tmp_path: Path, sign: int, status: int, told: str) -> None:
    rows(tmp_path / "rows.jsonl", 2_000)
    process = subprocess.Popen(
        [COMMAND, *"bulk parse rows.jsonl - --dialect hermes --part-mb 0.02 --workers 2".split()],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    )
    until(lambda: process.poll() is not None or len(children(process.pid)) > 1)  # the first is no worker
    os.killpg(process.pid, sign)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (status, told)


# --- numbers ---


def options() -> Iterator[tuple[str, click.Parameter]]:
    context = click.Context(main)
    for name in main.list_commands(context):
        _, command, _ = main.resolve_command(context, [name])
        assert command is not None
        yield from ((name, parameter) for parameter in command.params)


def test_every_number_of_an_option_has_bounds_that_hold() -> None:
    numbers = [(name, one.type) for name, one in options() if isinstance(one.type, click.types.FloatParamType)]
    assert {name for name, _ in numbers} == {"bulk", "doctor", "eval"}
    assert all(isinstance(type_, NumberRange) for _, type_ in numbers)
    for _, type_ in numbers:
        for text in ("nan", "inf", "-inf"):
            with pytest.raises(click.BadParameter):
                type_(text, None, None)


@pytest.mark.parametrize(
    "command",
    ["eval --quick --timeout nan", "eval --quick --fail-under nan", "doctor http://a --timeout nan"],
)
def test_what_is_no_number_is_refused(command: str) -> None:
    result = CliRunner().invoke(main, command.split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert "'nan' is no number" in result.stderr
