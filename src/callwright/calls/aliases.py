"""Which declared parameter a name means that the tool does not declare.

First names of one meaning (`path` for `file_path`), then other spellings, then one wrong letter. Source of the groups:
the names that models and common tools use for the same thing; users add their own.
"""

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from msgspec import Struct

__all__ = [
    "GROUPS",
    "AliasGroups",
    "NameRule",
    "ParameterAliases",
    "ToolInferenceRule",
    "fold",
    "may_rename",
    "resolve_parameter_name",
]

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
# A name with one wrong letter must have this many to be recognised.
_MIN_LETTERS: Final = 5


class ToolInferenceRule(Struct, frozen=True):
    """An object with all these keys is the arguments of this tool, where several tools would take it."""

    tool: str
    keys: frozenset[str]


class ParameterAliases(Struct, frozen=True):
    """What is known about the names that models use: groups of one meaning, and rules for arguments without a name."""

    aliases: AliasGroups = GROUPS
    inference: tuple[ToolInferenceRule, ...] = ()


def may_rename(schema: Mapping[str, object]) -> bool:
    """Whether names that a schema does not declare may mean others: not where it says that it takes any."""
    return "patternProperties" not in schema and schema.get("additionalProperties", False) is False


def resolve_parameter_name(
    key: str, declared: Collection[str], missing: Collection[str], groups: AliasGroups = GROUPS
) -> tuple[str, NameRule] | None:
    """The declared name that an undeclared `key` means, and by what.

    `missing` are the required names that were not given; only these are recognised with a wrong letter.
    """
    related = {name for group in groups if key in group for name in group if name in declared}
    if len(related) == 1:
        return related.pop(), "alias"
    folded = fold(key)
    same = [name for name in declared if fold(name) == folded]
    if len(same) == 1:
        return same[0], "spelling"
    near = [name for name in missing if len(name) >= _MIN_LETTERS and _one_edit(name, key)]
    return (near[0], "letter") if len(near) == 1 else None


def _one_edit(one: str, other: str) -> bool:
    """Whether one letter more, less, changed, or two swapped make one word the other."""
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

_MAX_NAME = 64  # of names that are folded again and again


def fold(text: str) -> str:
    """A text without case, blanks and the marks that join words."""
    return _fold(text) if len(text) > _MAX_NAME else _folded_name(text)


def _fold(text: str) -> str:
    return _JOINTS.sub("", text).casefold()


_folded_name = lru_cache(maxsize=8_192)(_fold)
