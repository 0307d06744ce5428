"""Which parameter a model means by a name that the tool does not declare.

In this order: a known alias (`path` for `file_path`), another spelling (`userId` for `user_id`), one wrong letter
(`querry`). The alias groups were collected from what models and common tools call the same thing; users add their own.
"""

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from msgspec import Struct

NameRule = Literal["alias", "spelling", "letter"]
AliasGroups: TypeAlias = tuple[frozenset[str], ...]

GROUPS: Final[AliasGroups] = tuple(
    frozenset(group.split())
    for group in (
        "filepath file_path filePath file filename path",
        "path directory dir_path dirPath dir folder",
        "command cmd shell_command",
        "query query_text search_query",
        "unified_diff diff patch",
        "url link webpage uri",
        "location city place",
        "container container_id container_name",
        "pod pod_name pod_id",
        "text content body",
        "search find old_text original",
        "replace replacement new_text",
        "num_results top_n top_k count limit max_results",
    )
)
# A name must have this many letters to be recognised with one of them wrong.
_MIN_LETTERS: Final = 5
# Where more names than this are missing, none is looked for letter by letter: that is no slip, and each search is long.
_MAX_MISSING: Final = 256


class ToolInferenceRule(Struct, frozen=True):
    """An object with all these keys is the arguments of `tool`, where several tools would accept it."""

    tool: str
    keys: frozenset[str]


class ParameterAliases(Struct, frozen=True):
    """Parameter names that models use.

    `aliases` are groups of names with one meaning. `inference` finds the tool for arguments without a tool name.
    """

    aliases: AliasGroups = GROUPS
    inference: tuple[ToolInferenceRule, ...] = ()


def may_rename(schema: Mapping[str, object]) -> bool:
    """Whether a schema allows undeclared names to be renamed: not if it accepts additional properties, which they may
    be.
    """
    return "patternProperties" not in schema and schema.get("additionalProperties", False) is False


class ParameterNames:
    """The names that a tool declares, for many looks at them."""

    def __init__(self, declared: Collection[str]) -> None:
        self._declared = declared
        self._folded: dict[str, str | None] = {}  # None where two names are spelled alike
        for name in declared:
            folded = fold(name)
            self._folded[folded] = None if folded in self._folded else name

    def resolve(self, key: str, missing: Collection[str], groups: AliasGroups = GROUPS) -> tuple[str, NameRule] | None:
        related = {name for group in groups if key in group for name in group if name in self._declared}
        if len(related) == 1:
            return related.pop(), "alias"
        if (same := self._folded.get(fold(key))) is not None:
            return same, "spelling"
        if len(missing) > _MAX_MISSING:
            return None
        near = [name for name in missing if len(name) >= _MIN_LETTERS and _one_edit(name, key)]
        return (near[0], "letter") if len(near) == 1 else None


def _one_edit(one: str, other: str) -> bool:
    """Whether the words are one letter apart: one more, one less, one changed, or two neighbours swapped."""
    if one == other or abs(len(one) - len(other)) > 1:
        return False
    at = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    rests = (one[at:], other[at:])
    return (
        rests[0][1:] == rests[1][1:]
        or rests[0][1:] == rests[1]
        or rests[0] == rests[1][1:]
        or (rests[0][:2] == rests[1][1::-1] and rests[0][2:] == rests[1][2:])
    )


_JOINTS = re.compile(r"[\s_.-]+")

_MAX_NAME = 64  # longer texts are not names that come again, and are not cached


def fold(text: str) -> str:
    """A name without case, white space and joints, for comparison: `Get-Weather` and `get_weather` are the same."""
    return _fold(text) if len(text) > _MAX_NAME else _folded_name(text)


def _fold(text: str) -> str:
    return _JOINTS.sub("", text).casefold()


_folded_name = lru_cache(maxsize=8_192)(_fold)
