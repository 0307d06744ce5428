"""What a docstring says about a function and each of its parameters: Google, NumPy and Sphinx style.

It knows no signature: whether a documented name is a parameter is for the caller to judge.
"""

import inspect
import re
from typing import Final

__all__ = ["read_docstring"]

_SECTION: Final = re.compile(r"(?:Args|Arguments|Parameters|Params|Attributes|Keyword Args|Keyword Arguments):\s*$")
_UNDERLINED: Final = ("Parameters", "Other Parameters", "Attributes")
_RULE: Final = re.compile(r"-{3,}\s*$")
_GOOGLE: Final = re.compile(r"(?P<name>\*{0,2}[A-Za-z_]\w*)\s*(?:\([^)]*\))?\s*:(?:\s+|$)(?P<text>.*)")
_NUMPY: Final = re.compile(r"(?P<names>\*{0,2}[A-Za-z_]\w*(?:\s*,\s*\*{0,2}[A-Za-z_]\w*)*)\s*(?::.*)?$")
_SPHINX: Final = re.compile(
    r":(?:param|parameter|arg|argument|key)\s+(?:[^:]*\s)?(?P<name>\*{0,2}\w+)\s*:\s*(?P<text>.*)"
)
_SPHINX_TYPE: Final = re.compile(r":(?:type|rtype)\b[^:]*:")


def read_docstring(text: str | None) -> tuple[str, dict[str, str]]:
    """The text without its sections of parameters, and the text of each parameter, on one line."""
    lines = inspect.cleandoc(text or "").split("\n")
    kept: list[str] = []
    found: dict[str, str] = {}
    at = 0
    while at < len(lines):
        line = lines[at]
        if _SECTION.match(line) and _indent(_after(lines, at + 1)) > 0:
            at = _entries(lines, at + 1, _indent(_after(lines, at + 1)), _GOOGLE, found)
        elif line.strip() in _UNDERLINED and at + 1 < len(lines) and _RULE.match(lines[at + 1]):
            at = _entries(lines, at + 2, 0, _NUMPY, found)
        elif entry := _SPHINX.match(line):
            end = _block_end(lines, at + 1, 1)
            found[entry["name"].lstrip("*")] = _joined([entry["text"], *lines[at + 1 : end]])
            at = end
        elif _SPHINX_TYPE.match(line):
            at = _block_end(lines, at + 1, 1)
        else:
            kept.append(line)
            at += 1
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip(), found


def _entries(lines: list[str], at: int, indent: int, form: re.Pattern[str], found: dict[str, str]) -> int:
    """Read the entries of a section; answers where it ends."""
    while at < len(lines):
        line = lines[at]
        if not line.strip():
            at += 1
            continue
        entry = form.match(line.strip()) if _indent(line) == indent else None
        is_next = indent == 0 and at + 1 < len(lines) and _RULE.match(lines[at + 1])
        if entry is None or is_next:
            return at
        end = _block_end(lines, at + 1, indent + 1)
        named = entry.groupdict()
        text = _joined([named.get("text") or "", *lines[at + 1 : end]])
        for name in (named.get("names") or named["name"]).split(","):
            found[name.strip().lstrip("*")] = text
        at = end
    return at


def _block_end(lines: list[str], at: int, indent: int) -> int:
    """Where the lines end that are indented at least so far; blank lines before the end do not belong to them."""
    end = at
    while at < len(lines) and (not lines[at].strip() or _indent(lines[at]) >= indent):
        at += 1
        end = at if lines[at - 1].strip() else end
    return end


def _after(lines: list[str], at: int) -> str:
    return next((line for line in lines[at:] if line.strip()), "")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _joined(lines: list[str]) -> str:
    return " ".join(part for line in lines if (part := line.strip()))
