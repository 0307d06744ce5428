"""A shape as GBNF, for llama.cpp.

All marks are written as text: literals match a control token by its text, and text works with any vocabulary. The stop
token after the last call is left out: a grammar must not contain end-of-generation tokens. Free text with calls in it
is a lazy grammar, which begins at its trigger.
"""

import json
from typing import Final, assert_never

from msgspec import Struct

from callwright.calls.custom_tools import INPUT
from callwright.constraints.format_pieces import Fixed, Number
from callwright.constraints.gbnf.lark import lark_rules
from callwright.constraints.gbnf.pieces import UnsayableError, repeat_rule
from callwright.constraints.gbnf.regex import expression
from callwright.constraints.gbnf.schema import SchemaRules
from callwright.constraints.gbnf.text import IN_TEXTS, class_of, gbnf_literal, without_characters
from callwright.constraints.schema_subset import projected
from callwright.constraints.tree import (
    Alternatives,
    Concatenation,
    GrammarNode,
    Json,
    Literal,
    Optional,
    Pattern,
    Ref,
    Repeat,
    Text,
    TextRule,
    TextUntil,
    Triggered,
    Values,
)
from callwright.prompt import Control

_QUOTE: Final = r'"\""'
# In a text of no more characters than this, one of sixteen may be one that begins its end.
_SHORT: Final = 1_024
_CHARACTERS_PER_TRY: Final = 16


class Gbnf(Struct, frozen=True):
    """A grammar. `trigger`: it holds only from this text on, and not before."""

    grammar: str
    trigger: str = ""


def gbnf(node: GrammarNode) -> Gbnf:
    """The grammar of a tree."""
    last = node.nodes[-1] if isinstance(node, Concatenation) and node.nodes else node
    if isinstance(last, Triggered):  # reasoning before it is free text, too
        begin, more = Literal((Control(last.trigger),)), () if last.again is None else (last.again,)
        return Gbnf(_Writer().write(Concatenation((begin, last.rest, Literal(last.end), *more))), last.trigger)
    return Gbnf(_Writer().write(node))


class _Writer:
    def __init__(self) -> None:
        self._rules: dict[str, str] = {}
        self._names: dict[int, str] = {}  # by the node
        self._ends: dict[tuple[str, int | None], str] = {}  # by the text that ends a free one, and its length
        self._schemas = SchemaRules(self._rules)

    def write(self, node: GrammarNode) -> str:
        root = self._of(node)
        return "\n".join([f"root ::= {root}", *(f"{name} ::= {body}" for name, body in self._rules.items())]) + "\n"

    def _of(self, node: GrammarNode) -> str:
        if isinstance(node, Literal):
            return _fixed(node.fixed)
        if isinstance(node, TextUntil) and id(node) not in self._names:
            end = "".join(piece.text for piece in node.end if not isinstance(piece, Number))
            words = node.words
            held = self._words(words, in_json=False) if words is not None else None
            free = self._until(end, words.most if words is not None else None)
            self._names[id(node)] = free if held is None else f"{held} {gbnf_literal(end)}"
        if id(node) not in self._names:
            self._names[id(node)] = name = f"n{len(self._names)}"
            if isinstance(node, Json):
                self._json(node, name)
            else:
                self._rules[name] = ""
                self._rules[name] = self._body(node)
        return self._names[id(node)]

    def _body(self, node: GrammarNode) -> str:
        match node:
            case Text():
                return f"{class_of(IN_TEXTS)}*"
            case Pattern(pattern, words, most):
                held = self._words(words, in_json=True) if words is not None else None
                said = expression(pattern, in_json=False, rules=self._rules, most=most)
                return said.text if held is None else f"{_QUOTE} {held} {_QUOTE}"
            case Ref(inner) | Values(inner):
                return self._of(inner)
            case Concatenation(nodes):
                return " ".join(map(self._of, nodes)) or '""'
            case Alternatives(nodes):
                return " | ".join(self._of(inner) for inner in nodes)
            case Optional(inner):
                return f"({self._of(inner)})?"
            case Repeat(inner, most):
                return f"({self._of(inner)}){'*' if most is None else f'{{0,{most}}}'}"
            case Triggered() | Literal() | Json() | TextUntil():
                raise AssertionError
            case _:
                assert_never(node)

    def _json(self, node: Json, name: str) -> None:
        held = self._words(node.words, in_json=True) if node.words is not None else None
        if held is None:
            self._schemas.add(projected(node.schema, "llamacpp", node.limits), name)
            return
        key = gbnf_literal(json.dumps(INPUT))
        self._rules[name] = f'"{{" {key} {self._schemas.shared("colon")} {_QUOTE} {held} {_QUOTE} "}}"'

    def _words(self, words: TextRule, *, in_json: bool) -> str | None:
        """The rule of a text that is held to an expression or a grammar; None if GBNF cannot express that."""
        name = f"w{len(self._rules)}"
        try:
            if words.lark is not None:
                return lark_rules(words.lark, self._rules, name, in_json=in_json)
            if words.pattern is not None:
                said = expression(words.pattern, in_json=in_json, rules=self._rules, most=words.most)
                self._rules[name] = said.text
                return name
        except UnsayableError:
            pass
        return None

    def _until(self, end: str, most: int | None) -> str:
        """Free text up to the first `end`: a rule for each part of `end` that may have been read.

        With `most` there are as many characters at most between two that may begin `end`; in a short text these are
        counted, too.
        """
        if (end, most) in self._ends:
            return self._ends[end, most]
        name = f"u{len(self._ends)}"
        self._ends[end, most] = first = f"{name}-0-0"
        fallback = _fallbacks(end)
        known = sorted(set(end))
        others = class_of(without_characters(IN_TEXTS, known))
        self._rules[f"{name}-plain"] = class_of(without_characters(IN_TEXTS, end[:1]))
        plain = f"{name}-plain*" if most is None else repeat_rule(self._rules, f"{name}-plain", 0, most)
        tries = most // _CHARACTERS_PER_TRY if most is not None and most <= _SHORT else 0
        for tried in range(tries + 1):
            again = tried + 1 if tries else tried
            following = f"{name}-1-{tried}" if len(end) > 1 else ""
            self._rules[f"{name}-0-{tried}"] = f"{plain} {gbnf_literal(end[0])} {following}".rstrip()
            for state in range(1, len(end)):
                ways = [f"{others} {name}-0-{again}"]
                for character in known:
                    after = _after(end, fallback, state, character)
                    attempt = tried if after == state + 1 else again
                    rest = "" if after == len(end) else f" {name}-{after}-{attempt}"
                    ways += [gbnf_literal(character) + rest]
                kept = [way for way in ways if not way.endswith(f"-{tries + 1}")]
                self._rules[f"{name}-{state}-{tried}"] = " | ".join(kept)
        return first


def _fallbacks(end: str) -> list[int]:
    """For each part of `end`: the longest shorter part that it ends with (Knuth, Morris, Pratt)."""
    found = [0] * (len(end) + 1)
    for at in range(1, len(end)):
        found[at + 1] = _after(end, found, found[at], end[at])
    return found


def _after(end: str, fallback: list[int], state: int, character: str) -> int:
    """Length of the prefix of `end` that is matched after this character."""
    while state and end[state] != character:
        state = fallback[state]
    return state + (end[state] == character)


def _fixed(fixed: Fixed) -> str:
    out = []
    for piece in fixed:
        if isinstance(piece, Number):
            out.append(piece.pattern)
        else:
            out.append(gbnf_literal(piece.text))
    return " ".join(out) or '""'
