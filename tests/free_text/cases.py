"""Reads the cases of this folder: see its README.md."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from callwright.calls.toolset import Toolset
from callwright.conversation import FunctionTool, ToolChoice

__all__ = ["TOOLS", "Case", "cases", "lines", "toolset"]

_HERE: Final = Path(__file__).parent


def _object(**properties: str) -> dict[str, Any]:
    described = {name: {"type": kind} for name, kind in properties.items()}
    return {"type": "object", "properties": described, "required": list(properties), "additionalProperties": False}


TOOLS: Final = {
    "water_beds": _object(bed="string", litres="integer"),
    "open_valve": _object(number="integer"),
    "sow_seed": _object(plant="string", row="integer"),
    "now": _object(),
}
CALLS: Final = (
    ("water_beds", {"bed": "north", "litres": 12}),
    ("open_valve", {"number": 3}),
    ("sow_seed", {"plant": "dill", "row": 7}),
)


class Case(NamedTuple):
    """An answer, and the calls that stand in it."""

    title: str
    output: str
    calls: tuple[tuple[str, dict[str, Any]], ...]


def toolset(choice: ToolChoice = "auto") -> Toolset:
    """The tools of the cases."""
    return Toolset([FunctionTool(name, None, parameters) for name, parameters in TOOLS.items()], choice)


def cases(name: str) -> list[Case]:
    """The cases of a file."""
    blocks = (_HERE / f"{name}.txt").read_text(encoding="utf-8").split("\n## ")[1:]
    return list(_read(blocks))


def lines(name: str) -> list[str]:
    """The lines of a file."""
    return (_HERE / f"{name}.txt").read_text(encoding="utf-8").splitlines()


def _read(blocks: list[str]) -> Iterator[Case]:
    for block in blocks:
        title, _, text = block.partition("\n")
        made: list[tuple[str, dict[str, Any]]] = []

        def written(found: re.Match[str], made: list[tuple[str, dict[str, Any]]] = made) -> str:
            if found[0] in ("{{", "}}"):
                return found[0][0]
            name, arguments = CALLS[len(made) % len(CALLS)]
            made.append((name, arguments))
            form = {"tool": name, "arguments": arguments}
            text = json.dumps(form, indent=2 if found[1] == "spread" else None)
            return f"```json\n{text}\n```" if found[1] == "fence" else text

        output = re.sub(r"\{(fence|bare|spread)\}|\{\{|\}\}", written, text.rstrip("\n"))
        yield Case(title, output, tuple(made))
