"""The fields of OpenAI's request types, walked as its library declares them.

A path names the type of what it goes through where there are several: `tools[function].strict`. Tools stand below
`tools` wherever they come, parts of content below `parts`.
"""

import re
import typing
from collections import deque
from collections.abc import Iterator
from typing import Any, Final

import typing_extensions

__all__ = ["paths_of", "shared_path"]

_TOOLS: Final = re.compile(
    r"^(?:input\[(?:additional_tools|tool_search_output)\]\.tools|tools\[namespace\]\.tools)(?=\[|$)"
)
_PARTS: Final = re.compile(r"^input\[\w+\]\.(?:content|output)(?=\[input_)")


def paths_of(request: type) -> list[str]:
    """The paths of all fields that a request type has, in order, its own first."""
    found: dict[str, None] = {}
    seen: set[tuple[str, type]] = set()
    coming: deque[tuple[str, type]] = deque([("", request)])
    while coming:
        path, kind = coming.popleft()
        if (path, kind) in seen or path.count("[") + path.count(".") > 8:
            continue
        seen.add((path, kind))
        for name, hint in typing_extensions.get_type_hints(kind).items():
            below = shared_path(f"{path}.{name}" if path else name)
            found[below] = None
            for inner in _objects(hint):
                tag = _tag(inner)
                coming.append((shared_path(f"{below}[{tag}]" if tag else below), inner))
    return list(found)


def shared_path(path: str) -> str:
    """The path of a field, the same wherever a tool or a part of content comes."""
    while (shorter := _PARTS.sub("parts", _TOOLS.sub("tools", path))) != path:
        path = shorter
    return path


def _objects(hint: Any) -> Iterator[type]:
    """The objects that stand in a type: in its unions and lists."""
    if typing_extensions.is_typeddict(hint):
        yield hint
    else:
        for inner in typing.get_args(hint):
            if not isinstance(inner, str):
                yield from _objects(inner)


def _tag(kind: type) -> str | None:
    """What the type of an object, or its role, says of it."""
    hints = typing_extensions.get_type_hints(kind)
    for name in ("type", "role"):
        literal = typing.get_args(hints.get(name))
        if literal and isinstance(literal[0], str):
            return literal[0]
    return None
