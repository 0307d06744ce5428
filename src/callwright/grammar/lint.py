"""Restrictions of OpenAI on the grammar of a custom tool, and inputs that would crash the engine.

A definition that passes may still be refused by the engine, which alone knows Rust's regular expressions and the names
in `common`; this module knows no engine. Rules that `start` never reaches may use undefined names, as in the engine,
but a token that is refused (`lark_tokens`) is refused there too.
"""

import itertools
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from callwright.errors import GrammarError
from callwright.grammar.errors import refused
from callwright.grammar.lark_parser import Alternatives, Definition, Lark, Use, read_lark
from callwright.grammar.regex_lint import regex_fault

# The longest known grammar is shorter than a tenth of that.
_MAX_CHARACTERS: Final = 100_000
# Limit of nested rules and groups, added up: the engine recurses on the machine's stack and crashes, with the whole
# process, near 2,900 (llguidance 1.9.1, 8 MB).
_MAX_DEPTH: Final = 1_000
# Limit of alternatives and optional parts in all rules. The engine accepts 2,000 at one place, but before it refuses
# more it does work that grows with their square, and holds the GIL: 0.7 s at this limit.
_MAX_ALTERNATIVES: Final = 5_000
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")


@dataclass(slots=True)
class _Sequence:
    """One alternative of a rule, named, or of a group in it, numbered: how many of its parts have no end yet."""

    owner: str | int
    missing: int


def check_lark(definition: str) -> None:
    """Raise `GrammarError` for the first thing that is wrong with a Lark definition."""
    _check_text(definition)
    lark = read_lark(definition)
    if "start" not in lark.rules:
        raise refused(definition, 0, "no rule 'start'", "Name the rule for the whole text 'start'.")
    order = list(_reached(definition, lark))
    count = sum(_ways(rule.alternatives) for rule in order)
    if count > _MAX_ALTERNATIVES:
        way_out = "Make terminals of what is only a list of words: names in upper case cost nothing here."
        raise refused(definition, 0, f"rules with {count:,} alternatives are too complex", way_out)
    if "start" not in _finite(order):
        fault = "no text can ever be complete: 'start' always leads back to a rule that is not finished"
        raise refused(definition, lark.rules["start"].at, fault, "Give a rule on that way an alternative that ends.")


def check_regex(definition: str) -> None:
    """Raise `GrammarError` for the first thing that is wrong with a regular expression."""
    _check_text(definition)
    if fault := regex_fault(definition):
        raise refused(definition, fault.at, fault.fault, fault.way_out)


def _check_text(definition: str) -> None:
    if len(definition) > _MAX_CHARACTERS:
        fault = f"{len(definition):,} characters are too many"
        raise refused(definition, 0, fault, f"A definition may have {_MAX_CHARACTERS:,}.")
    if half := _SURROGATE.search(definition):
        raise refused(definition, half.start(), "half of a surrogate pair", "Send the definition as valid Unicode.")


def _reached(definition: str, lark: Lark) -> Iterator[Definition]:
    """The rules that `start` reaches, each after those that it names first; names are checked on the way.

    Goes the way of the engine, depth first in the order of the text, so that it goes as deep as the engine will.
    """
    done: set[tuple[bool, str]] = set()
    open_: set[tuple[bool, str]] = set()
    for root in (*lark.ignored, lark.rules["start"]):
        way = [(root, iter(root.uses), 0)]
        open_.add((root.terminal, root.name))
        while way:
            current, uses, depth = way[-1]
            for use in uses:
                named = _resolve_name(definition, lark, current, use)
                key = (named.terminal, named.name)
                if key in done:
                    continue
                if key in open_:
                    if named.terminal:
                        raise _of_circle(definition, use)
                    continue
                deeper = depth + use.depth + 1
                if deeper > _MAX_DEPTH:
                    fault = f"more than {_MAX_DEPTH:,} levels of rules in rules"
                    raise refused(definition, use.at, fault, "Repeat with * or + instead of one rule for each step.")
                open_.add(key)
                way.append((named, iter(named.uses), deeper))
                break
            else:
                way.pop()
                open_.discard((current.terminal, current.name))
                done.add((current.terminal, current.name))
                if not current.terminal:
                    yield current


def _resolve_name(definition: str, lark: Lark, current: Definition, use: Use) -> Definition:
    """The definition of a name. Terminals may use only terminals."""
    if not current.terminal and use.name in lark.rules:
        return lark.rules[use.name]
    if use.name in lark.terminals:
        return lark.terminals[use.name]
    if use.name in lark.rules:
        fault = f"rule {use.name!r} in {current.name}, which is made of terminals"
        raise refused(definition, use.at, fault, "Make a terminal of it, in upper case, or a rule of both.")
    if use.name[0] in "?!":
        way_out = f"Put a space after {use.name[0]!r}, which belongs to the text before it or to a definition."
        raise refused(definition, use.at, f"{use.name!r} is not defined", way_out)
    raise refused(definition, use.at, f"{use.name!r} is not defined", "Define it, or %import it from common.")


def _of_circle(definition: str, use: Use) -> GrammarError:
    fault = f"terminal {use.name!r} is made of itself"
    return refused(definition, use.at, fault, "Use a rule, in lower case: only rules can be recursive.")


def _finite(order: list[Definition]) -> set[str]:
    """The rules that have a finite text. Each use is visited once, even in cycles."""
    rules = {rule.name for rule in order}
    waiting: defaultdict[str | int, list[_Sequence]] = defaultdict(list)
    ending: list[str | int] = []
    open_: list[tuple[str | int, Alternatives]] = [(rule.name, rule.alternatives) for rule in order]
    groups = itertools.count()
    while open_:
        owner, alternatives = open_.pop()
        for items in alternatives:
            needed: list[str | int] = []
            for item in items:
                if item.needed and item.inner:
                    needed.append(next(groups))
                    open_.append((needed[-1], item.inner))
                elif item.needed and item.name in rules:
                    needed.append(item.name)
            sequence = _Sequence(owner, len(needed))
            for name in needed:
                waiting[name].append(sequence)
            if not needed:
                ending.append(owner)
    finite: set[str | int] = set()
    while ending:
        one = ending.pop()
        if one in finite:
            continue
        finite.add(one)
        for sequence in waiting[one]:
            sequence.missing -= 1
            if not sequence.missing:
                ending.append(sequence.owner)
    return {name for name in finite if isinstance(name, str)}


def _ways(alternatives: Alternatives) -> int:
    return len(alternatives) + sum(
        (not item.needed) + _ways(item.inner or []) for sequence in alternatives for item in sequence
    )
