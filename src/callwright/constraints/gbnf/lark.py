"""A custom tool's Lark grammar as GBNF, in plain text or inside a JSON string.

The definition has been checked (`callwright.grammar`). GBNF knows no terminals: while Lark reads the longest one, this
accepts any, so it may be wider, never another language than the check expects. Left recursion cannot be expressed, nor
expressions that GBNF lacks: `UnsayableError`.
"""

import json
import re
from collections.abc import Mapping
from typing import Final

from callwright.constraints.gbnf.pieces import GbnfPart, UnsayableError, calls_itself_first, either, repeated, row
from callwright.constraints.gbnf.regex import characters, expression
from callwright.grammar.lark_lexer import Token
from callwright.grammar.lark_parser import Alternatives, Item, Sequence, read_lark

# The library `common`, as in lark 1.2 and llguidance 1.9.
_COMMON: Final[Mapping[str, str]] = {
    "ESCAPED_STRING": r'"([^"\\\n]|\\.)*"',
    "DIGIT": "[0-9]",
    "HEXDIGIT": "[0-9a-fA-F]",
    "INT": "[0-9]+",
    "SIGNED_INT": "[+-]?[0-9]+",
    "DECIMAL": r"[0-9]+\.[0-9]*|\.[0-9]+",
    "_EXP": "[eE][+-]?[0-9]+",
    "FLOAT": r"[0-9]+[eE][+-]?[0-9]+|([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?",
    "NUMBER": r"[0-9]+|[0-9]+[eE][+-]?[0-9]+|([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?",
    "SIGNED_NUMBER": r"[+-]?([0-9]+|[0-9]+[eE][+-]?[0-9]+|([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?)",
    "LCASE_LETTER": "[a-z]",
    "UCASE_LETTER": "[A-Z]",
    "LETTER": "[a-zA-Z]",
    "WORD": "[a-zA-Z]+",
    "CNAME": "[_a-zA-Z][_a-zA-Z0-9]*",
    "WS_INLINE": r"[ \t]+",
    "WS": r"[ \t\f\r\n]+",
    "CR": r"\r",
    "LF": r"\n",
    "NEWLINE": r"(\r?\n)+",
}


def lark_rules(definition: str, rules: dict[str, str], prefix: str, *, in_json: bool) -> str:
    """Add the rules of a definition to `rules`, under names that begin with `prefix`; answers the name of the start.

    Raises `UnsayableError`; then no rule of these names is added.
    """
    own: dict[str, GbnfPart] = {}
    name = _Writer(definition, own, rules, prefix, in_json=in_json).write()
    if calls_itself_first(own):
        raise UnsayableError
    rules |= {rule: piece.text for rule, piece in own.items()}
    return name


class _Writer:
    def __init__(
        self, definition: str, rules: dict[str, GbnfPart], large: dict[str, str], prefix: str, *, in_json: bool
    ) -> None:
        self._lark = read_lark(definition)
        self._rules = rules
        self._large = large
        self._prefix = prefix
        self._in_json = in_json
        self._between: list[GbnfPart] = []  # ignored text, allowed between two parts of a rule

    def write(self) -> str:
        if found := [self._alternatives(each.alternatives, in_rule=False) for each in self._lark.ignored]:
            ignored = f"{self._prefix}-ignored"
            self._between = [GbnfPart.from_rule(ignored)]
            self._rules[ignored] = repeated(either(found), 0, None, self._large)
        for each in (*self._lark.rules.values(), *self._lark.terminals.values()):
            self._rules[self._name(each.name)] = (
                self._imported(each.common)
                if each.common
                else self._alternatives(each.alternatives, in_rule=not each.terminal)
            )
        return self._name("start")

    def _name(self, name: str) -> str:
        return f"{self._prefix}-{'t' if name.lstrip('_')[:1].isupper() else 'r'}-{name.replace('_', '-').lower()}"

    def _imported(self, common: str) -> GbnfPart:
        if common not in _COMMON:
            raise UnsayableError
        return expression(_COMMON[common], in_json=self._in_json)

    def _alternatives(self, alternatives: Alternatives, *, in_rule: bool) -> GbnfPart:
        return either([self._row(sequence, in_rule=in_rule) for sequence in alternatives])

    def _row(self, sequence: Sequence, *, in_rule: bool) -> GbnfPart:
        parts: list[GbnfPart] = []
        for item in sequence:
            between = self._between if in_rule and any(() not in part.starts for part in parts) else []
            piece = row([*between, self._atom(item, in_rule=in_rule)])
            once = (item.least, item.most) == (1, 1)
            parts.append(piece if once else repeated(piece, item.least, item.most, self._large))
        return row(parts)

    def _atom(self, item: Item, *, in_rule: bool) -> GbnfPart:
        if item.inner is not None:
            inner = self._alternatives(item.inner, in_rule=in_rule)
            return repeated(inner, 0, 1, self._large) if item.is_optional else inner
        token = item.token
        if token is None:
            return GbnfPart.from_rule(self._name(item.name))
        if token.kind == "regex":
            body, _, flags = token.text[1:].rpartition("/")
            return expression(body.replace("\\/", "/"), flags, in_json=self._in_json)
        if item.end is not None:
            return characters(((ord(_text(token)), ord(_text(item.end))),), in_json=self._in_json)
        return expression(re.escape(_text(token)), "i" if token.text.endswith("i") else "", in_json=self._in_json)


def _text(token: Token) -> str:
    """The text that a string matches. `\\xHH` is not JSON."""
    inner = re.sub(r"\\x([0-9a-fA-F]{2})", r"\\u00\1", token.text.removesuffix("i"))
    found: str = json.loads(inner)
    return found
