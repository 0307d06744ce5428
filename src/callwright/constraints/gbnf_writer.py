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
# How often in a row a text may begin its end anew, as blank lines do before an end that begins with a line feed.
_MAX_RESTARTS: Final = 8


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
        self._ends: dict[tuple[str, int, int | None], str] = {}  # by the text that ends a free one, and its lengths
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
            rule = words or TextRule()
            free = f"{held} {gbnf_literal(end)}" if held is not None else self._until(end, rule.least, rule.most)
            self._names[id(node)] = free
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

    def _until(self, end: str, least: int, most: int | None) -> str:
        """Free text of `least` to about `most` characters up to the first `end`.

        It is counted in units: one character, or a few that `end` could begin with and one that does not continue it.
        A unit has a rule for each part of `end` that may have been read, and so has the end itself.
        """
        if (end, least, most) in self._ends:
            return self._ends[end, least, most]
        name = f"u{len(self._ends)}"
        self._ends[end, least, most] = name
        fallback, known = _fallbacks(end), sorted(set(end))
        begin = gbnf_literal(end[0])
        others = class_of(without_characters(IN_TEXTS, known))
        ways = [class_of(without_characters(IN_TEXTS, end[:1]))]
        if len(end) > 1:
            ways.append(f"{begin} {name}-text-1-0")
            begin = f"{begin} {name}-end-1-0"
        self._rules[f"{name}-unit"] = " | ".join(ways)
        self._rules[name] = f"{repeat_rule(self._rules, f'{name}-unit', least, most)} {begin}"
        for restarts in range(_MAX_RESTARTS + 1):
            for state in range(1, len(end)):
                texts, ends = [others], []
                for character in known:
                    after = _after(end, fallback, state, character)
                    following = f"-{after}-{restarts + (after <= state)}"
                    read = gbnf_literal(character)
                    if after == 0:
                        texts.append(read)
                    elif after == len(end):
                        ends.append(read)
                    elif after > state or restarts < _MAX_RESTARTS:
                        texts.append(f"{read} {name}-text{following}")
                        ends.append(f"{read} {name}-end{following}")
                self._rules[f"{name}-text-{state}-{restarts}"] = " | ".join(texts)
                self._rules[f"{name}-end-{state}-{restarts}"] = " | ".join(ends)
        return name


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
