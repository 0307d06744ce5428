"""Edits the keys in the text of a configuration file; every other byte stays as it is.

tomlkit preserves the comments and the layout of a table that it changes, but reorders the tables of an array if other
tables appear between them. So it gets only the part to change: one `[[keys]]` table, or the lines before the first
table if they contain `keys = […]`.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any, Final

import tomlkit
from tomlkit.items import Array

_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")  # TOML has no other line ends; str.splitlines knows eight more


def add_key(text: str, settings: Mapping[str, Any]) -> str:
    """The text with another key, after the last one, or at the end of the file. The text must be valid TOML."""
    parts = _parts(text)
    if _has_array(parts[0]):
        return _with_array(parts, lambda keys: keys.append(_fill(tomlkit.inline_table(), settings)))
    document = tomlkit.document()
    document.append("keys", tomlkit.aot())
    document["keys"].append(_fill(tomlkit.table(), settings))
    added = _with_line_ends(f"\n{document.as_string()}", text)
    places = _places(parts)
    before = "".join(parts[: places[-1][-1]]) + _lines_of(parts[places[-1][-1]]) if places else text
    if before and not before.endswith("\n"):
        added = _with_line_ends("\n", text) + added
    return before + added + text[len(before) :]


def change_key(text: str, number: int, settings: Mapping[str, Any]) -> str:
    """The text with other settings of the key with this number, from 0. A value of None removes a setting."""
    parts = _parts(text)
    if _has_array(parts[0]):
        return _with_array(parts, lambda keys: _fill(keys[number], settings))
    place = _places(parts)[number][0]
    table = _own(parts[place])
    document = tomlkit.parse(table)
    _fill(document["keys"][0], settings)
    parts[place] = _with_line_ends(document.as_string(), table) + parts[place][len(table) :]
    return "".join(parts)


def remove_key(text: str, number: int) -> str:
    """The text without the key with this number, from 0. Comments above and below its tables stay."""
    parts = _parts(text)
    if _has_array(parts[0]):
        return _with_array(parts, lambda keys: keys.pop(number))
    for place in reversed(_places(parts)[number]):
        _remove_table(parts, place)
    return "".join(parts)


def _remove_table(parts: list[str], place: int) -> None:
    """Remove a table; comments after it are left."""
    before, after = _LINE.findall(parts[place - 1]), _LINE.findall(parts[place][len(_own(parts[place])) :])
    if not (after and after[0].strip()):  # one blank line of two, or the one at the edge of the file
        if before and not before[-1].strip():
            before.pop()
        elif not before:
            del after[:1]
    parts[place - 1], parts[place] = "".join(before), "".join(after)


def _parts(text: str) -> list[str]:
    """The text cut before each table header. A line in an array or a string may begin with a bracket, too; the text
    before it is incomplete.
    """
    parts = [""]
    for line in _LINE.findall(text):
        if line.lstrip().startswith("[") and _is_whole(parts[-1]):
            parts.append("")
        parts[-1] += line
    return parts


def _is_whole(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _has_array(head: str) -> bool:
    return "keys" in tomllib.loads(head)


def _with_array(parts: list[str], edit: Callable[[Array], object]) -> str:
    """The text with an edited array `keys`, before the first table."""
    head = tomlkit.parse(parts[0])
    found = head["keys"]
    assert isinstance(found, Array)
    edit(found)
    return "".join((_with_line_ends(head.as_string(), parts[0]), *parts[1:]))


def _places(parts: list[str]) -> list[list[int]]:
    """Which parts have each key: its `[[keys]]` table, then tables in it, such as `[keys.budget]`."""
    places: list[list[int]] = []
    for number, part in enumerate(parts[1:], 1):
        keys = tomllib.loads(part).get("keys")
        if isinstance(keys, list):
            places.append([number])
        elif keys is not None:
            places[-1].append(number)
    return places


def _own(part: str) -> str:
    """The lines of a table up to its last setting, without comments and blank lines after it."""
    lines = _LINE.findall(part)
    end = len(lines)
    while end > 1 and _is_blank_or_comment(lines[end - 1]):
        end -= 1
    while not _is_whole("".join(lines[:end])):  # what looks like a comment ends a string of several lines
        end += 1
    return "".join(lines[:end])


def _lines_of(part: str) -> str:
    """The lines of a table with the comments that follow it directly, up to a blank line; without one, the comments may
    be about the next table.
    """
    own = _own(part)
    rest = _LINE.findall(part[len(own) :])
    blank = next((number for number, line in enumerate(rest) if not line.strip()), 0)
    return own + "".join(rest[:blank])


def _is_blank_or_comment(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _fill(table: Any, settings: Mapping[str, Any]) -> Any:
    for name, value in settings.items():
        if value is not None:
            table[name] = value
        elif name in table:
            del table[name]
    return table


def _with_line_ends(text: str, original: str) -> str:
    """The text with the line ends of the original, if all of that are CRLF."""
    ends = original.count("\n")
    if not ends or original.count("\r\n") < ends:
        return text
    return re.sub(r"\r?\n", "\r\n", text)
