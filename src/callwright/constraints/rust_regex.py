"""Regular expressions of schemas and of custom tools, as expressions for a whole text in Rust's syntax."""

import re
from typing import Final

# ASCII in JSON Schema, Unicode in Rust.
_ASCII: Final = {"d": "[0-9]", "w": "[0-9A-Za-z_]", "D": "[^0-9]", "W": "[^0-9A-Za-z_]"}
_IN_CLASSES: Final = {"d": "0-9", "w": "0-9A-Za-z_"}
_ANYTHING: Final = r"(?:.|\n)*"
_PART: Final = re.compile(r"\\.|[\[\]()|^$]|[^\\]", re.DOTALL)


def without_anchors(expression: str) -> str:
    """A custom tool's expression without its anchors, which are redundant: it always matches the whole input."""
    escapes = len(expression) - len(expression.removesuffix("$").rstrip("\\")) - 1
    end = expression.endswith("$") and escapes % 2 == 0
    return expression.removeprefix("^")[: -1 if end else None]


def whole_pattern(pattern: str) -> str | None:
    """A schema's `pattern` that is anchored at its start; None for another, and for what only ECMA's syntax has.

    Without an anchor at its start a text could match in very many ways, which are slow to follow.
    """
    if not pattern.startswith("^"):
        return None
    inner = without_anchors(pattern)
    rest = "" if len(inner) < len(pattern) - 1 else _ANYTHING
    depth = 0
    out: list[str] = []
    inside = False
    for part in _PART.findall(inner):
        if part[0] == "\\" and part[1:].isalnum():
            known = _IN_CLASSES if inside else _ASCII
            if part[1] not in known:
                return None
            part = known[part[1]]
        elif inside or part == "[":
            inside = part != "]"
        elif part in "()":
            depth += 1 if part == "(" else -1
        elif part in "^$" or (part == "|" and depth == 0):
            return None
        out.append(part)
    return None if inside or depth else "".join(out) + rest
