"""Shows a chat: the events of a run as lines of text, and questions to the person.

In a terminal with colours, reasoning and a prompt; otherwise plain text, without reasoning. Control characters from
models and tools never reach the terminal.
"""

import os
import shutil
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from callwright.agent.annotations import Failed, Retry
from callwright.agent.events import (
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    Compacted,
    ContentDelta,
    Problem,
    ReasoningDelta,
    Retried,
    RunEnded,
    RunEvent,
    RunResult,
    ToolEnded,
    ToolProgress,
)
from callwright.cli.terminal import count_noun

_RESULT_LINES: Final = 4
_MIN_WIDTH: Final = 40
# Control characters except tab and line feed, and those that change the direction of text: a person must see exactly
# the text that they approve.
_UNSEEN: Final = dict.fromkeys(
    (*range(9), *range(11, 32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\ufffd"
)


def plain(text: str) -> str:
    """An untrusted text, made safe for a terminal."""
    return text.replace("\r\n", "\n").translate(_UNSEEN)


class Screen:
    """Shows a chat. `is_interactive`: a person uses it in a terminal."""

    def __init__(self) -> None:
        self.is_interactive = sys.stdin.isatty() and sys.stdout.isatty()
        self._has_colours = self.is_interactive and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self._at_start = True  # of a line
        self._style: str | None = None  # of the open line: reasoning, text, or a call by its number
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="replace")

    # --- lines ---

    def write(self, text: str, **style: Any) -> None:
        """More text on the open line."""
        if text:
            click.echo(click.style(text, **style) if style and self._has_colours else text, nl=False)
            self._at_start = text.endswith("\n")

    def line(self, text: str = "", **style: Any) -> None:
        """A line of its own."""
        self.end_line()
        self.write(text, **style)
        click.echo()
        self._at_start = True

    def end_line(self) -> None:
        """End the open line, if there is one."""
        self._style = None
        if not self._at_start:
            click.echo()
            self._at_start = True

    def _open(self, style: str) -> bool:
        """Whether another kind of text begins here."""
        if self._style == style:
            return False
        self.end_line()
        self._style = style
        return True

    # --- events ---

    def show(self, event: RunEvent) -> None:
        """Show an event, unless its kind is hidden."""
        match event:
            case ContentDelta(text):
                # A blank before the first word, as some models write it, gets no line of its own.
                text = plain(text).lstrip("\n") if self._open("text") else plain(text)
                self.write(text)
            case ReasoningDelta(text) if self.is_interactive:
                self._open("reasoning")
                self.write(plain(text), dim=True, italic=True)
            case CallStarted(index, name):
                self._open(f"call {index}")
                self.write(f"-> {plain(name)} ", fg="cyan", bold=True)
            case ArgumentsDelta(index, text):
                if self._open(f"call {index}"):
                    self.write("-> … ", fg="cyan")
                self.write(plain(text).replace("\n", " "), fg="cyan")
            case CallEnded():
                self.end_line()
            case Problem(kind, detail):
                self.line(f"   {kind}: {plain(detail)}", fg="yellow", dim=True)
            case Retried(reason=reason):
                self._fold("!! ", reason, fg="yellow")
            case ToolProgress(value=value):
                self.line(f" … {self._cut(_progress(value))}", dim=True)
            case ToolEnded(status="ok", text=text):
                self._fold("<- ", text, fg="green")
            case ToolEnded(status=status, text=text, exception=error):
                self._fold("<- ", f"{status}: {text}", fg="red")
                if error is not None and not isinstance(error, Failed | Retry):  # the model does not see it
                    self.line(f"   {self._cut(plain(_raised(error)))}", fg="red", dim=True)
            case Compacted(count=count):
                self.line(f"[{count_noun(count, 'item')} of the conversation were summarised]", dim=True)
            case RunEnded(result):
                self._end(result)
            case _:
                pass

    def _end(self, result: RunResult) -> None:
        """Why a run ended, if not by its answer."""
        self.end_line()
        if result.stop not in ("completed", "pending"):
            why = "interrupted" if result.stop == "cancelled" else f"{result.stop}: {plain(result.detail)}"
            self.line(f"[{why}]", fg="yellow")

    def _fold(self, mark: str, text: str, **style: Any) -> None:
        """A result in a few lines."""
        lines = plain(text).strip("\n").split("\n")
        shown = lines if len(lines) <= _RESULT_LINES + 1 else lines[:_RESULT_LINES]
        for number, one in enumerate(shown):
            self.line(f"{'   ' if number else mark}{self._cut(one)}", **style)
        if len(shown) < len(lines):
            self.line(f"   … {len(lines) - len(shown)} more lines", dim=True)

    def _cut(self, line: str) -> str:
        most = max(shutil.get_terminal_size().columns - 5, _MIN_WIDTH) if self.is_interactive else 200
        return line if len(line) <= most else f"{line[: most - 16]} … {len(line):,} chars"

    # --- questions ---

    def ask(self, prompt: str, **style: Any) -> str:
        """Read a line from the person. Raises `EOFError` and `KeyboardInterrupt`."""
        self.end_line()
        if not self.is_interactive:
            line = sys.stdin.readline()
            if not line:
                raise EOFError
            return line.rstrip("\n")
        if self._has_colours:  # marked as zero-width, for readline
            prompt = f"\001{click.style('', reset=False, **style)}\002{prompt}\001\033[0m\002"
        return input(prompt)

    def ask_approval(self, name: str, arguments: Mapping[str, Any]) -> str:
        """`yes`, `no`, `always`, or another text, which refuses the call with a reason."""
        text = msgspec.json.format(msgspec.json.encode(arguments), indent=2).decode()
        self.line(f"{plain(name)} wants to run with", bold=True)
        self.line(plain(text))
        answer = self.ask("Run it? [y]es, [n]o, [a]lways, or what it should do instead: ", fg="yellow").strip()
        short = {"": "no", "n": "no", "no": "no", "y": "yes", "yes": "yes", "a": "always", "always": "always"}
        return short.get(answer.lower(), answer)


def _raised(error: BaseException) -> str:
    """An exception of a tool, with its place."""
    frames = traceback.extract_tb(error.__traceback__)
    words = "".join(traceback.format_exception_only(error)).strip().replace("\n", " ")
    return f"{words} ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else words


def _progress(value: Any) -> str:
    if isinstance(value, Mapping) and "progress" in value:  # of an MCP server
        done, total = value["progress"], value.get("total")
        count = f"{done:g} of {total:g}" if total else f"{done:g}"
        return plain(" ".join(filter(None, (count, value.get("message")))))
    return plain(str(value))
