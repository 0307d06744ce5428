"""Reads the vectors: see tests/vectors/README.md."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from callwright import Turn
from tests.support.paths import ROOT

VECTORS = ROOT / "tests" / "vectors"
TOOLS: Mapping[str, Mapping[str, Any]] = json.loads((VECTORS / "tools.json").read_text())


class Case(Struct, frozen=True):
    """One output of a model and what it means. `calls` are (name, arguments, complete)."""

    dialect: str
    title: str
    tools: tuple[str, ...]
    output: str
    start: str | None = None
    finish: str = "stop"
    choice: Any = None
    content: str | None = None
    reasoning: str | None = None
    calls: tuple[tuple[str, str, bool], ...] = ()
    problems: frozenset[str] = frozenset()
    ends: str = ""

    def request(self) -> dict[str, Any]:
        """The arguments of `callwright.parse` without the output."""
        return {
            "dialect": self.dialect,
            "tools": tools(*self.tools),
            "tool_choice": self.choice,
            "start": self.start,
        }

    def misread(self, turn: Turn) -> str:
        """What is wrong with a turn; empty when it is what the case says."""
        whole = all(complete for _, _, complete in self.calls)
        stopped = ("tool_calls" if whole else "length") if self.calls else "stop"
        expected_finish = self.ends or (stopped if self.finish == "stop" else self.finish)
        pairs: tuple[tuple[str, object, object], ...] = (
            ("content", turn.content, self.content),
            ("reasoning", turn.reasoning, self.reasoning),
            ("calls", tuple((call.name, call.arguments, call.complete) for call in turn.calls), self.calls),
            ("finish_reason", turn.finish_reason, expected_finish),
        )
        wrong = [f"{name}: {got!r}, expected {want!r}" for name, got, want in pairs if got != want]
        kinds = {problem.kind for problem in turn.problems}
        if "any" not in self.problems and kinds != self.problems:
            wrong.append(f"problems: {sorted(kinds)}, expected {sorted(self.problems)}")
        return "\n".join(wrong)


def tools(*names: str) -> list[dict[str, Any]]:
    """Tools of the catalogue in the Chat shape."""
    return [{"type": "function", "function": {"name": name, **TOOLS[name]}} for name in names]


def load_cases() -> list[Case]:
    """All cases of all files."""
    return [case for path in sorted(VECTORS.glob("*.txt")) for case in read_cases(path)]


def read_cases(path: Path) -> Iterator[Case]:
    """The cases of one file, which has the name of its dialect."""
    for block in path.read_text(encoding="utf-8").split("\n## ")[1:]:
        title, _, body = block.partition("\n")
        settings, _, rest = body.partition("\noutput")
        form, _, rest = rest.partition(":\n")
        output, _, expected = rest.partition("\nexpect:\n")
        assert expected or rest.endswith("\nexpect:") or "\nexpect:" in rest, f"{path.name}: {title}: no expectations"
        fields: dict[str, Any] = {"output": json.loads(output) if form.strip() == "json" else output}
        for line in settings.strip().splitlines():
            name, _, value = line.partition(":")
            fields[name.strip()] = value.strip()
        yield Case(path.stem, title, **_setting(fields), **_expected(expected, f"{path.name}: {title}"))


def _setting(fields: dict[str, Any]) -> dict[str, Any]:
    fields["tools"] = tuple(
        name.replace("_", " ") if name == "Sound_Lamp" else name for name in fields.get("tools", "").split()
    )
    choice = fields.get("choice")
    if choice is not None and choice not in ("none", "auto", "required"):
        fields["choice"] = {"type": "function", "function": {"name": choice}}
    return fields


def _expected(text: str, where: str) -> dict[str, Any]:
    expected: dict[str, Any] = {}
    calls: list[tuple[str, str, bool]] = []
    problems: set[str] = set()
    for line in filter(None, text.strip().splitlines()):
        word, _, value = line.partition(" ")
        match word:
            case "content" | "reasoning":
                expected[word] = json.loads(value)
            case "call":
                name, _, arguments = value.partition(" ")
                complete = not arguments.endswith(" cut")
                arguments = arguments.removesuffix(" cut")
                if arguments.startswith('"'):
                    arguments = json.loads(arguments)
                calls.append((name.replace("Sound_Lamp", "Sound Lamp"), arguments, complete))
            case "problem":
                problems.add(value)
            case "finish":
                expected["ends"] = value
            case _:
                raise AssertionError(f"{where}: unknown expectation {line!r}")
    return {**expected, "calls": tuple(calls), "problems": frozenset(problems)}
