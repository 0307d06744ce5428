"""A shape as Lark for llguidance: in-process, vLLM and SGLang with that backend, llama.cpp built with it.

Literals that are special tokens in the engine's vocabulary are written as tokens: neither text nor JSON ever swallows
one, and a text never matches one.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final, assert_never

import msgspec

from callwright.calls.custom_tools import INPUT
from callwright.constraints.format_pieces import Fixed, Number
from callwright.constraints.schema_subset import SPACING, projected
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

_TEXT: Final = "TEXT"
# The engine counts characters by states, and looks at all of them when two expressions shall hold.
_MAX_COUNTED: Final = 2_000
# Longer texts that must not hold a mark are not held to a least length above one.
_MAX_HELD: Final = 100


class Vocabulary(msgspec.Struct, frozen=True):
    """An engine's special tokens.

    `specials`: how literals that are special tokens are written (`<|call|>`, `<[257]>`); `ends`: the same for the
    tokens that end the model's output. If empty, the engine knows its end itself.
    """

    specials: Mapping[str, str] = {}
    ends: tuple[str, ...] = ()


def lark(node: GrammarNode, vocabulary: Vocabulary | None = None) -> str:
    """The grammar; its first line names its kind, which llama.cpp needs."""
    return _Writer(vocabulary or Vocabulary()).write(node)


class _Writer:
    def __init__(self, vocabulary: Vocabulary) -> None:
        self._tokens = vocabulary.specials
        self._ends = vocabulary.ends
        self._rules: dict[int, str] = {}  # by the node
        self._lines: list[str] = []

    def write(self, node: GrammarNode) -> str:
        start = self._of(node)
        if self._ends:
            start = f"{start} ({' | '.join(self._ends)})"
        return "\n".join(["%llguidance {}", f"start: {start}", f"{_TEXT}: /(.|\\n)*/", *self._lines]) + "\n"

    def _of(self, node: GrammarNode) -> str:
        if isinstance(node, Literal):
            return self._fixed(node.fixed)
        if id(node) not in self._rules:
            self._rules[id(node)] = name = f"n{len(self._rules)}"
            self._rule(name, node)
        return self._rules[id(node)]

    def _rule(self, name: str, node: GrammarNode) -> None:
        match node:
            case Json():
                self._say(name, f"%json {json.dumps(self._schema(node), ensure_ascii=False)}")
            case TextUntil(end, words):
                self._until(name, end, words)
            case Text():
                self._say(name, _TEXT)
            case Pattern(expression, _, most):
                self._say(f"{name.upper()}_TEXT", f"/{_between_slashes(expression)}/{_up_to(most)}")
                self._say(name, f"{name.upper()}_TEXT")
            case Ref(inner) | Values(inner):
                self._say(name, self._of(inner) or '""')
            case Concatenation(nodes):
                self._say(name, " ".join(filter(None, map(self._of, nodes))) or '""')
            case Alternatives(nodes):
                self._say(name, "\n  | ".join(self._of(inner) or '""' for inner in nodes))
            case Optional(inner):
                self._say(name, f"({self._of(inner)})?")
            case Repeat(inner, most):
                self._say(name, f"({self._of(inner)}){'*' if most is None else f'{{0,{most}}}'}")
            case Triggered(trigger, rest, end, again):
                self._triggered(name, trigger, f"{self._of(rest)} {self._fixed(end)}".rstrip(), "*" if again else "?")
            case Literal():
                raise AssertionError
            case _:
                assert_never(node)

    def _say(self, name: str, body: str) -> None:
        self._lines.append(f"{name}: {body}")

    def _until(self, name: str, end: Fixed, words: TextRule | None) -> None:
        """Free text before a special token ends by itself; before a text it has to be lazy, or must not hold that."""
        texts: list[str] = []
        rest = list(end)
        while rest and not isinstance(rest[0], Number) and rest[0].text not in self._tokens:
            texts.append(rest.pop(0).text)  # type: ignore[union-attr]
        behind, mark = self._fixed(tuple(rest)), _escaped("".join(texts))
        most = words.most if words is not None else None
        is_counted = words is not None and words.least and (most is None or most <= _MAX_HELD)
        if words is not None and (is_counted or words.pattern is not None or not texts):
            free = f" & ~/(.|\\n)*{mark}(.|\\n)+/" if mark else ""
            if words.pattern is not None:
                free += _up_to(words.most, len("".join(texts)))
            self._say(f"{name.upper()}_TEXT", f"/(?:{_expression(words)}){mark}/{free}")
            self._say(f"{name}_text", f"{name.upper()}_TEXT")
        elif texts:
            times = "*" if most is None else f"{{0,{most}}}"
            # narrower than the rule: the least number of characters has none that the end begins with
            first = f"[^{_escaped(texts[0][0])}]{{{words.least}}}" if words is not None and words.least else ""
            self._say(f"{name}_text[lazy]", f"/{first}(.|\\n){times}{mark}/")
        else:
            self._say(f"{name}_text", _TEXT)
        self._say(name, f"{name}_text {behind}".rstrip())

    def _triggered(self, name: str, trigger: str, rest: str, times: str) -> None:
        if trigger in self._tokens:
            self._say(name, f"({_TEXT} {self._tokens[trigger]} {rest}){times} {_TEXT}")
            return
        mark = _escaped(trigger)
        self._say(f"{name.upper()}_REST", f"/(.|\\n)*/ & ~/(.|\\n)*{mark}(.|\\n)*/")
        self._say(f"{name}_head[lazy]", f"/(.|\\n)*{mark}/")
        self._say(name, f"({name}_head {rest}){times} {name.upper()}_REST")

    def _fixed(self, fixed: Fixed) -> str:
        out: list[str] = []
        text = ""
        for piece in fixed:
            if isinstance(piece, Number):
                out += [_quote(text), f"/{piece.pattern}/"]
                text = ""
            elif isinstance(piece, Control) and piece.text in self._tokens:
                out += [_quote(text), self._tokens[piece.text]]
                text = ""
            else:
                text += piece.text
        return " ".join(filter(None, [*out, _quote(text)]))

    def _schema(self, node: Json) -> dict[str, Any]:
        schema, words = node.schema, node.words
        if words is not None and words.pattern is not None:
            # `\d` and its like mean ASCII here, and Unicode in a custom tool's expression: narrower, on purpose.
            schema = {**schema, "properties": {INPUT: {"type": "string", "pattern": f"^(?:{words.pattern})$"}}}
        return {**projected(schema, "llguidance", node.limits), **SPACING}


def _expression(words: TextRule) -> str:
    """A whole text as an expression. A custom tool's Lark is any text: it may hold what ends the text, and JSON escapes
    it.
    """
    if words.pattern is None:
        is_long = words.most is None or (words.least > 0 and words.most > _MAX_COUNTED)
        return f"(.|\\n){{{min(words.least, _MAX_COUNTED)},{'' if is_long else words.most}}}"
    return _between_slashes(words.pattern)


def _up_to(most: int | None, more: int = 0) -> str:
    """What holds an expression to a number of characters, if these are not too many."""
    return f" & /(.|\\n){{0,{most + more}}}/" if most is not None and most <= _MAX_COUNTED else ""


def _between_slashes(expression: str) -> str:
    return re.sub(r"\\.|/", lambda found: "\\/" if found[0] == "/" else found[0], expression, flags=re.DOTALL)


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False) if text else ""


def _escaped(text: str) -> str:
    """A text in a regular expression between slashes."""
    special = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return "".join(
        special.get(character) or (f"\\{character}" if character in "\\/.^$|?*+()[]{}-&~" else character)
        for character in text
    )
