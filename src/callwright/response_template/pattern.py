"""Regular expressions that cannot hang: a part of Python's syntax, for matching in linear time.

An expression becomes a short program, which `search` runs over a stream with all its threads side by side. What such
a program cannot say (backreferences, looking behind, looking ahead in the middle) is refused by name. Line feeds match
`.`, and `^` and `$` are the begin and the end of the whole text, as transformers compiles its expressions.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

__all__ = ["Op", "Pattern", "PatternError", "Program", "compile_literals", "compile_pattern"]

# A program of more steps is refused: counted repetitions multiply.
MAX_STEPS: Final = 1_000
_MAX_DEPTH: Final = 50

_ESCAPE = re.compile(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*+\]", re.DOTALL)
_GROUP = re.compile(r"\((?:\?(?:(?P<plain>:)|(?P<ahead>=)|P?<(?P<name>[A-Za-z_]\w*)>|(?P<other>[^)]{0,3})))?")
_COUNT = re.compile(r"\{(?:(?P<exact>\d+)|(?P<least>\d*),(?P<most>\d*))\}")
_REPEATED: Final = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_NAMED: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a", "0": "\0"}
_ANY: Final = r"[\s\S]"
_REFUSED: Final = {
    "!": "a negative lookahead",
    "<=": "a lookbehind",
    "<!": "a negative lookbehind",
    ">": "an atomic group",
    "P=": "a backreference",
    "(": "a condition",
    "#": "a comment",
}


class PatternError(ValueError):
    """The expression cannot be used; the message says what of it."""


class Single(NamedTuple):
    """One character: as `re` writes it, and itself where it is one literal character."""

    atom: str
    literal: str = ""


class Row(NamedTuple):
    """One behind the other."""

    parts: "Sequence[Node]"


class Either(NamedTuple):
    """The first that goes."""

    parts: "Sequence[Node]"


class Repeat(NamedTuple):
    """`most` is None for no end."""

    part: "Node"
    least: int
    most: int | None
    greedy: bool


class Group(NamedTuple):
    """A named group, or one that remembers nothing."""

    part: "Node"
    name: str


class Edge(NamedTuple):
    """The begin or the end of the text."""

    kind: Literal["start", "end"]


class Ahead(NamedTuple):
    """What must follow and is not read."""

    part: "Node"


Node: TypeAlias = Single | Row | Either | Repeat | Group | Edge | Ahead


class Op(NamedTuple):
    """A step of a program: `char` reads one character of class `x`, `split` tries `x` before `y`, `save` remembers the
    place in slot `x`.
    """

    kind: Literal["char", "split", "save", "start", "end", "match"]
    x: int = 0
    y: int = 0


class Program(msgspec.Struct, frozen=True):
    """What `search` runs. `atoms` are the classes of characters; slots 0 and 1 are the span, then two for each name."""

    ops: tuple[Op, ...]
    atoms: tuple[str, ...]
    names: tuple[str, ...]


class Pattern(msgspec.Struct, frozen=True):
    """A compiled expression.

    `literals` are all texts that it matches, apart from white space around them; None when it is no such list.
    `begins` is the text with which each match begins, apart from white space before it, as far as it is known.
    `around`: where its group `value` is any text, as short as it goes, what stands before it and behind it.
    """

    written: str
    program: Program
    literals: tuple[str, ...] | None = None
    begins: str = ""
    around: "Around | None" = None


class Around(NamedTuple):
    """What stands before and behind a value. `trims`: white space at the end of the value is no part of it."""

    before: Pattern
    behind: Pattern
    trims: bool


def compile_literals(literals: Iterable[str]) -> Pattern:
    """Matches one of these texts, the longest first."""
    known = tuple(sorted(dict.fromkeys(literals), key=len, reverse=True))
    node = Either([Row([_literal(char) for char in text]) for text in known])
    return Pattern("|".join(known), _Compiler().program(node), known)


def compile_pattern(written: str) -> Pattern:
    """Compile an expression. Raises `PatternError`."""
    try:
        re.compile(written, re.DOTALL)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(f"no regular expression: {error}") from error
    node = _Parser(written).whole()
    return Pattern(written, _Compiler().program(node), _literals(node), _begins(node), _around(written, node))


def _literal(char: str) -> Single:
    return Single(re.escape(char), char)


class _Parser:
    """Reads an expression that `re` has taken, so what stands in it is well-formed."""

    def __init__(self, written: str) -> None:
        self._text = written
        self._at = 0
        self._depth = 0

    def whole(self) -> Node:
        node = self._either()
        if self._at < len(self._text):
            raise PatternError(f"an unmatched ) at {self._at}")
        return node

    def _either(self) -> Node:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise PatternError(f"groups nested more deeply than {_MAX_DEPTH}")
        parts = [self._sequence()]
        while self._text.startswith("|", self._at):
            self._at += 1
            parts.append(self._sequence())
        self._depth -= 1
        return parts[0] if len(parts) == 1 else Either(parts)

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            parts.append(self._repeated(self._one()))
        return parts[0] if len(parts) == 1 else Row(parts)

    def _one(self) -> Node:
        mark = self._text[self._at]
        if mark == "(":
            return self._group()
        if mark == "[":
            return self._class()
        if mark == "\\":
            return self._escape()
        self._at += 1
        if mark == ".":
            return Single(_ANY)
        if mark in "^$":
            return Edge("start" if mark == "^" else "end")
        return _literal(mark)

    def _group(self) -> Node:
        found = _GROUP.match(self._text, self._at)
        assert found is not None
        if found["other"] is not None:
            kind = next((name for mark, name in _REFUSED.items() if found["other"].startswith(mark)), "flags")
            raise PatternError(f"{kind} at {self._at} cannot be read in linear time; leave it out")
        self._at = found.end()
        inner = self._either()
        self._at += 1
        return Ahead(inner) if found["ahead"] else Group(inner, found["name"] or "")

    def _class(self) -> Node:
        found = _CLASS.match(self._text, self._at)
        if found is None or "[" in found.group()[1:].replace("\\[", ""):
            raise PatternError(f"the class at {self._at} is not understood: write [ in it as \\[")
        self._at = found.end()
        return Single(_ANY if found.group() == r"[\S\s]" else found.group())

    def _escape(self) -> Node:
        found = _ESCAPE.match(self._text, self._at)
        assert found is not None
        self._at = found.end()
        escape, kind = found.group(), found.group()[1]
        if kind in "dDsSwW":
            return Single(escape)
        if kind in "AZz":
            return Edge("start" if kind == "A" else "end")
        if len(escape) > 2:
            return _literal(chr(int(escape[2:], 16)))
        if kind in _NAMED:
            return _literal(_NAMED[kind])
        if kind.isalnum():
            what = "a backreference" if kind.isdigit() else f"\\{kind}"
            raise PatternError(f"{what} at {found.start()} cannot be read in linear time; leave it out")
        return _literal(kind)

    def _repeated(self, node: Node) -> Node:
        while self._at < len(self._text):
            mark = self._text[self._at]
            least, most = 0, None
            if mark in _REPEATED:
                least, most = _REPEATED[mark]
                self._at += 1
            elif mark == "{" and (found := _COUNT.match(self._text, self._at)):
                least = int(found["exact"] or found["least"] or 0)
                most = int(found["exact"]) if found["exact"] else int(found["most"]) if found["most"] else None
                self._at = found.end()
            else:
                break
            follows = self._text[self._at : self._at + 1]
            if follows == "+":
                raise PatternError(f"the possessive {mark}+ at {self._at - 1} cannot be read; leave out the second +")
            self._at += follows == "?"
            node = Repeat(node, least, most, greedy=follows != "?")
        return node


class _Compiler:
    def __init__(self) -> None:
        self._ops: list[Op] = []
        self._atoms: dict[str, int] = {}
        self._names: list[str] = []

    def program(self, node: Node) -> Program:
        self._add(Op("save", 0))
        self._node(node, last=True)
        self._add(Op("save", 1))
        self._add(Op("match"))
        return Program(tuple(self._ops), tuple(self._atoms), tuple(self._names))

    def _add(self, op: Op) -> int:
        if len(self._ops) == MAX_STEPS:
            raise PatternError(f"too large: it has more than {MAX_STEPS:,} steps, counted repetitions multiplied out")
        self._ops.append(op)
        return len(self._ops) - 1

    def _node(self, node: Node, *, last: bool) -> None:
        """`last`: nothing follows, so that what is looked at ahead may end the program."""
        match node:
            case Single(atom):
                self._add(Op("char", self._atoms.setdefault(atom, len(self._atoms))))
            case Edge(kind):
                self._add(Op(kind))
            case Row(parts):
                for number, part in enumerate(parts):
                    self._node(part, last=last and number == len(parts) - 1)
            case Either(parts):
                self._either(parts, last=last)
            case Group(part, ""):
                self._node(part, last=last)
            case Group(part, name):
                if name not in self._names:
                    self._names.append(name)
                slot = 2 + 2 * self._names.index(name)
                self._add(Op("save", slot))
                self._node(part, last=False)
                self._add(Op("save", slot + 1))
            case Ahead(part):
                if not last:
                    raise PatternError("a lookahead is read at the end of an expression only")
                self._add(Op("save", 1))
                self._node(part, last=False)
                self._add(Op("match"))
            case Repeat():
                self._repeat(node)

    def _either(self, parts: Sequence[Node], *, last: bool) -> None:
        ends: list[int] = []
        for part in parts[:-1]:
            split = self._add(Op("split"))
            self._node(part, last=last)
            ends.append(self._add(Op("split")))
            self._ops[split] = Op("split", split + 1, len(self._ops))
        self._node(parts[-1], last=last)
        for end in ends:
            self._ops[end] = Op("split", len(self._ops), len(self._ops))

    def _repeat(self, repeat: Repeat) -> None:
        part, least, most, greedy = repeat
        if _may_be_empty(part):
            raise PatternError("a repetition of what may be empty: repeat it once")
        if least > MAX_STEPS or (most or 0) > MAX_STEPS:
            raise PatternError(f"a repetition of more than {MAX_STEPS:,} times")
        for _ in range(least):
            self._node(part, last=False)
        splits: list[int] = []
        for _ in range((most or 0) - least):
            splits.append(self._add(Op("split")))
            self._node(part, last=False)
        if most is None:
            splits.append(self._add(Op("split")))
            self._node(part, last=False)
            self._add(Op("split", splits[0], splits[0]))
        end = len(self._ops)
        for split in splits:
            self._ops[split] = Op("split", split + 1, end) if greedy else Op("split", end, split + 1)


def _may_be_empty(node: Node) -> bool:
    match node:
        case Single():
            return False
        case Row(parts):
            return all(map(_may_be_empty, parts))
        case Either(parts):
            return any(map(_may_be_empty, parts))
        case Repeat(part, least):
            return not least or _may_be_empty(part)
        case Group(part):
            return _may_be_empty(part)
        case Edge() | Ahead():
            return True


def _literals(node: Node) -> tuple[str, ...] | None:
    """All texts that an expression matches, without the white space around them and the end of the text."""
    while isinstance(node, Group) and not node.name:
        node = node.part
    found: list[str] = []
    for part in node.parts if isinstance(node, Either) else (node,):
        while isinstance(part, Group) and not part.name:
            part = part.part
        if part == Edge("end"):
            continue
        parts = list(part.parts) if isinstance(part, Row) else [part]
        while parts and _is_blanks(parts[0]):
            del parts[0]
        while parts and _is_blanks(parts[-1]):
            del parts[-1]
        text = "".join(each.literal for each in parts if isinstance(each, Single))
        if not text or len(text) < len(parts):
            return None
        found.append(text)
    return tuple(found) or None


def _begins(node: Node) -> str:
    """See `Pattern.begins`."""
    begins = ""
    for part in node.parts if isinstance(node, Row) else (node,):
        if isinstance(part, Single) and part.literal:
            begins += part.literal
        elif begins or not _is_blanks(part):
            break
    return begins


def _is_blanks(node: Node) -> bool:
    return isinstance(node, Repeat) and isinstance(node.part, Single) and node.part.atom in (r"\s", r"\n", "\\\n")


def _around(written: str, node: Node) -> Around | None:
    """See `Pattern.around`."""
    if not isinstance(node, Row):
        return None
    for number, part in enumerate(node.parts):
        if isinstance(part, Group) and part.name == "value":
            if part.part != Repeat(Single(_ANY), 0, None, greedy=False):
                return None
            behind = node.parts[number + 1 :]
            trims = bool(behind) and _is_blanks(behind[0])
            sides = [Row(node.parts[:number]), Row(behind[trims:])]
            before, after = (Pattern(written, _Compiler().program(side)) for side in sides)
            return Around(before, after, trims)
    return None
