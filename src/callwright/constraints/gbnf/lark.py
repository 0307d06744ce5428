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
from callwright.grammar.lark_lexer import Token, tokens

# The library `common`, as in lark 1.2 and llguidance 1.9.
_COMMON: Final[Mapping[str, str]] = {
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
_TIMES: Final[Mapping[str, tuple[int, int | None]]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}


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
        self._tokens = list(tokens(definition))
        self._at = 0
        self._rules = rules
        self._large = large
        self._prefix = prefix
        self._in_json = in_json
        self._between: list[GbnfPart] = []  # ignored text, allowed between two parts of a rule

    def write(self) -> str:
        ignored = f"{self._prefix}-ignored"
        if found := self._ignored():
            self._between = [GbnfPart.from_rule(ignored)]
            self._rules[ignored] = repeated(either(found), 0, None, self._large)
        while self._peek().kind != "end":
            token = self._next()
            if token.kind in ("rule", "terminal"):
                self._next()  # the colon
                self._rules[self._name(token.text)] = self._alternatives(in_rule=token.kind == "rule")
            elif token.text == "%import":
                self._import()
            elif token.text == "%ignore":
                self._alternatives(in_rule=False)
        return self._name("start")

    def _ignored(self) -> list[GbnfPart]:
        found: list[GbnfPart] = []
        while self._peek().kind != "end":
            if self._next().text == "%ignore":
                found.append(self._alternatives(in_rule=False))
        self._at = 0
        return found

    def _name(self, name: str) -> str:
        bare = name.removeprefix("!").removeprefix("?")
        return f"{self._prefix}-{'t' if bare.lstrip('_')[:1].isupper() else 'r'}-{bare.replace('_', '-').lower()}"

    def _import(self) -> None:
        self._next()  # common
        if self._take("("):
            while not self._take(")"):
                token = self._next()
                if token.kind == "terminal":
                    self._imported(token.text, token.text)
            return
        self._next()  # the dot
        name = self._next().text
        self._imported(self._next().text if self._take("->") else name, name)

    def _imported(self, name: str, common: str) -> None:
        if common == "ESCAPED_STRING":
            pattern = r'"([^"\\\n]|\\.)*"'
        elif common in _COMMON:
            pattern = _COMMON[common]
        else:
            raise UnsayableError
        self._rules[self._name(name)] = expression(pattern, in_json=self._in_json)

    def _alternatives(self, *, in_rule: bool) -> GbnfPart:
        rows = [self._row(in_rule=in_rule)]
        while self._at_bar():
            rows.append(self._row(in_rule=in_rule))
        return either(rows)

    def _at_bar(self) -> bool:
        before = self._at
        if self._peek().kind == "newline":
            self._at += 1
        if self._take("|"):
            return True
        self._at = before
        return False

    def _row(self, *, in_rule: bool) -> GbnfPart:
        parts: list[GbnfPart] = []
        while (token := self._peek()).kind not in ("newline", "end") and token.text not in ("|", ")", "]", "->"):
            between = self._between if in_rule and any(() not in part.starts for part in parts) else []
            parts.append(self._item(between, in_rule=in_rule))
        if self._take("->"):
            self._next()
        return row(parts)

    def _item(self, between: list[GbnfPart], *, in_rule: bool) -> GbnfPart:
        piece = row([*between, self._atom(in_rule=in_rule)])
        mark = self._peek()
        if mark.text in _TIMES:
            self._at += 1
            return repeated(piece, *_TIMES[mark.text], self._large)
        if mark.text == "~" and self._peek(1).kind == "number":
            self._at += 1
            least = int(self._next().text)
            return repeated(piece, least, int(self._next().text) if self._take("..") else least, self._large)
        if mark.text == "{":
            self._at += 1
            least = 0 if self._peek().text == "," else int(self._next().text)
            most: int | None = least
            if self._take(","):
                most = None if self._peek().text == "}" else int(self._next().text)
            self._next()  # the bracket
            return repeated(piece, least, most, self._large)
        return piece

    def _atom(self, *, in_rule: bool) -> GbnfPart:
        token = self._next()
        if token.text in ("(", "["):
            inner = self._alternatives(in_rule=in_rule)
            self._next()  # the bracket
            return repeated(inner, 0, 1, self._large) if token.text == "[" else inner
        if token.kind in ("rule", "terminal"):
            return GbnfPart.from_rule(self._name(token.text))
        if token.kind == "regex":
            body, _, flags = token.text[1:].rpartition("/")
            return expression(body.replace("\\/", "/"), flags, in_json=self._in_json)
        return self._string(token)

    def _string(self, token: Token) -> GbnfPart:
        text = _text(token)
        if self._take(".."):
            return characters(((ord(text), ord(_text(self._next()))),), in_json=self._in_json)
        return expression(re.escape(text), "i" if token.text.endswith("i") else "", in_json=self._in_json)

    def _peek(self, ahead: int = 0) -> Token:
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    def _next(self) -> Token:
        token = self._peek()
        self._at += 1
        return token

    def _take(self, text: str) -> bool:
        found = self._peek().text == text
        self._at += found
        return found


def _text(token: Token) -> str:
    """The text that a string matches. `\\xHH` is not JSON."""
    inner = re.sub(r"\\x([0-9a-fA-F]{2})", r"\\u00\1", token.text.removesuffix("i"))
    found: str = json.loads(inner)
    return found
