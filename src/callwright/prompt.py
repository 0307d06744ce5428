"""A rendered prompt: control tokens and text as two types, so that text can never become a control token.

An engine that takes token ids can preserve the distinction. If only a string can be sent, `wire_text` breaks every
look-alike in the text with an invisible character, so that the server's tokenizer finds no control token in it. A
look-alike is any literal that a tokenizer of the family reads as a token, and anything of the shape `<|…|>`.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct

# WORD JOINER: zero width, no line break, part of no known control token.
BREAK = "\u2060"
# First or last characters of control tokens: text is broken only after one of these.
_EDGES: Final = "<>[]|｜〈〉#"
# Matches after one of them, also in its JSON escape.
_BEHIND: Final = rf"(?:(?<=[{re.escape(_EDGES)}])|(?<=\\u00[2357][3b-eB-E])|(?<=\\u(?:ff5c|FF5C|300[89])))"
# The break itself, and an incomplete escape of it at the end of a text.
_BROKEN: Final = re.compile(rf"{_BEHIND}(?:{BREAK}|\\u2060)")
_OPEN: Final = re.compile(rf"{_BEHIND}\\(?:u(?:2(?:06?)?)?)?\Z")
# Last characters of anything that a text may be broken after.
EDGE_ENDS: Final = frozenset(_EDGES + "3589bcdeBCDE")
_BROKEN_LITERAL: Final = re.compile(rf"[{re.escape(_EDGES)}]{BREAK}\S")
# Number of preceding characters that decide whether a text follows an edge.
EDGE_CHARS: Final = 6
# What tokenizers write control tokens like, whether or not a table has them: the net. Without its first character.
_NET: Final = r"[|｜][^\s<>]{0,62}[|｜]>"
_SHAPE: Final = re.compile(f"<{_NET}")
_NET_CHARS: Final = 66  # the longest


class Control(Struct, frozen=True, gc=False):
    """One or more control tokens, by their text."""

    text: str


class Text(Struct, frozen=True, gc=False):
    """Ordinary text: whatever it looks like, it is not a control token. `json`: it is a JSON value."""

    text: str
    json: bool = False


Piece: TypeAlias = Control | Text


class Prompt(Struct, frozen=True, dict=True):
    """A whole prompt for a raw completion endpoint.

    `prefill` is the last part of it that already belongs to the answer (the start of a forced call): feed it to a
    parser before the completion. `start` is where the answer begins without the prefill. `controls` are the
    literals that the tokenizers of this family turn into control tokens; `marks` are those that the format itself
    writes, which a server must not hide in an answer.
    """

    pieces: tuple[Piece, ...]
    controls: tuple[str, ...]
    start: str = "assistant"
    prefill: str = ""
    marks: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """All pieces as one string, with look-alikes unescaped."""
        return "".join(piece.text for piece in self.pieces)

    @cached_property
    def wire_text(self) -> str:
        """All pieces as one string that tokenizes as the pieces do.

        Look-alikes in text are broken, including those that span pieces.
        """
        look_alikes = _look_alikes(self.controls)
        if isinstance(self.pieces, _Pieces) and (joined := _joined(self.pieces.parts, look_alikes)) is not None:
            return "".join(joined.texts)
        return _join_pieces(self.pieces, look_alikes)[1]


def _join_pieces(pieces: Iterable[Piece], look_alikes: "_LookAlikes") -> tuple[str, str]:
    """Pieces as one string, with look-alikes escaped in JSON only; and with all of them broken."""
    kinds: list[type[Piece]] = []
    texts: list[str] = []
    for piece in pieces:
        is_json = type(piece) is Text and piece.json
        kinds.append(type(piece))
        texts.append(_each(look_alikes, _escaped, piece.text) if is_json else piece.text)
    whole = "".join(texts)
    cuts = _cuts(look_alikes, whole, zip(kinds, texts, strict=True))
    broken = BREAK.join([whole[one:other] for one, other in pairwise([0, *cuts, len(whole)])]) if cuts else whole
    return whole, broken


def _joined(parts: Sequence["Collected"], look_alikes: "_LookAlikes") -> "_OnWire | None":
    """Wire texts of the parts, joined; None if a look-alike spans two parts."""
    wires = [part.on_wire(look_alikes) for part in parts]
    reach, begin, end = look_alikes.reach, "", ""
    for number, (part, wire) in enumerate(zip(parts, wires, strict=True), 1):
        begin += wire.begin[: reach - len(begin)]
        end = (end + wire.end)[-reach:]
        if number == len(parts):
            break
        if part.ends_in_json and parts[number].begins_with_json:  # they are one value, escaped as one
            return None
        behind = wires[number].begin
        while len(behind) < reach and (number := number + 1) < len(parts):
            behind += wires[number].begin
        if not part.ends_before(behind, wire):
            return None
    return _OnWire(look_alikes, [text for wire in wires for text in wire.texts], begin, end)


def _cuts(look_alikes: "_LookAlikes", whole: str, texts: Iterable[tuple[type[Piece], str]]) -> list[int]:
    """Offsets at which to break literals: after the first character, or after the control token it begins in."""
    ends: list[tuple[type[Piece], int]] = []  # of runs of one kind: they belong together
    end = 0
    for kind, text in texts:
        end += len(text)
        if ends and ends[-1][0] is kind:
            ends.pop()
        ends.append((kind, end))
    spans: list[tuple[int, int]] = []  # a message may hold a million
    for first, pattern in look_alikes.patterns:
        if first in whole:
            spans += [(found.start(), found.end(1)) for found in pattern.finditer(whole)]
    spans.sort()
    cuts: list[int] = []
    runs = iter(ends)
    kind, end = Text, 0
    for start, over in spans:
        while start >= end:
            kind, end = next(runs)
        if kind is Text:
            cuts.append(start + 1)
        elif over > end and cuts[-1:] != [end]:
            cuts.append(end)
    return cuts


def _json_text(text: str) -> Text:
    return Text(text, json=True)


_Make: TypeAlias = Callable[[str], Piece]
_Run: TypeAlias = tuple[_Make, str]
# Anything smaller is not a part of its own.
_PART_CHARS: Final = 256
# Anything larger is cached only as a part.
_SHORT_CHARS: Final = 2_048


class _OnWire(NamedTuple):
    """Wire text of a part for these look-alikes.

    `begin` and `end` of the part are escaped in JSON only, and long enough to hold a look-alike that reaches beyond it.
    """

    look_alikes: "_LookAlikes"
    texts: Sequence[str]
    begin: str
    end: str


class Collected:
    """The finished output of a builder, for other builders and later prompts.

    Caches its pieces and its wire text. Thread-safe: each cache slot is assigned atomically.
    """

    __slots__ = ("_parts", "_seam", "_wire", "begins_with_json", "ends_in_json", "pieces", "runs", "size")

    def __init__(self, runs: Iterable[_Run], pieces: tuple[Piece, ...] | None = None, size: int | None = None) -> None:
        self.runs = tuple(runs)
        self.pieces = tuple([make(text) for make, text in self.runs]) if pieces is None else pieces
        self.size = sum([len(text) for _, text in self.runs]) if size is None else size
        self.begins_with_json = bool(self.runs) and self.runs[0][0] is _json_text
        self.ends_in_json = bool(self.runs) and self.runs[-1][0] is _json_text
        self._parts: Sequence[Collected] = ()  # of which it is made
        self._wire: _OnWire | None = None
        self._seam: tuple[_OnWire, str, bool] | None = None  # what followed last, and whether all ended before it

    def then(self, others: Sequence["Collected"]) -> "Collected":
        """This output followed by the others; results cached for this one are reused."""
        parts = [part for part in (self, *others) if part.runs]
        if len(parts) < 2:  # nothing to join
            return parts[0] if parts else self
        runs, pieces = list(parts[0].runs), list(parts[0].pieces)
        for part in parts[1:]:
            (make, text), (next_, more) = runs[-1], part.runs[0]
            joins = make is next_
            if joins:
                runs[-1] = (make, text + more)
                pieces[-1] = make(runs[-1][1])
            runs += part.runs[joins:]
            pieces += part.pieces[joins:]
        both = Collected(runs, tuple(pieces), sum([part.size for part in parts]))
        # Parts whose wire text was never requested have no cached seam.
        both._parts = [one for part in parts for one in part._parts or (part,)]
        return both

    def on_wire(self, look_alikes: "_LookAlikes") -> _OnWire:
        wire = self._wire
        if wire is None or wire.look_alikes is not look_alikes:
            parts = self._parts  # another thread may let them go meanwhile
            wire = _joined(parts, look_alikes) if parts else None
            if wire is None:
                whole, text = _join_pieces(self.pieces, look_alikes)
                wire = _OnWire(look_alikes, [text], whole[: look_alikes.reach], whole[-look_alikes.reach :])
            self._wire, self._parts = wire, ()
        return wire

    def ends_before(self, behind: str, wire: _OnWire) -> bool:
        """Whether each look-alike that begins here ends here, too, where `behind` follows."""
        known = self._seam
        if known is not None and known[0] is wire and known[1] == behind:
            return known[2]
        text, seam = wire.end + behind, len(wire.end)
        fits = not any(
            found.end(1) > seam
            for first, pattern in wire.look_alikes.patterns
            if first in wire.end
            for found in pattern.finditer(text)
            if found.start() < seam
        )
        self._seam = wire, behind, fits
        return fits


class _Pieces(tuple[Piece, ...]):
    """The pieces of a prompt, and the parts that they are of."""

    parts: Sequence[Collected]


class PromptBuilder:
    """Collects pieces; neighbours of one kind are joined."""

    def __init__(self) -> None:
        self._parts: list[_Run | Collected] = []

    def add(self, *parts: tuple[type[Control] | type[Text], str]) -> "PromptBuilder":
        """Append control tokens and ordinary texts."""
        self._parts += parts
        return self

    def control(self, *tokens: str) -> "PromptBuilder":
        """Append control tokens."""
        self._parts.append((Control, "".join(tokens)))
        return self

    def text(self, *texts: str) -> "PromptBuilder":
        """Append ordinary text."""
        self._parts.append((Text, "".join(texts)))
        return self

    def json(self, text: str) -> "PromptBuilder":
        """Append the text of a JSON value."""
        self._parts.append((_json_text, text))
        return self

    def put(self, collected: Collected) -> "PromptBuilder":
        """Append what another one has collected."""
        if collected.size < _PART_CHARS:
            self._parts += collected.runs
        else:
            self._parts.append(collected)
        return self

    def collected(self) -> Collected:
        """The output so far, for another builder."""
        runs: list[_Run] = []
        for part in self._parts:
            if isinstance(part, Collected):
                runs += part.runs
            else:
                runs.append(part)
        return Collected(_runs(runs))

    def pieces(self) -> tuple[Piece, ...]:
        """The pieces written so far."""
        parts: list[Collected] = []
        loose: list[_Run] = []
        for part in self._parts:
            if not isinstance(part, Collected):
                loose.append(part)
                continue
            if loose:
                parts.append(_loose(loose))
                loose = []
            parts.append(part)
        if loose:
            parts.append(_loose(loose))
        pieces: list[Piece] = []
        for own in [part.pieces for part in parts if part.pieces]:
            if pieces and type(pieces[-1]) is type(own[0]) and (joined := _maybe_one(pieces[-1], own[0])) is not None:
                pieces[-1] = joined
                pieces += own[1:]
            else:
                pieces += own
        whole = _Pieces(pieces)
        whole.parts = parts
        return whole


def _loose(runs: Sequence[_Run]) -> Collected:
    """Runs written between cached parts, cached if short: many are the same in all prompts of a format."""
    is_short = sum([len(text) for _, text in runs]) < _SHORT_CHARS
    return _short(tuple(runs)) if is_short else Collected(_runs(runs))


@lru_cache(maxsize=512)
def _short(runs: tuple[_Run, ...]) -> Collected:
    return Collected(_runs(runs))


def _runs(parts: Iterable[_Run]) -> list[_Run]:
    """Those that have a text, neighbours of one kind as one."""
    runs: list[tuple[_Make, list[str]]] = []
    last: _Make | None = None
    for make, text in parts:
        if not text:
            continue
        if make is not last:
            runs.append((make, texts := []))
            last = make
        texts.append(text)
    return [(make, "".join(texts)) for make, texts in runs]


def _maybe_one(one: Piece, other: Piece) -> Piece | None:
    """Two pieces of one kind as one."""
    if type(one) is Text:
        both_json = type(other) is Text and one.json == other.json
        return Text(one.text + other.text, one.json) if both_json else None
    return Control(one.text + other.text) if type(other) is Control else None


def own_words(out: PromptBuilder, text: str, controls: Sequence[str]) -> PromptBuilder:
    """Append text of the dialect itself, in which the strings `controls` are control tokens."""
    for words, control in _cut_at_controls(text, tuple(controls)):
        out.text(words).control(control)
    return out


@lru_cache(maxsize=1024)
def _cut_at_controls(text: str, controls: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Pairs of plain text and the control token that follows it, `""` in the last."""
    found = "|".join(map(re.escape, sorted(controls, key=len, reverse=True))) or "(?!)"
    pieces = re.split(f"({found})", text)
    return tuple(zip(pieces[::2], [*pieces[1::2], ""], strict=True))


def neutralise(text: str, controls: Sequence[str], keep: Sequence[str] = ()) -> str:
    """`text` with an invisible character inside every look-alike of a control token.

    Look-alikes are the literals `controls` and anything of their shape; those of `keep` stay whole.
    """
    return _each(_look_alikes(tuple(controls), tuple(keep)), _break_match, text)


def _break_match(found: re.Match[str]) -> str:
    return found[0] + BREAK


def neutralise_json(text: str, controls: Sequence[str]) -> str:
    """Like `neutralise`, for JSON text: the first character is escaped, so the value stays the same."""
    return _each(_look_alikes(tuple(controls)), _escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def restore_breaks(text: str, before: str) -> str:
    """`text` without the breaks that the model has copied from its prompt; the same object if it has none.

    `before` are the last `EDGE_CHARS` characters of the output before it.
    """
    if BREAK not in text and "\\u2060" not in text:
        return text
    whole, at = before + text, len(before)
    kept: list[str] = []
    for found in _BROKEN.finditer(whole, at):
        kept.append(whole[at : found.start()])
        at = found.end()
    return "".join([*kept, whole[at:]]) if kept else text


def holds_broken(text: str) -> bool:
    """Whether a text repeats a literal as a prompt breaks it."""
    return BREAK in text and _BROKEN_LITERAL.search(text) is not None


def open_escape(text: str, before: str) -> str:
    """The end of `text` that may begin a break for `restored`, to be joined with the next piece; else empty."""
    found = _OPEN.search(before + text, len(before)) if "\\" in text[-EDGE_CHARS:] else None
    return found[0] if found else ""


class _LookAlikes(Struct, frozen=True):
    """What to look for, by the character that it begins with. A pattern for each, because one that begins with a single
    character is found at the speed of a search for that. None is longer than `reach`.
    """

    patterns: tuple[tuple[str, re.Pattern[str]], ...]
    reach: int


# Compiled patterns by the ids of their tuples: these are the same objects again, and slow to hash.
_known: Final[dict[tuple[int, int], tuple[_LookAlikes, tuple[str, ...], tuple[str, ...]]]] = {}
_MAX_KNOWN: Final = 256


def _each(look_alikes: _LookAlikes, replace: Callable[[re.Match[str]], str], text: str) -> str:
    """`text` with something else for the first character of each look-alike."""
    for first, pattern in look_alikes.patterns:
        if first in text:
            text = pattern.sub(replace, text)
    return text


def _look_alikes(literals: tuple[str, ...], keep: tuple[str, ...] = ()) -> _LookAlikes:
    """Pattern for these literals and the general shape.

    It matches the first character, also of one that begins within another; the group is the rest of the longest.
    """
    known = _known.get((id(literals), id(keep)))
    if known is None or known[1] is not literals or known[2] is not keep:
        if len(_known) >= _MAX_KNOWN:
            _known.clear()
        known = _known[id(literals), id(keep)] = (_compiled(literals, keep), literals, keep)
    return known[0]


@lru_cache(maxsize=_MAX_KNOWN)
def _compiled(literals: tuple[str, ...], keep: tuple[str, ...]) -> _LookAlikes:
    rests: dict[str, list[str]] = {"<": []}
    for literal in literals:
        if not _SHAPE.fullmatch(literal):
            rests.setdefault(literal[0], []).append(literal[1:])
    found: list[tuple[str, re.Pattern[str]]] = []
    for first, some in rests.items():
        kept = [literal[1:] for literal in keep if literal[0] == first]
        choices = [*([_tree(some)] if some else []), *([_NET] if first == "<" else [])]
        but = f"(?!{_tree(kept)})" if kept else ""
        found.append((first, re.compile(f"{re.escape(first)}{but}(?=({'|'.join(choices)}))")))
    return _LookAlikes(tuple(found), max([_NET_CHARS, *map(len, literals)]))


def _tree(literals: Iterable[str]) -> str:
    """A pattern of these literals that reads each character once, whatever their number; it prefers the longest."""
    nodes: dict[str, Any] = {}
    for literal in literals:
        node = nodes
        for character in literal:
            node = node.setdefault(character, {})
        node[""] = {}
    return _branches(nodes)


def _branches(node: Mapping[str, Any]) -> str:
    # Characters with the same continuations share a class: `<unused0>` to `<unused6241>` stay small.
    followed: dict[str, list[str]] = {}
    for character, rest in node.items():
        if character:
            followed.setdefault(_branches(rest), []).append(character)
    branches = [
        (re.escape(some[0]) if len(some) == 1 else f"[{re.escape(''.join(some))}]") + rest
        for rest, some in followed.items()
    ]
    if not branches:
        return ""
    pattern = branches[0] if len(branches) == 1 and "" not in node else f"(?:{'|'.join(branches)})"
    return f"{pattern}?" if "" in node else pattern
