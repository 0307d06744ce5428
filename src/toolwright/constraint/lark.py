"""A shape as Lark for llguidance: in-process, vLLM and SGLang with that backend, llama.cpp built with it.

`tokens` are the literals that are special tokens in the engine's vocabulary. They are written as tokens: neither text
nor JSON ever swallows one, and a text never matches one.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any, Final, assert_never

from toolwright.constraint.pieces import Fixed, Number
from toolwright.constraint.project import projected
from toolwright.constraint.sentence import (
    Choice,
    Json,
    Literal,
    Maybe,
    Node,
    Repeated,
    Row,
    Text,
    Triggered,
    Until,
)
from toolwright.custom import INPUT
from toolwright.prompt import Control

__all__ = ["lark"]

# A blank behind comma and colon is free, others are not: unbounded ones are a known way to never end.
_SPACING: Final[Mapping[str, Any]] = {"whitespace_flexible": False, "item_separator": ", ?", "key_separator": ": ?"}
_TEXT: Final = "TEXT"


def lark(node: Node, tokens: Collection[str] = ()) -> str:
    """The grammar; its first line says what it is, which llama.cpp needs."""
    return _Writer(frozenset(tokens)).write(node)


class _Writer:
    def __init__(self, tokens: frozenset[str]) -> None:
        self._tokens = tokens
        self._rules: dict[int, str] = {}  # by the node
        self._lines: list[str] = []

    def write(self, node: Node) -> str:
        start = self._of(node)
        return "\n".join(["%llguidance {}", f"start: {start}", f"{_TEXT}: /(.|\\n)*/", *self._lines]) + "\n"

    def _of(self, node: Node) -> str:
        if isinstance(node, Literal):
            return self._fixed(node.fixed)
        if id(node) not in self._rules:
            self._rules[id(node)] = name = f"n{len(self._rules)}"
            self._rule(name, node)
        return self._rules[id(node)]

    def _rule(self, name: str, node: Node) -> None:
        match node:
            case Json(schema, pattern):
                self._say(name, f"%json {json.dumps(self._schema(schema, pattern), ensure_ascii=False)}")
            case Until(end):
                self._until(name, end)
            case Text():
                self._say(name, _TEXT)
            case Row(nodes):
                self._say(name, " ".join(filter(None, map(self._of, nodes))) or '""')
            case Choice(nodes):
                self._say(name, "\n  | ".join(self._of(inner) or '""' for inner in nodes))
            case Maybe(inner):
                self._say(name, f"({self._of(inner)})?")
            case Repeated(inner):
                self._say(name, f"({self._of(inner)})*")
            case Triggered(trigger, rest, end, again):
                self._triggered(name, trigger, f"{self._of(rest)} {self._fixed(end)}".rstrip(), "*" if again else "?")
            case Literal():
                raise AssertionError
            case _:
                assert_never(node)

    def _say(self, name: str, body: str) -> None:
        self._lines.append(f"{name}: {body}")

    def _until(self, name: str, end: Fixed) -> None:
        """Free text before a special token ends by itself; before a text it has to be lazy."""
        texts: list[str] = []
        rest = list(end)
        while rest and not isinstance(rest[0], Number) and rest[0].text not in self._tokens:
            texts.append(rest.pop(0).text)  # type: ignore[union-attr]
        behind = self._fixed(tuple(rest))
        if not texts:
            self._say(name, f"{_TEXT} {behind}")
            return
        self._say(f"{name}_text[lazy]", f"/(.|\\n)*{_escaped(''.join(texts))}/")
        self._say(name, f"{name}_text {behind}".rstrip())

    def _triggered(self, name: str, trigger: str, rest: str, times: str) -> None:
        if trigger in self._tokens:
            self._say(name, f"({_TEXT} {trigger} {rest}){times} {_TEXT}")
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
                out += [_quoted(text), f"/[0-9]{f'{{{piece.digits}}}' if piece.digits else '+'}/"]
                text = ""
            elif isinstance(piece, Control) and piece.text in self._tokens:
                out += [_quoted(text), piece.text]
                text = ""
            else:
                text += piece.text
        return " ".join(filter(None, [*out, _quoted(text)]))

    def _schema(self, schema: Mapping[str, Any], pattern: str | None) -> dict[str, Any]:
        if pattern is not None:
            # `\d` and its like mean ASCII here, and Unicode in a custom tool's expression: narrower, on purpose.
            schema = {**schema, "properties": {INPUT: {"type": "string", "pattern": f"^(?:{pattern})$"}}}
        return {**projected(schema, "llguidance"), "x-guidance": _SPACING}


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False) if text else ""


def _escaped(text: str) -> str:
    """A text in a regular expression between slashes."""
    special = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return "".join(
        special.get(character) or (f"\\{character}" if character in "\\/.^$|?*+()[]{}-&~" else character)
        for character in text
    )
