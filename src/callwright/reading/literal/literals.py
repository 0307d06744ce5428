"""Arguments in notations that look like program code: `{a:<|"|>x<|"|>,b:[1,true]}`, `(a='x', b=[1, True])`.

Reads the members between a call's brackets and streams them as JSON: a string is streamed, a number or word is sent
when it is complete. The end of the call also closes brackets that are missing. The caller knows the markers and the
name.

Only literals are values. Any other text between the brackets, an expression or words, is reported, and the arguments
are invalid: `LiteralReader.arguments` returns False and leaves their last bracket open.
"""

import re
from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from callwright.events import ArgumentsDelta, Markup
from callwright.reading.literal.brackets import CLOSERS, Brackets, Level
from callwright.reading.literal.ends import StringEnds
from callwright.reading.literal.escapes import ESCAPE, unescaped
from callwright.reading.literal.form import QUOTES, Ends, LiteralForm, looked_for
from callwright.reading.literal.strings import StringReader
from callwright.streaming.reader import Parse, StreamReader, comes_next, read_blanks, read_until
from callwright.tolerant_json.codec import encode
from callwright.tolerant_json.scalars import is_number, scalar

__all__ = ["Bare", "Ends", "LiteralForm", "LiteralReader"]

_MAX_KEY: Final = 1_000
_MAX_WORD: Final = 65_536
Bare: TypeAlias = Literal["text", "any", ""]
_OPENERS: Final = {"{": "}", "[": "]", "(": ")"}
_EXTRA_COMMA: Final = "extra comma"
_RADIX: Final = ("0x", "0o", "0b")


class LiteralReader:
    """Reads the arguments of one call, whose values are written according to `form`; `make` turns JSON text into an
    event.

    `call`: its index. `bare`: whether a parameter is `text`, so that an unquoted `5` is `"5"`, or `any` value; no other
    is text if it lacks its quotes.
    """

    def __init__(
        self,
        source: StreamReader,
        make: Callable[[str], ArgumentsDelta],
        form: LiteralForm,
        call: int,
        bare: Callable[[str], Bare] = lambda key: "",
    ) -> None:
        self._source = source
        self._form = form
        self._bare = bare
        self._all_ends = form.ends.all
        self._marks = looked_for(form.verbatim, form.ends)
        self._brackets = Brackets(source.emit, make, call)
        self._levels = self._brackets.levels
        self._ends = StringEnds(source, form, self._levels)
        self._strings = StringReader(source, form, self._brackets, self._ends)

    @property
    def lost(self) -> bool:
        """Whether nothing after the call is certain either."""
        return self._brackets.lost

    def arguments(self, closer: str, separator: str) -> Parse[bool]:
        """Read members up to `closer`, or to the end of the call. `separator`: the characters that may follow a name.

        False if the arguments are not complete: the output ended in them, or something in them is not a literal.
        """
        brackets, source = self._brackets, self._source
        brackets.open(Level(closer, "object", separator))
        while self._levels:
            source.markup((yield from read_blanks(source)))
            if source.done or (yield from comes_next(source, *self._form.ends.stops)):
                return False
            if (yield from comes_next(source, *self._all_ends)):
                brackets.supply(len(self._levels))
                break
            yield from self._entry(self._levels[-1])
        return brackets.sound

    def _entry(self, level: Level) -> Parse[None]:
        source, brackets = self._source, self._brackets
        mark = source.text[source.at]
        if mark in CLOSERS and any(mark == outer.closer for outer in self._levels):
            if level.parted and level.values and self._form.verbatim:  # in Python such a comma is legal
                brackets.tell("json_repaired", _EXTRA_COMMA, doubt=False)
            source.emit(Markup(source.take(source.at + 1)))
            missing = next(n for n, outer in enumerate(reversed(self._levels)) if outer.closer == mark)
            brackets.supply(missing)
            brackets.close()
        elif mark == ",":
            source.emit(Markup(source.take(source.at + 1)))
            if level.parted:
                brackets.tell("json_repaired", _EXTRA_COMMA, doubt=level.kind == "array" and not level.values)
            level.parted = True
        elif level.kind == "array":
            if level.parted:
                yield from self._value(level)
            else:
                yield from self._foreign(level)
        else:
            key = yield from self._key(level.separator)
            if key is None:
                yield from self._foreign(level)
                return
            if not level.parted:
                brackets.tell("markup_repaired", "a comma is missing", doubt=False)
            blanks = yield from read_blanks(source)
            source.markup(blanks)
            if not source.done:
                yield from self._value(level, key[0], key[1] + blanks)

    def _foreign(self, level: Level, text: str = "") -> Parse[None]:
        """Read text that is not part of the notation, after `text`: up to a comma or closer, or the next name."""
        source, depth, said = self._source, 0, [text]
        while not source.done and not (yield from comes_next(source, *self._all_ends)):
            said.append((yield from read_blanks(source)))
            if source.done:
                break
            mark = source.text[source.at]
            if not depth and (mark == "," or any(mark == outer.closer for outer in self._levels)):
                break
            if not depth and level.kind == "object" and any(said) and (yield from self._key_ahead(level.separator)):
                break
            if mark in _OPENERS or mark in CLOSERS or mark == ",":
                depth += (mark in _OPENERS) - (mark in CLOSERS)
                depth = max(depth, 0)
                said.append(source.take(source.at + 1))
            else:
                yield from self._foreign_text(said)
        written = "".join(said)
        if source.done and written.replace("_", "").isalnum():  # a name that was cut off
            source.markup(written)
            return
        self._brackets.tell("arguments_trailing_text", "text that is not a value", written)
        level.parted = level.parted and not text

    def _foreign_text(self, said: list[str]) -> Parse[None]:
        """Read a string or a word in such text into `said`."""
        source = self._source
        if (yield from comes_next(source, *self._form.verbatim, '"', "'")):
            quote = yield from self._strings.quote()
            said.append(quote)
            closed = yield from self._strings.read(quote, said)
            said.append(quote if closed else "")
            return
        word, marker = yield from read_until(source, self._marks.tokens, _MAX_WORD)
        if marker == "'" and word:  # an apostrophe
            word += marker
        else:
            source.unread(marker)
        said.append(word)

    # --- keys ---

    def _key(self, separator: str) -> Parse[tuple[str, str] | None]:
        """Read a key and its separator; returns the name and the written text, or None without a key."""
        found = yield from self._key_ahead(separator)
        if found is None:
            return None
        written = self._source.take(self._source.at + found.end())
        self._source.emit(Markup(written))
        if found["quoted"] is not None:
            return ESCAPE.sub(lambda escape: unescaped(escape.group()), found["quoted"][1:-1]), written
        return (found["bare"] if found["bare"] is not None else found["verbatim"]), written

    def _key_ahead(self, separator: str) -> Parse[re.Match[str] | None]:
        """The next key, with its separator, or None. Nothing is read."""
        source = self._source
        whole, part = self._form.keys(separator)
        while True:
            behind = source.ahead(_MAX_KEY).lstrip()
            if (found := whole(behind)) or not source.more(_MAX_KEY) or not part(behind):
                return found
            yield

    # --- values ---

    def _value(self, level: Level, key: str | None = None, written: str = "") -> Parse[None]:
        """Read a value, of a `key` if it has one; `written` is the text before it."""
        source, brackets = self._source, self._brackets
        lead = ("," if level.values else "") + ("" if key is None else encode(key).decode() + ":")
        mark = source.text[source.at]
        if mark in _OPENERS:
            source.emit(Markup(source.take(source.at + 1)))
            yield from self._open(_OPENERS[mark], lead)
            return
        quote = yield from self._strings.quote()
        if not quote:
            yield from self._word(level, key, lead, written)
            return
        brackets.put(lead + '"')
        closed = False
        parts = 0
        while quote:
            parts += 1
            closed = yield from self._strings.read(quote)
            if not closed and parts > 1:  # it may be no part
                brackets.sound = False
            quote = (yield from self._strings.next_part()) if closed and quote in QUOTES else ""
        if closed or not source.done:
            brackets.put('"')
            level.end_value()

    def _open(self, closer: str, lead: str) -> Parse[None]:
        """Open a container. Braces without a key are a Python set, which becomes an array."""
        source = self._source
        kind: Literal["object", "array"] = "array"
        if closer == "}":
            source.markup((yield from read_blanks(source)))
            if (
                self._form.verbatim
                or (yield from self._key_ahead(":"))
                or (ahead := source.ahead(_MAX_KEY))[:1] in CLOSERS
                or self._form.keys(":").part(ahead)
            ):
                kind = "object"
        self._brackets.open(Level(closer, kind), lead)

    def _word(self, level: Level, key: str | None, lead: str, written: str) -> Parse[None]:
        """Read an unquoted number or literal; text if it may be bare, or if only its opening quote is missing."""
        source, brackets = self._source, self._brackets
        bare = self._bare(key) if len(self._levels) == 1 and key is not None else ""
        text, marker = yield from self._bare_text(level, is_text=bare != "")
        if source.done and not marker:
            source.markup(text)
            return
        word, verbatim = text.strip(), self._form.verbatim
        if word and marker in (*verbatim, '"', "'") and (yield from self._ends.closes(marker)):
            source.markup(text if text != word else "")
            source.emit(Markup(marker))
            brackets.put(lead + encode(word).decode())
            # It may be an expression, or begin with a quote that was broken.
            doubt = marker not in verbatim or self._strings.holds_piece(word)
            brackets.tell("markup_repaired", "a text without its opening quote", doubt=doubt)
        elif word and marker not in (*_OPENERS, '"', "'", *verbatim) and (bare or _literal(word) is not None):
            source.unread(marker)
            literal = _literal(word)
            value = encode(word).decode() if literal is None or bare == "text" else literal
            if is_number(value) and not is_number(word):
                brackets.tell("argument_coerced", f"{word!r} was read as {value}", doubt=False)
            source.markup(text if value != text else "")
            brackets.put(lead + value)
            if literal is None:
                brackets.tell("markup_repaired", "a text without its quotes", doubt=self._strings.holds_piece(word))
        else:
            source.unread(marker)
            yield from self._foreign(level, written + text)
            return
        level.end_value()

    def _bare_text(self, level: Level, *, is_text: bool) -> Parse[tuple[str, str]]:
        """Read an unquoted value, and the mark that ends it; if it may be text (`is_text`), not at the first comma."""
        pieces: list[str] = []
        while True:
            piece, marker = yield from read_until(self._source, self._marks.words, _MAX_WORD)
            pieces.append(piece)
            goes_on = is_text and (
                (marker == "'" and piece) or (marker == "," and (yield from self._goes_on(level, pieces)))
            )
            if not goes_on:
                return "".join(pieces), marker
            pieces.append(marker)

    def _goes_on(self, level: Level, pieces: list[str]) -> Parse[bool]:
        """Whether a bare text continues after a comma: it is not a literal, and neither a name nor the end follows."""
        if len(pieces) == 1 and _literal(pieces[0]) is not None:
            return False
        if (yield from self._key_ahead(level.separator)):
            return False
        return self._source.ahead(_MAX_KEY).lstrip()[:1] not in CLOSERS


def _literal(word: str) -> str | None:
    """The JSON of a literal; None for other words."""
    bare = word.strip()
    if not bare:
        return None
    if bare.lstrip("+-")[:2].lower() in _RADIX:
        try:
            return str(int(bare, 0))
        except ValueError:
            return None
    node, _ = scalar(bare, at_end=False)
    return node.text() if node.kind in ("number", "literal") else None
