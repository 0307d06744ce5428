"""A rendered prompt: control tokens and text as two types, so that text can never become a control token.

An engine that takes token ids can keep them apart to the end. Where only a string can be sent, `wire_text` breaks every
look-alike in the text with an invisible character, so that the server's tokenizer finds no control token in it.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby, pairwise
from typing import TypeAlias

from msgspec import Struct

__all__ = ["Control", "Piece", "Prompt", "PromptBuilder", "Text", "neutralise", "neutralise_json"]

# WORD JOINER: zero width, no line break, part of no known control token.
_BREAK = "\u2060"


class Control(Struct, frozen=True, gc=False):
    """One or more control tokens, by their text."""

    text: str


class Text(Struct, frozen=True, gc=False):
    """Ordinary text: whatever it looks like, it is not a control token. `json`: it is a JSON value."""

    text: str
    json: bool = False


Piece: TypeAlias = Control | Text


class Prompt(Struct, frozen=True):
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

    @property
    def wire_text(self) -> str:
        """All pieces as one string that a tokenizer reads as the pieces say: look-alikes in text are broken."""
        return "".join(self._wire_texts())

    def _wire_texts(self) -> Iterator[str]:
        # Neighbours as one text, so that no look-alike hides in a seam; nor may one begin or end in a control token.
        runs = [(kind, "".join(map(self._as_text, pieces))) for kind, pieces in groupby(self.pieces, type)]
        for number, (kind, text) in enumerate(runs):
            if kind is Control:
                yield text
            else:
                before = runs[number - 1][1] if number else ""
                after = runs[number + 1][1] if number + 1 < len(runs) else ""
                yield neutralise(text, self.controls, before, after)

    def _as_text(self, piece: Piece) -> str:
        is_json = isinstance(piece, Text) and piece.json
        return neutralise_json(piece.text, self.controls) if is_json else piece.text


class PromptBuilder:
    """Collects pieces; neighbours of one kind are joined."""

    def __init__(self) -> None:
        self._runs: list[tuple[type[Control] | type[Text], bool, list[str]]] = []

    def control(self, *tokens: str) -> "PromptBuilder":
        """Append control tokens."""
        return self._append(Control, tokens)

    def text(self, *texts: str) -> "PromptBuilder":
        """Append ordinary text."""
        return self._append(Text, texts)

    def json(self, text: str) -> "PromptBuilder":
        """Append the text of a JSON value."""
        return self._append(Text, (text,), is_json=True)

    def _append(
        self, kind: type[Control] | type[Text], texts: Iterable[str], *, is_json: bool = False
    ) -> "PromptBuilder":
        texts = [text for text in texts if text]
        if texts:
            if not self._runs or self._runs[-1][:2] != (kind, is_json):
                self._runs.append((kind, is_json, []))
            self._runs[-1][2].extend(texts)
        return self

    def pieces(self) -> tuple[Piece, ...]:
        """What was collected."""
        return tuple(
            Text("".join(texts), is_json) if kind is Text else Control("".join(texts))
            for kind, is_json, texts in self._runs
        )


def neutralise(text: str, controls: Sequence[str], before: str = "", after: str = "") -> str:
    """`text` with an invisible character inside every literal of `controls` that it holds, or has a part of: the rest
    may stand in what comes `before` or `after` it.
    """
    literals = tuple(controls)
    longest = max(map(len, literals), default=0)
    head = before[-longest:] if longest else ""
    whole = head + text + after[:longest]
    begins, ends = len(head), len(head) + len(text)
    cuts = {
        max(begins, found.start() + 1)
        for found in _begin_of(literals).finditer(whole)
        if found.start() < ends and found.end(found.lastindex or 0) > begins
    }
    if not cuts:
        return text
    at = [begins, *sorted(cuts), ends]
    return _BREAK.join(whole[one:other] for one, other in pairwise(at))


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
