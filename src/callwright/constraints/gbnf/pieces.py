"""Parts of GBNF that are put together: how they are written, how large they grow, how they can begin."""

from collections.abc import Collection, Mapping
from typing import Final, TypeAlias

from msgspec import Struct

# llama.cpp takes no more, counted through repetitions in repetitions.
_MAX_REPEATED: Final = 2_000
_BLOCK: Final = 1_000
_MAX_COUNTED: Final = 1_000_000
_MAX_STARTS: Final = 500
# Here something is read.
_READ: Final = "!"

# The ways in which a part can begin: names of rules, one after the other, until something is read for sure.
Starts: TypeAlias = frozenset[tuple[str, ...]]


class UnsayableError(Exception):
    """Something that the notation has no words for, or too many."""


class GbnfPart(Struct, frozen=True):
    """A part of a sequence; `size` is its expanded size when it is repeated."""

    text: str
    size: int = 1
    starts: Starts = frozenset({(_READ,)})

    @classmethod
    def from_rule(cls, rule: str) -> "GbnfPart":
        """A rule by its name."""
        return cls(rule, starts=frozenset({(rule,)}))


def row(parts: Collection[GbnfPart]) -> GbnfPart:
    """One after the other."""
    starts: Starts = frozenset({()})
    for part in parts:
        starts = frozenset(a if a[-1:] == (_READ,) else a + b for a in starts for b in part.starts)
        if len(starts) > _MAX_STARTS:
            raise UnsayableError
    text = " ".join(part.text for part in parts if part.text) or '""'
    return GbnfPart(text, max(sum(part.size for part in parts), 1), starts)


def either(parts: Collection[GbnfPart]) -> GbnfPart:
    """One of these."""
    if len(parts) == 1:
        return next(iter(parts))
    text = " | ".join(part.text for part in parts)
    return GbnfPart(f"({text})", sum(part.size for part in parts), frozenset().union(*(part.starts for part in parts)))


_TIMES: Final[Mapping[tuple[int, int | None], str]] = {(0, None): "*", (1, None): "+", (0, 1): "?"}


def repeated(piece: GbnfPart, least: int, most: int | None, rules: dict[str, str]) -> GbnfPart:
    """A repetition. One that is too large gets rules of its own."""
    if max(least, most or 0) > _MAX_COUNTED:
        raise UnsayableError
    starts = piece.starts if least else piece.starts | {()}
    if max(least, most or 0) * piece.size > _MAX_REPEATED:
        rules[name := f"r{len(rules)}"] = piece.text
        return GbnfPart(f"({repeat_rule(rules, name, least, most)})", starts=starts)
    times = _TIMES.get((least, most), f"{{{least},{'' if most is None else most}}}")
    return GbnfPart(f"({piece.text}){times}", piece.size * max(most or least, 1), starts)


def repeat_rule(rules: dict[str, str], name: str, least: int, most: int | None) -> str:
    """A rule, `least` to `most` times: in blocks if these are more than llama.cpp repeats.

    The optional part is a chain in which a block is either whole or the last, so that few ways are open at a time.
    """
    if max(least, most or 0) <= _BLOCK:
        return f"{name}{{{least},{'' if most is None else most}}}"
    rules[block := f"{name}-block"] = f"{name}{{{_BLOCK}}}"
    blocks, odd = divmod(least, _BLOCK)
    parts = [*([f"{block}{{{blocks}}}"] if blocks else []), *([f"{name}{{{odd}}}"] if odd else [])]
    if most is None:
        return " ".join([*parts, f"{name}*"])
    blocks, odd = divmod(most - least, _BLOCK)
    end = f"{name}-upto{odd}"
    rules[end] = f"{name}{{0,{odd}}}"
    if blocks:
        rules[short := f"{name}-short"] = f"{name}{{0,{_BLOCK - 1}}}"
        for number in range(blocks):
            rules[f"{end}-{number}"] = f"{short} | {block} {end if not number else f'{end}-{number - 1}'}"
        end = f"{end}-{blocks - 1}"
    return " ".join([*parts, end])


def calls_itself_first(rules: Mapping[str, GbnfPart]) -> bool:
    """Whether a rule can come to itself before anything is read: GBNF has no such rules."""
    empty: set[str] = set()
    while more := {name for name, piece in rules.items() if any(empty.issuperset(way) for way in piece.starts)} - empty:
        empty |= more
    firsts: dict[str, set[str]] = {}
    for name, piece in rules.items():
        firsts[name] = set()
        for way in piece.starts:
            for step in way:
                if step != _READ:
                    firsts[name].add(step)
                if step not in empty:
                    break
    for name in rules:
        waiting, seen = [name], set[str]()
        while waiting:
            for other in firsts.get(waiting.pop(), ()):
                if other == name:
                    return True
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)
    return False
