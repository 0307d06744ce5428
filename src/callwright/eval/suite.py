"""The suite: a number of cases of each group, from a seed. A smaller size is the start of a larger one."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from random import Random
from typing import Final, Literal, TypeAlias, get_args

from callwright.eval.case import Case
from callwright.eval.groups import (
    answers,
    demands,
    dialogues,
    many_tools,
    one_tool,
    optional,
    parallel,
    restraint,
    texts,
    values,
)
from callwright.tolerant_json.codec import encode

Size: TypeAlias = Literal["quick", "normal", "full"]
Generator: TypeAlias = Callable[[Random], Iterator[Case]]

# Cases of each group.
SIZES: Final[Mapping[Size, int]] = dict(zip(get_args(Size), (4, 14, 40), strict=True))
GROUPS: Final[Mapping[str, Generator]] = {
    "one_tool": one_tool.cases,
    "many_tools": many_tools.cases,
    "values": values.cases,
    "texts": texts.cases,
    "optional": optional.cases,
    "parallel": parallel.cases,
    "dialogues": dialogues.cases,
    "restraint": restraint.cases,
    "demands": demands.cases,
    "answers": answers.cases,
}


def suite(size: Size = "normal", seed: int = 0, groups: Sequence[str] = tuple(GROUPS)) -> list[Case]:
    """The cases of some groups, no two alike. The same seed gives the same cases, on every machine."""
    made = (_differing(GROUPS[name](Random(f"{seed}/{name}"))) for name in groups)
    return [case for cases in made for case in islice(cases, SIZES[size])]


def _differing(cases: Iterator[Case]) -> Iterator[Case]:
    seen: set[bytes] = set()
    for case in cases:
        asked = encode(case.request())
        if asked not in seen:
            seen.add(asked)
            yield case


def digest_of(cases: Sequence[Case]) -> str:
    """Fingerprint of a set of cases."""
    return hashlib.blake2s(" ".join(case.digest for case in cases).encode(), digest_size=8).hexdigest()
