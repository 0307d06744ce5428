"""The rules and terminals of a Lark definition, with their names and contents.

Parsed as by the engine. Refuses unsupported syntax: priorities, templates, attributes, negation, foreign imports.
Whether the names exist is not known here, nor the matches of a regular expression or a string.

Source: llguidance 1.9.1, parser/src/lark/parser.rs; OpenAI's guide to custom tools, November 2026.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from callwright.errors import GrammarError
from callwright.grammar.errors import refused
from callwright.grammar.lark_lexer import Token, tokens

# Maximum depth of nested groups: the engine's own limit.
_MAX_GROUPS: Final = 28
_MAX_SHOWN: Final = 40
_TIMES: Final[Mapping[str, tuple[int, int | None]]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}


class Item(NamedTuple):
    """One element of a sequence: a name, a group, or a `token`, which is a string or a regular expression; with `end`
    it is the first character of a range.

    `inner`: the alternatives of a group; in square brackets it `is_optional`. An item occurs `least` to `most` times;
    None: no limit.
    """

    name: str = ""
    inner: "Alternatives | None" = None
    is_optional: bool = False
    token: Token | None = None
    end: Token | None = None
    least: int = 1
    most: int | None = 1

    @property
    def needed(self) -> bool:
        """Whether it must occur."""
        return self.least > 0 and not self.is_optional


Sequence: TypeAlias = list[Item]
Alternatives: TypeAlias = list[Sequence]


class Use(NamedTuple):
    """A name in a definition, `depth` groups deep."""

    name: str
    at: int
    depth: int


class Definition(NamedTuple):
    """A rule, or a terminal. `uses` are in the order of the text. `common`: its name in the library of that name, if it
    is imported.
    """

    name: str
    at: int
    terminal: bool
    alternatives: Alternatives
    uses: list[Use]
    common: str = ""


class Lark(NamedTuple):
    """All of a definition. `ignored` is what `%ignore` names."""

    rules: dict[str, Definition]
    terminals: dict[str, Definition]
    ignored: list[Definition]


def read_lark(definition: str) -> Lark:
    """Read a definition. Raises `GrammarError`."""
    return _Reader(definition).read()


class _Reader:
    def __init__(self, definition: str) -> None:
        self._text = definition
        self._coming = tokens(definition)  # read as they are needed, so that the first fault of all is found
        self._tokens: list[Token] = []
        self._at = 0
        self._uses: list[Use] = []
        self._depth = 0
        self._lark = Lark({}, {}, [])

    def read(self) -> Lark:
        while True:
            self._skip_newlines()
            token = self._next()
            if token.kind == "end":
                return self._lark
            if token.kind in ("rule", "terminal"):
                self._definition(token)
            elif token.text == "%ignore":
                self._lark.ignored.append(self._body("%ignore", token.at, terminal=True))
            elif token.text == "%import":
                self._import(token)
            else:
                raise self._unexpected(token, "the start of a rule, of a terminal or of a directive")

    # --- definitions ---

    def _definition(self, token: Token) -> None:
        terminal = token.kind == "terminal"
        name = token.text.removeprefix("!").removeprefix("?")
        if self._is("{"):
            way_out = "Write a rule for each use of it."
            raise refused(self._text, self._peek().at, f"templates are not supported ('{name}{{')", way_out)
        if self._is("."):
            way_out = f"Write '{name}:' and make the alternatives exclude each other."
            raise refused(self._text, self._peek().at, "priorities are not supported", way_out)
        if self._is("["):
            raise refused(self._text, self._peek().at, "attributes of rules are not supported", f"Write '{name}:'.")
        self._expect(":", f"':' after the name {name!r}")
        defined = self._body(name, token.at, terminal=terminal)
        self._define(self._lark.terminals if terminal else self._lark.rules, defined)

    def _define(self, known: dict[str, Definition], defined: Definition) -> None:
        if defined.name in known:
            line = self._text.count("\n", 0, known[defined.name].at) + 1
            way_out = f"It is already defined in line {line}: leave one out, or write both as alternatives."
            raise refused(self._text, defined.at, f"{defined.name!r} is defined twice", way_out)
        known[defined.name] = defined

    def _body(self, name: str, at: int, *, terminal: bool) -> Definition:
        self._uses = []
        alternatives = self._alternatives()
        return Definition(name, at, terminal, alternatives, self._uses)

    def _import(self, directive: Token) -> None:
        if self._is(".") or self._name().text != "common":
            way_out = "Only %import common can be used; write other rules into the grammar itself."
            raise refused(self._text, directive.at, "import of another library or file", way_out)
        imported: list[tuple[Token, Token]] = []  # the name here, and in the library
        if self._take("("):
            imported.append((self._name(),) * 2)
            while self._take(","):
                imported.append((self._name(),) * 2)
            self._expect(")", "')' after the imported names")
        else:
            self._expect(".", "'.' and a name, or names in brackets, after 'common'")
            common = self._name()
            imported.append((self._name() if self._take("->") else common, common))
        for token, common in imported:
            self._define(self._lark.terminals, Definition(token.text, token.at, True, [[]], [], common.text))

    # --- parts of a definition ---

    def _alternatives(self) -> Alternatives:
        found = [self._sequence()]
        while self._at_bar():
            found.append(self._sequence())
        return found

    def _at_bar(self) -> bool:
        """Step over a bar, which may begin a line."""
        before = self._at
        if self._peek().kind == "newline":
            self._at += 1
        if self._take("|"):
            return True
        self._at = before
        return False

    def _sequence(self) -> Sequence:
        items: Sequence = []
        while not self._ends_sequence():
            items.append(self._item())
        if self._take("->"):
            token = self._next()
            if token.kind != "rule":
                raise self._unexpected(token, "a name in lower case after '->'")
        return items

    def _ends_sequence(self) -> bool:
        token = self._peek()
        return token.kind in ("newline", "end") or token.text in ("|", "->", ")", "]", "}")

    def _item(self) -> Item:
        item = self._atom()
        token = self._peek()
        least: int
        most: int | None
        if token.text in _TIMES:
            self._at += 1
            least, most = _TIMES[token.text]
        elif token.text == "~" and self._peek(1).kind == "number":
            self._at += 1
            least = most = self._number()
            if self._take(".."):
                most = self._number()
        elif token.text == "{":
            self._at += 1
            least = most = 0 if self._is(",") else self._number()
            if self._take(","):
                most = None if self._is("}") else self._number()
            self._expect("}", "'}' after the count")
        else:
            return item
        return item._replace(least=least, most=most)

    def _atom(self) -> Item:
        token = self._next()
        if token.text in ("(", "["):
            closing = ")" if token.text == "(" else "]"
            self._depth += 1
            if self._depth > _MAX_GROUPS:
                raise refused(self._text, token.at, "groups are nested too deeply", "Make a rule of an inner group.")
            inner = self._alternatives()
            self._depth -= 1
            self._expect(closing, f"{closing!r} for the {token.text!r} before it")
            return Item(inner=inner, is_optional=token.text == "[")
        if token.kind in ("rule", "terminal"):
            if self._is("{") and self._peek(1).text != "," and self._peek(1).kind != "number":
                way_out = "Write a rule for each use of it."
                raise refused(self._text, token.at, f"templates are not supported ('{token.text}{{')", way_out)
            self._uses.append(Use(token.text, token.at, self._depth))
            return Item(token.text)
        end: Token | None = None
        if token.kind == "string":
            if self._take("..") and (end := self._next()).kind != "string":
                raise self._unexpected(end, "a string after '..'")
        elif token.kind != "regex":
            if token.text == "~":
                way_out = "Describe the text that may be there; for a count, write a number after the '~'."
                raise refused(self._text, token.at, "negation '~' is not supported", way_out)
            raise self._unexpected(token, "a name, a string, a regular expression or a group")
        return Item(token=token, end=end)

    def _number(self) -> int:
        token = self._next()
        if token.kind != "number" or not token.text.lstrip("+").isdecimal():
            raise self._unexpected(token, "a whole number")
        return int(token.text[:12])

    def _name(self) -> Token:
        token = self._next()
        if token.kind not in ("rule", "terminal"):
            raise self._unexpected(token, "a name")
        return token

    # --- tokens ---

    def _peek(self, ahead: int = 0) -> Token:
        while len(self._tokens) <= self._at + ahead:
            self._tokens.append(next(self._coming, self._tokens[-1]) if self._tokens else next(self._coming))
        return self._tokens[self._at + ahead]

    def _next(self) -> Token:
        token = self._peek()
        self._at += 1
        return token

    def _is(self, text: str) -> bool:
        return self._peek().text == text

    def _take(self, text: str) -> bool:
        taken = self._is(text)
        self._at += taken
        return taken

    def _expect(self, text: str, expected: str) -> None:
        token = self._next()
        if token.text != text:
            raise self._unexpected(token, expected)

    def _skip_newlines(self) -> None:
        while self._peek().kind == "newline":
            self._at += 1

    def _unexpected(self, token: Token, expected: str) -> GrammarError:
        got = {"newline": "the end of the line", "end": "the end of the grammar"}.get(
            token.kind, _shortened(token.text)
        )
        way_out = "Check the text before it."
        if token.kind == "newline":
            way_out = "A rule continues on the next line only if that begins with '|'."
        elif token.text in ("?", "*", "+"):
            way_out = "Put what is repeated into brackets: ( )."
        return refused(self._text, token.at, f"expected {expected}, got {got}", way_out)


def _shortened(text: str) -> str:
    return f"'{text}'" if len(text) <= _MAX_SHOWN else f"'{text[:_MAX_SHOWN]}…'"
