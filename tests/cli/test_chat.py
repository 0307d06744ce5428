"""`callwright chat`: through a pipe as scripts use it, and in a terminal as people do."""

import json
import os
import pty
import re
import select
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import pytest
from click.testing import CliRunner, Result

from callwright.cli import main
from callwright.cli.chat.screen import plain
from tests.support import scripted_agents as running
from tests.support.servers import ModelServer, said

TOOLS = '''
from typing import Annotated, Literal
import callwright
from callwright import Context, Hidden

HIDDEN = {"sender": "me@example.com"}


@callwright.tool
def get_weather(city: str, unit: Literal["c", "f"] = "c") -> dict[str, object]:
    """Weather of a city."""
    return {"city": city, "degrees": 4}


@callwright.tool(approve=True)
def send_email(email: str, subject: str, sender: Annotated[str, Hidden]) -> str:
    """Send an email."""
    return f"{sender} to {email}: {subject}"


@callwright.tool
def list_stars(number: int = 8) -> str:
    """List stars."""
    return "\\n".join(f"star {n}\\x1b[31m" for n in range(number))


@callwright.tool
def wait_forever(context: Context) -> str:
    """Wait forever."""
    context.progress("waiting")
    __import__("threading").Event().wait()
    return "never"


@callwright.tool
def break_glass() -> str:
    """Break glass."""
    raise OSError("out of glass")
'''
EMAIL = 'Send an email to anna@example.com with the subject "Hello"'
SENT = "me@example.com to anna@example.com: Hello"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with tools."""
    path = tmp_path / "my_tools.py"
    path.write_text(TOOLS)
    return path


def chat(*arguments: object, given: str = "") -> Result:
    return CliRunner().invoke(main, ["chat", *map(str, arguments)], input=given)


def talk(*arguments: object, given: str) -> list[str]:
    """The lines that a chat prints."""
    result = chat(*arguments, given=given)
    assert result.exit_code == 0, (result.output, result.exception)
    assert not result.stderr
    return result.stdout.splitlines()


def messages(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# --- through a pipe ---


@pytest.mark.parametrize("upstream", [(), ("--upstream", "simulated")], ids=["", "named"])
def test_the_simulated_model_answers_if_no_other_is_named(upstream: tuple[str, ...]) -> None:
    assert talk(*upstream, given="hello\n") == ["You said: hello"]


def test_each_line_is_a_turn_of_one_conversation(file: Path, tmp_path: Path) -> None:
    saved = tmp_path / "talk.jsonl"
    lines = talk(
        "--tools", file, "--save", saved, "--system", "Be brief.", given="What is the weather in Oslo?\n\nthank you\n"
    )
    assert lines == [
        '-> get_weather {"city":"Oslo"}',
        '<- {"city":"Oslo","degrees":4}',
        'get_weather says: {"city":"Oslo","degrees":4}.',
        "You said: thank you",
    ]
    kept = messages(saved)
    assert [one["role"] for one in kept] == ["system", "user", "assistant", "tool", "assistant", "user", "assistant"]
    running.check_history(kept)


@pytest.mark.processes
def test_as_a_command_of_its_own_it_writes_plain_text_only(file: Path) -> None:
    done = subprocess.run(
        [Path(sys.executable).parent / "callwright", "chat", "--tools", str(file)],
        input="List stars\nBreak glass",
        env={**os.environ, "PYTHONWARNINGS": "error"},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", done.stdout)
    assert "<- star 0\N{REPLACEMENT CHARACTER}[31m\n" in done.stdout
    assert "   … 4 more lines\n" in done.stdout
    assert "<- failed: The tool failed.\n   OSError: out of glass (my_tools.py:" in done.stdout


def test_without_a_terminal_nobody_approves(file: Path) -> None:
    lines = talk("--tools", file, given=f"{EMAIL}\n")
    (told,) = [line for line in lines if line.startswith("<- ")]
    assert told.startswith("<- rejected: Nobody is there")
    assert SENT not in "\n".join(lines)


def test_yes_runs_what_wants_approval(file: Path) -> None:
    assert f"<- {SENT}" in talk("--tools", file, "--yes", given=f"{EMAIL}\n")


def test_every_way_of_asking_the_simulated_model_makes_the_same_call(file: Path) -> None:
    ways: Sequence[tuple[str, ...]] = (
        ("--model", "simulated-hermes"),
        ("--model", "simulated-native"),
        ("--dialect", "json"),
        ("--mode", "raw", "--dialect", "qwen3_coder"),
    )
    for way in ways:
        assert '<- {"city":"Oslo","degrees":4}' in talk("--tools", file, *way, given="Weather in Oslo?\n")


def test_the_commands(file: Path, tmp_path: Path) -> None:
    saved = tmp_path / "talk.jsonl"
    given = "/help\n/tools\n/tolls\nhello\n/reset\nWeather in Oslo?\n/quit\nnever said\n"
    lines = talk("--tools", file, "--save", saved, given=given)
    assert any(line.startswith("/reset ") for line in lines)
    assert "get_weather(city, unit)" in lines
    assert "send_email(email, subject)  (asks)" in lines
    assert any("Unknown command /tolls. Did you mean '/tools'?" in line for line in lines)
    assert "You said: hello" in lines
    assert not any("never said" in line for line in lines)
    assert [one["role"] for one in messages(saved)] == ["user", "assistant"]
    assert [one["role"] for one in messages(tmp_path / "talk-2.jsonl")] == ["user", "assistant", "tool", "assistant"]


def test_a_session_goes_on_in_the_next_chat(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    talk("--tools", file, "--session", "alice", "--yes", given=f"hello\n{EMAIL}\n")
    saved = tmp_path / "talk.jsonl"
    assert talk("--session", "alice", "--save", saved, given="thank you\n") == ["You said: thank you"]
    kept = messages(saved)
    assert [one["role"] for one in kept] == [
        *("user", "assistant", "user", "assistant", "tool", "assistant", "user", "assistant")
    ]
    running.check_history(kept)
    talk("--session", "alice", given="/reset\nhello again\n")
    talk("--session", "alice", "--save", tmp_path / "after.jsonl", given="bye\n")
    assert [one["content"] for one in messages(tmp_path / "after.jsonl")][::2] == ["hello again", "bye"]


def test_functions_with_type_hints_are_tools_where_none_is_marked(tmp_path: Path) -> None:
    path = tmp_path / "plain.py"
    path.write_text(
        "from os.path import join\n"
        "def get_weather(city: str) -> str:\n    return city\n"
        "def _private(city: str) -> str:\n    return city\n"
        "def untyped(city):\n    return city\n"
        "def main() -> None:\n    raise SystemExit\n"
    )
    lines = talk("--tools", path, given="/tools\n")
    assert [line for line in lines if "(" in line] == ["get_weather(city)"]


def test_a_server_is_asked_for_its_model(model: ModelServer, file: Path) -> None:
    model.plays(said("Hi there"))
    assert talk("--upstream", model.url, "--model", "m", "--mode", "native", given="hello\n") == ["Hi there"]
    assert model.body["model"] == "m"


def test_a_server_that_fails_ends_the_chat_with_its_status(closed_port: str, tmp_path: Path) -> None:
    saved = tmp_path / "talk.jsonl"
    result = chat("--upstream", closed_port, "--model", "m", "--save", saved, given="hello\nagain\n")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")
    assert len(result.stderr.splitlines()) == 1
    assert [one["role"] for one in messages(saved)] == ["user"]


@pytest.mark.clients
def test_an_mcp_server_is_started_and_its_tools_are_called() -> None:
    pytest.importorskip("mcp_server_time", reason="mcp-server-time is not installed")
    lines = talk(
        "--mcp", f"{sys.executable} -m mcp_server_time", given='What is the current time in timezone "Europe/Oslo"?\n'
    )
    assert lines[0] == '-> mcp-time__get_current_time {"timezone":"Europe/Oslo"}'
    assert lines[1].startswith('<- {"timezone":"Europe/Oslo"')


# --- what is refused ---

# The text of a file with tools, and words that the one line of the error must hold.
FILES: dict[str, tuple[str, tuple[str, ...]]] = {
    "no Python": ("def f(:\n", ("tools.py:1", "invalid syntax")),
    "an exception": ("import json\n\njson.loads('')\n", ("tools.py:3", "JSONDecodeError")),
    "a module that is not there": ("import nope_nope\n", ("tools.py:1", "No module named 'nope_nope'")),
    "an exit": ("import sys\nsys.exit(3)\n", ("tools.py:2", "SystemExit: 3")),
    "no tools": ("x = 1\n", ("has no tools", "@callwright.tool")),
    "a type that has no schema": (
        "import threading\n\ndef f(x: threading.Lock) -> str:\n    return ''\n",
        ("tools.py:3", "'f'", "'x'"),
    ),
    "the same, marked": (
        "import callwright, threading\n\n@callwright.tool\ndef f(x: threading.Lock) -> str:\n    return ''\n",
        ("tools.py:3", "'f'", "'x'"),
    ),
    "a hidden value that nobody gives": (
        "import callwright as t, typing\n@t.tool\ndef f(x: typing.Annotated[str, t.Hidden]) -> str:\n    return x\n",
        ("'f'", "'x'", "HIDDEN = {'x': …}"),
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_what_is_wrong_in_a_file_is_told_with_its_line(tmp_path: Path, case: str) -> None:
    text, words = FILES[case]
    path = tmp_path / "tools.py"
    path.write_text(text)
    is_refused(chat("--tools", path), *words)


REFUSED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "a file that is not there": (("--tools", "nope.py"), ("nope.py", "tools.py")),
    "a file of another kind": (("--tools", __file__.removesuffix(".py")), ("--tools", "Python file")),
    "a model without an upstream": (("--model", "gpt-oss"), ("--model", "--upstream")),
    "a model that is nearly one": (("--model", "simulated-hermse"), ("Did you mean 'simulated-hermes'?",)),
    "a key without an upstream": (("--key-env", "K"), ("--key-env", "--upstream")),
    "a dialect that is nearly one": (("--dialect", "harmonny"), ("harmonny", "Did you mean 'harmony'?")),
    "an upstream that is no URL": (("--upstream", "localhost:8000"), ("http://localhost:8000/v1",)),
    "a file to keep that is there": (("--save", __file__), ("--save", "there already")),
    "tools that are not there": (("--tools", "nothere.py"), ("nothere.py", "is not there")),
    "a folder to keep that is not there": (("--save", "nope/talk.jsonl"), ("--save", "No such file")),
}


@pytest.mark.parametrize("case", REFUSED)
def test_chat_refuses(case: str) -> None:
    arguments, words = REFUSED[case]
    is_refused(chat(*arguments), *words)


def is_refused(result: Result, *words: str) -> None:
    assert isinstance(result.exception, SystemExit), repr(result.exception)
    assert result.exit_code == 2
    assert not result.stdout
    (told,) = result.stderr.splitlines()
    assert told.startswith("Error: ")
    assert not [word for word in words if word not in told], told


def test_two_tools_of_one_name_are_refused(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    other.write_text("def get_weather(city: str) -> str:\n    return city\n")
    is_refused(chat("--tools", file, "--tools", other), "get_weather")


def test_what_turns_the_direction_of_text_is_made_visible() -> None:
    assert plain("rm \u202etxt.exe\u202c\x07\ttab\r\n") == "rm \ufffdtxt.exe\ufffd\ufffd\ttab\n"


# --- in a terminal ---


# Opening it makes it the controlling terminal of a new session: Ctrl-C arrives as a signal, which a job in the
# background of a script would ignore.
_IN_TERMINAL = """
import os, signal, sys
os.close(os.open(os.ttyname(0), os.O_RDWR))
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""


class Terminal:
    """A chat before a pseudo-terminal. `text` is what has been shown so far."""

    def __init__(self, *arguments: object) -> None:
        own, theirs = pty.openpty()
        environment = {**os.environ, "TERM": "xterm-256color", "PYTHONWARNINGS": "error", "NO_COLOR": ""}
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                _IN_TERMINAL,
                Path(sys.executable).parent / "callwright",
                "chat",
                *map(str, arguments),
            ],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment,
            start_new_session=True,
        )
        os.close(theirs)
        self._own = own
        self.text = ""

    def expect(self, words: str) -> str:
        """Read until these words are shown; answers what came before and with them, without its colours."""
        seen = ""
        while words not in seen:
            readable, _, _ = select.select([self._own], [], [], 30)
            assert readable, f"{words!r} never came: {self.text!r}"
            piece = os.read(self._own, 4096)
            seen += piece.decode()
            self.text += piece.decode()
        return re.sub(r"\x1b\[[0-9;]*m", "", seen)

    def type(self, text: str) -> None:
        os.write(self._own, text.encode())

    def interrupt(self) -> None:
        """Press Ctrl-C once the program waits: readline loses a signal that comes between its echo and its `select`."""
        state = Path(f"/proc/{self._process.pid}/stat")
        while state.exists() and state.read_text().rpartition(")")[2].split()[0] == "R":
            os.sched_yield()
        self.type("\x03")

    def status(self) -> int:
        """How it ended."""
        return self._process.wait(timeout=30)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._own)


@pytest.mark.processes
def test_in_a_terminal_people_approve_interrupt_and_leave(file: Path, tmp_path: Path) -> None:
    saved = tmp_path / "talk.jsonl"
    ready = "> \x1b[0m"
    with Terminal("--tools", file, "--save", saved) as terminal:
        assert "simulated (raw harmony), 5 tools" in terminal.expect(ready)

        terminal.type("What is the weather in Oslo?\n")
        shown = terminal.expect(ready)
        assert "The user asks for something" in shown
        assert "\x1b[2m\x1b[3mTh" in terminal.text  # dimmed
        assert "-> get_weather " in shown
        assert '{"city":"Oslo","degrees":4}' in shown

        terminal.type(f"{EMAIL}\n")
        assert '"email": "anna@example.com"' in terminal.expect("instead: ")
        terminal.type("write to Bob instead\n")
        assert "rejected: write to Bob instead" in terminal.expect(ready)
        terminal.type(f"{EMAIL}\n")
        terminal.expect("instead: ")
        terminal.type("a\n")
        assert SENT in terminal.expect(ready)
        terminal.type(f"{EMAIL}\n")  # and for later calls, too
        assert SENT in terminal.expect(ready)

        terminal.type("Wait forever\n")
        terminal.expect("… waiting")
        terminal.interrupt()
        assert "[interrupted]" in terminal.expect(ready)
        terminal.type("thank you\n")
        assert "You said: thank you" in terminal.expect(ready)
        terminal.type("\x04")
        assert terminal.status() == 0
        assert "Traceback" not in terminal.text

    kept = messages(saved)
    running.check_history(kept)
    outputs = [one["content"] for one in kept if one["role"] == "tool"]
    assert outputs[1:4] == ["write to Bob instead", SENT, SENT]
    assert "interrupted" in outputs[4].lower()
    assert kept[-1]["content"] == "You said: thank you"


_ASKING = Path(__file__).parents[1] / "clients" / "mcp_asking_server.py"


@pytest.mark.clients
def test_in_a_terminal_an_mcp_server_asks_the_person() -> None:
    pytest.importorskip("mcp.client", reason="the SDK of MCP is not installed")
    ready = "> \x1b[0m"
    with Terminal("--mcp", f"{sys.executable} {_ASKING}", "--yes") as terminal:
        terminal.expect(ready)
        terminal.type('Fill the thing "tank"\n')
        assert "asking asks: How much does tank take?" in terminal.expect("Litres: ")
        terminal.type("forty\n")
        terminal.expect("Litres: ")
        terminal.type("40\n")
        assert "tank: 40 l" in terminal.expect(ready)
        terminal.type('Fill the thing "tank"\n')
        terminal.expect("Litres: ")
        terminal.type("\x04")
        assert "tank: decline" in terminal.expect(ready)
        terminal.type('Fill the thing "tank"\n')
        terminal.expect("Litres: ")
        terminal.type("7")  # what it echoes it reads
        terminal.expect("7")
        terminal.interrupt()
        assert "[interrupted]" in terminal.expect(ready)
        terminal.type("thank you\n")
        assert "You said: thank you" in terminal.expect(ready)
        terminal.type("\x04")
        assert terminal.status() == 0
        assert "Traceback" not in terminal.text


@pytest.mark.clients
def test_through_a_pipe_nobody_is_asked() -> None:
    pytest.importorskip("mcp.client", reason="the SDK of MCP is not installed")
    lines = talk("--mcp", f"{sys.executable} {_ASKING}", "--yes", given='Fill the thing "tank"\n')
    assert not [line for line in lines if " asks: " in line]
    assert any(line.startswith("<- failed") for line in lines), lines
