"""A rendered prompt: control tokens and text as two types, so that text can never become a control token.

An engine that takes token ids can keep them apart to the end. Where only a string can be sent, `wire_text` breaks every
look-alike in the text with an invisible character, so that the server's tokenizer finds no control token in it.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Final, TypeAlias

from msgspec import Struct

__all__ = ["BREAK", "Control", "Piece", "Prompt", "PromptBuilder", "Text", "neutralise", "neutralise_json", "restored"]

# WORD JOINER: zero width, no line break, part of no known control token.
BREAK = "\u2060"
# A literal that was broken: its first character, and what was put behind it, also as JSON writes it.
_BROKEN = re.compile(rf"(\A|[<\[>|｜])(?:{BREAK}|\\u2060)")
_FIRSTS: Final = "<[>|｜"


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

    `prefill` is the last part of it that already belongs to the answer (the start of a forced call): a parser must be
    fed with it before the completion. `start` says where the answer begins without the prefill. `controls` are the
    literals that the tokenizer of this family turns into control tokens.
    """

    pieces: tuple[Piece, ...]
    controls: tuple[str, ...]
    start: str = "assistant"
    prefill: str = ""

    @property
    def text(self) -> str:
        """All pieces as one string, look-alikes as they are."""
        return "".join(piece.text for piece in self.pieces)

    @cached_property
    def wire_text(self) -> str:
        """All pieces as one string that a tokenizer reads as the pieces say: look-alikes in text are broken, those too
        that hide in a seam.
        """
        kinds: list[type[Piece]] = []
        texts: list[str] = []
        for piece in self.pieces:
            is_json = isinstance(piece, Text) and piece.json
            kinds.append(type(piece))
            texts.append(neutralise_json(piece.text, self.controls) if is_json else piece.text)
        whole = "".join(texts)
        cuts = self._cuts(whole, zip(kinds, texts, strict=True))
        return BREAK.join([whole[one:other] for one, other in pairwise([0, *cuts, len(whole)])]) if cuts else whole

    def _cuts(self, whole: str, texts: Iterable[tuple[type[Piece], str]]) -> list[int]:
        """Where a literal has to be broken: behind its first character; behind the control token that it begins in."""
        ends: list[tuple[type[Piece], int]] = []  # of runs of one kind: they belong together
        end = 0
        for kind, text in texts:
            end += len(text)
            if ends and ends[-1][0] is kind:
                ends.pop()
            ends.append((kind, end))
        literal = _begin_of(self.controls)
        starts = [found.start() for found in literal.finditer(whole)]  # a message may hold a million
        cuts: list[int] = []
        at = 0
        for kind, end in ends if starts else ():
            upto = bisect_left(starts, end, at)
            if kind is Text:
                cuts += [start + 1 for start in starts[at:upto]]
            else:
                begun = filter(None, (literal.match(whole, start) for start in starts[at:upto]))
                cuts += [end] * any(found.end(found.lastindex or 0) > end for found in begun)
            at = upto
        return cuts


def _json_text(text: str) -> Text:
    return Text(text, json=True)


_Make: TypeAlias = Callable[[str], Piece]


class PromptBuilder:
    """Collects pieces; neighbours of one kind are joined."""

    def __init__(self) -> None:
        self._parts: list[tuple[_Make, str]] = []

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

    def pieces(self) -> tuple[Piece, ...]:
        """What was collected."""
        runs: list[tuple[_Make, list[str]]] = []
        for make, text in self._parts:
            if not text:
                continue
            if not runs or runs[-1][0] is not make:
                runs.append((make, []))
            runs[-1][1].append(text)
        return tuple([make("".join(texts)) for make, texts in runs])


def neutralise(text: str, controls: Sequence[str]) -> str:
    """`text` with an invisible character inside every literal of `controls` that it holds."""
    return _begin_of(tuple(controls)).sub(_broken, text)


def _broken(found: re.Match[str]) -> str:
    return found[0] + BREAK


def restored(text: str, before: str) -> str:
    """`text`, in which a model repeats what was broken in its prompt, as it was before; the same object if it does not.

    `before` ends with what the model wrote before it.
    """
    if BREAK not in text and "\\u2060" not in text:
        return text
    return _BROKEN.sub(lambda found: found[1] if found[1] or before[-1:] in _FIRSTS else found[0], text)


def neutralise_json(text: str, controls: Sequence[str]) -> str:
    """The same for JSON text, where it costs nothing: the first character is escaped, so the value is the same."""
    return _begin_of(tuple(controls)).sub(lambda found: f"\\u{ord(found[0]):04x}", text)


@lru_cache(maxsize=64)
def _begin_of(literals: tuple[str, ...]) -> re.Pattern[str]:
    """The first character of each literal, of those too that begin within another one; the group that matches is the
    rest of the longest.
    """
    rests: dict[str, list[str]] = {}
    for literal in sorted(literals, key=len, reverse=True):
        rests.setdefault(literal[0], []).append(re.escape(literal[1:]))
    choices = (f"{re.escape(first)}(?=({'|'.join(rest)}))" for first, rest in rests.items())
    return re.compile("|".join(choices) or "(?!)")
