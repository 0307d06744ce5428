"""docs/api.md: every public name of the package with its signature and docstring. `scripts/reference` writes it."""

import inspect
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import ModuleType
from typing import Any, Final

import callwright
from callwright.agent import events
from tests.support.paths import ROOT

INTRODUCTION: Final = """# API reference

Every public name of `callwright`, generated from the docstrings. Guides: [the library](library.md), [agents](agent.md),
[MCP servers](mcp.md).
"""
_ADDRESS: Final = re.compile(r" at 0x[0-9a-f]+")
_WIDTH: Final = 100
_GUIDES: Final = ("library", "agent", "mcp", "chat-templates")


def api_page() -> str:
    """The page: functions, classes and exceptions of the package, then the events of agents."""
    public = {name: getattr(callwright, name) for name in sorted(callwright.__all__, key=str.casefold)}
    groups: dict[str, list[str]] = {"Functions": [], "Classes": [], "Exceptions": [], "Other names": []}
    for name, thing in public.items():
        groups[_group_of(thing)].append(_entry(name, thing))
    groups["Events of agents"] = [_entry(name, thing) for name, thing in _events(events)]
    parts = [INTRODUCTION]
    for title, entries in groups.items():
        if entries:
            parts += [f"## {title}\n", *entries]
    return "\n".join(parts)


def _group_of(thing: object) -> str:
    if inspect.isclass(thing):
        return "Exceptions" if issubclass(thing, BaseException) else "Classes"
    return "Functions" if callable(thing) and not hasattr(thing, "__origin__") else "Other names"


def _events(module: ModuleType) -> Iterator[tuple[str, type]]:
    for name, thing in sorted(vars(module).items()):
        if inspect.isclass(thing) and thing.__module__ == module.__name__ and not name.startswith("_"):
            yield name, thing


def _entry(name: str, thing: Any) -> str:
    head = f"### `{name}`\n"
    if not callable(thing) or hasattr(thing, "__origin__"):
        return f"{head}\n{_plain(thing)}\n"
    text = f"{head}\n```\n{_signature(name, thing)}\n```\n\n{_doc(thing)}\n"
    if inspect.isclass(thing) and not issubclass(thing, BaseException):
        text += "".join(f"\n- {line}" for line in _members(thing)) + "\n"
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


def _plain(thing: object) -> str:
    return f"`{_ADDRESS.sub('', str(thing))}`"


@lru_cache
def _guides() -> str:
    return "".join((ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in _GUIDES)


def _members(owner: type) -> Iterator[str]:
    """The methods and properties that the guides use; the others are for the package itself."""
    ours = [base for base in reversed(owner.__mro__) if base.__module__.startswith("callwright.")]
    for name, member in sorted({name: member for base in ours for name, member in vars(base).items()}.items()):
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if name.startswith("_") or not re.search(rf"\.{name}\b|`{name}\(|await {name}\(", _guides()):
            continue
        if isinstance(member, property):
            yield f"`{name}`: {_first(member)}"
        elif inspect.isfunction(function):
            yield f"`{_signature(name, function).replace(chr(10), ' ')}`: {_first(function)}"


def _signature(name: str, thing: Callable[..., Any]) -> str:
    """The signature without annotations of types, which would be longer than the names."""
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return name
    plain = [
        one.replace(annotation=inspect.Parameter.empty)
        for one in found.parameters.values()
        if one.name not in ("self", "cls") and not one.name.startswith("_")
    ]
    shown = str(found.replace(parameters=plain, return_annotation=inspect.Signature.empty))
    text = f"{name}{_ADDRESS.sub('', shown)}"
    return text if len(text) <= _WIDTH else text.replace(", ", ",\n    ")


def _doc(thing: object) -> str:
    found = inspect.getdoc(thing) or ""
    return "" if found.startswith(f"{getattr(thing, '__name__', '')}(") else found


def _first(thing: object) -> str:
    return (inspect.getdoc(thing) or "").partition("\n\n")[0].replace("\n", " ")
