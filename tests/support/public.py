"""The public surface: names that users' programs, scripts, configurations and dashboards contain.

`tests/project/public.txt` lists that of the last release. A test compares: a change needs a line in the CHANGELOG above
that release. `python -m tests.support.public` writes the list, when a release is cut.
"""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click

import callwright
from callwright.cli import main
from callwright.cli.main import LazyCommand
from callwright.events import PROBLEM_KINDS
from callwright.gateway.config.schema import tables
from tests.support.paths import ROOT

LISTED: Final = ROOT / "tests" / "project" / "public.txt"
_HEADER: Final = re.compile(r"\bx-callwright-[a-z-]+[a-z]")
_METRIC: Final = re.compile(r"^\| `(callwright_\w+)` \| ([^|]*) \|", re.MULTILINE)


def public_names() -> list[str]:
    """One line for each, sorted: `KIND NAME`, with a function's parameters and a metric's labels."""
    found = {
        *(f"library {line}" for name in callwright.__all__ for line in _library(name, getattr(callwright, name))),
        *(f"command {line}" for line in _commands(main, ())),
        *(f"setting {table}.{name}" for table, struct in tables().items() for name in struct.__struct_fields__),
        *(f"header {name}" for path in _pages() for name in _HEADER.findall(path.read_text(encoding="utf-8"))),
        *(f"metric {name}({labels})" for name, labels in _METRIC.findall(_page("operations").read_text("utf-8"))),
        *(f"problem {kind}" for kind in PROBLEM_KINDS),
    }
    return sorted(found)


def _library(name: str, thing: Any) -> Iterator[str]:
    """A name with the names of its parameters; of those without a default, `=` is missing."""
    if not callable(thing) or hasattr(thing, "__origin__"):
        yield name
        return
    try:
        parameters = [one for one in inspect.signature(thing).parameters.values() if not one.name.startswith("_")]
    except (TypeError, ValueError):
        parameters = []
    shown = [one.name + ("" if one.default is inspect.Parameter.empty else "=") for one in parameters]
    yield f"{name}({', '.join(shown)})"


def _commands(command: click.Command, path: tuple[str, ...]) -> Iterator[str]:
    name = " ".join((*path, "")).strip()
    for parameter in command.params:
        shown = parameter.opts[0] if isinstance(parameter, click.Option) else (parameter.name or "").upper()
        yield f"{name} {shown}".strip()
    if isinstance(command, click.Group):
        for each in command.list_commands(click.Context(command)):
            inner = command.get_command(click.Context(command), each)
            assert inner is not None
            yield from _commands(inner.load() if isinstance(inner, LazyCommand) else inner, (*path, each))


def _pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def _page(name: str) -> Path:
    return ROOT / "docs" / f"{name}.md"


if __name__ == "__main__":
    LISTED.write_text("\n".join(public_names()) + "\n", encoding="utf-8")
