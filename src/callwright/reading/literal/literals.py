"""Arguments in notations that look like program code: `{a:<|"|>x<|"|>,b:[1,true]}`, `(a='x', b=[1, True])`.

Reads the members between a call's brackets and streams them as JSON: a string flows, a number or word goes out when it
is whole. What ends the call closes brackets that are missing. The caller knows the markers and the name.

Only literals are values. Any other text between the brackets, an expression or words, is named, and the arguments are
not what was meant: `LiteralReader.arguments` answers False and leaves their last bracket open.
"""

from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from callwright.events import ArgumentsDelta, Markup
from callwright.reading.literal.brackets import CLOSERS, Ends, Level
from callwright.reading.literal.escapes import ESCAPE, unescaped
from callwright.reading.literal.strings import QUOTES, StringReader
from callwright.stream_reader import Markers, Parse, StreamReader, read_until
from callwright.tolerant_json.codec import encode
from callwright.tolerant_json.scalars import is_number, scalar

__all__ = ["Bare", "Ends", "LiteralReader"]

_MAX_KEY: Final = 1_000
_MAX_WORD: Final = 65_536
Bare: TypeAlias = Literal["text", "any", ""]
_OPENERS: Final = {"{": "}", "[": "]", "(": ")"}
_EXTRA_COMMA: Final = "extra comma"
_RADIX: Final = ("0x", "0o", "0b")


class LiteralReader(StringReader):
    """Reads the arguments of one call; `make` makes an event of JSON text.

    `verbatim`: quotes of strings without escapes. `ends`: what ends the call. `call`: its index. `bare`: whether a
    parameter is `text`, so that an unquoted `5` is `"5"`, or `any` value; no other is text when it lacks its quotes.
    `names` are keys that may stand without quotes, whatever is in them.
    """

    def __init__(
        self,
        source: StreamReader,
        make: Callable[[str], ArgumentsDelta],
        *,
        verbatim: tuple[str, ...] = (),
        ends: Ends = Ends(),  # noqa: B008  # frozen
        call: int = 0,
        bare: Callable[[str], Bare] = lambda key: "",
        names: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(source, make, verbatim, ends, call, names)
        self._bare = bare
        self._words = Markers(*",})]\n([{\"'", *verbatim, *self._ends)
        self._tokens = Markers(*",})]([{\"' \t\r\n", *verbatim, *self._ends)
        self._closed: Level | None = None  # the last bracket that was closed
        self._repeats: Level | None = None  # a member of it is being read again

    def arguments(self, closer: str, separator: str) -> Parse[bool]:
        """Read members up to `closer`, or to what ends the call. `separator`: the characters that may stand behind a
        name.

        False if the arguments are not whole: the output ended in them, or something in them is no literal.
        """
        self._levels = [Level(closer, "object", separator)]
        self._put("{")
        while self._levels:
            self._source.markup((yield from self._blanks()))
            if self._source.done or (yield from self._at(self._stops)):
                if self._repeats is not None:
                    self._tell_again(self._repeats)
                return False
            if (yield from self._at(self._ends)):
                self._supply(len(self._levels))
                break
            yield from self._entry(self._levels[-1])
        return self.sound

    def _entry(self, level: Level) -> Parse[None]:
        source = self._source
        mark = source.text[source.at]
        if mark in CLOSERS and any(mark == outer.closer for outer in self._levels):
            if level.parted and level.begun and self._verbatim:  # in Python such a comma is legal
                self._tell("json_repaired", _EXTRA_COMMA, doubt=False)
            source.emit(Markup(source.take(source.at + 1)))
            missing = next(n for n, outer in enumerate(reversed(self._levels)) if outer.closer == mark)
            self._supply(missing)
            self._close()
        elif mark == ",":
            source.emit(Markup(source.take(source.at + 1)))
            if level.parted:
                self._tell("json_repaired", _EXTRA_COMMA, doubt=level.kind == "array" and not level.begun)
            level.parted = True
        elif level.kind == "array":
            if level.parted:
                yield from self._value(level, "", "")
            else:
                yield from self._foreign(level)
        else:
            key = yield from self._key(level.separator)
            if key is None:
                yield from self._foreign(level)
                return
            if not level.parted:
                self._tell("markup_repaired", "a comma is missing", doubt=False)
            self._begin_member(level, key[0])
            blanks = yield from self._blanks()
            source.markup(blanks)
            if not source.done:
                yield from self._value(level, encode(key[0]).decode() + ":", key[1] + blanks)

    # --- brackets and members ---

    def _close(self) -> None:
        """End the innermost bracket. The last one stays open when it is not certain what was meant."""
        self._closed = level = self._levels.pop()
        if self._levels or self.sound:
            self._put("}" if level.kind == "object" else "]")
        if self._levels:
            self._end_member(self._levels[-1])

    def _supply(self, count: int) -> None:
        """End so many brackets whose closers are missing."""
        if count:
            # Of several members some may have been meant to stand further out.
            inner = [*self._levels[1:], *([self._closed] if self._closed else ())]
            self._tell(
                "markup_repaired", "a closing bracket is missing", doubt=any(len(level.given) > 1 for level in inner)
            )
        for _ in range(count):
            self._close()

    def _begin_member(self, level: Level, key: str) -> None:
        level.key, level.begin = key, len(self._log)
        if key in level.given and self._repeats is None:
            self._repeats, self._silent = level, True

    def _end_member(self, level: Level) -> None:
        """A value of this level is written."""
        level.begun, level.parted = True, False
        if level.key is None:
            return
        span = (level.begin, len(self._log))
        if self._repeats is not level:
            level.given.setdefault(level.key, span)
        else:
            self._tell_again(level)
        level.key = None

    def _tell_again(self, level: Level) -> None:
        """Report the member of a level that was given before."""
        assert level.key is not None  # it is being read
        first = "".join(self._log[slice(*level.given[level.key])])
        again = "".join(self._log[level.begin :])
        if first == again:
            self._tell("argument_dropped", f"{level.key!r} was given twice", again, doubt=False)
        else:
            self._tell("argument_repeated", f"{level.key!r} was given twice", again)
        self._repeats, self._silent = None, False

    def _foreign(self, level: Level, text: str = "") -> Parse[None]:
        """Read text that is no part of the notation, behind `text`: up to a comma or closer, or the next name."""
        source, depth, said = self._source, 0, [text]
        while not source.done and not (yield from self._at(self._ends)):
            said.append((yield from self._blanks()))
            if source.done:
                break
            mark = source.text[source.at]
            if not depth and (mark == "," or any(mark == outer.closer for outer in self._levels)):
                break
            if not depth and level.kind == "object" and any(said) and (yield from self._key_comes(level)):
                break
            if mark in _OPENERS or mark in CLOSERS or mark == ",":
                depth += (mark in _OPENERS) - (mark in CLOSERS)
                depth = max(depth, 0)
                said.append(source.take(source.at + 1))
            elif (yield from self._at((*self._verbatim, '"', "'"))):
                quote = yield from self._quote()
                self._aside = [quote]
                closed = yield from self._string(quote)
                said += (*self._aside, quote if closed else "")
                self._aside = None
            else:
                word, marker = yield from read_until(source, self._tokens, _MAX_WORD)
                if marker == "'" and word:  # an apostrophe
                    word += marker
                else:
                    source.unread(marker)
                said.append(word)
        written = "".join(said)
        if source.done and written.replace("_", "").isalnum():  # a name that was cut off
            source.markup(written)
            return
        self._tell("arguments_trailing_text", "text that is no value", written)
        level.key, level.parted = None, level.parted and not text
        if self._repeats is level:
            self._repeats, self._silent = None, False

    # --- keys ---

    def _key(self, separator: str) -> Parse[tuple[str, str] | None]:
        """Read a key and its separator; answers the name and what was written, None if there is none."""
        source = self._source
        whole, part = self._keys(separator)
        while True:
            ahead = source.ahead(_MAX_KEY)
            if found := whole(ahead):
                written = source.take(source.at + found.end())
                source.emit(Markup(written))
                quoted = found["quoted"]
                if quoted is not None:
                    return ESCAPE.sub(lambda escape: unescaped(escape.group()), quoted[1:-1]), written
                return (found["bare"] if found["bare"] is not None else found["verbatim"]), written
            if not source.more(_MAX_KEY) or not part(ahead):
                return None
            yield

    def _key_comes(self, level: Level) -> Parse[bool]:
        """Whether a name comes next, with its separator."""
        source = self._source
        whole, part = self._keys(level.separator)
        while True:
            ahead = source.ahead(_MAX_KEY)
            behind = ahead.lstrip()
            if whole(behind):
                return True
            if not source.more(_MAX_KEY) or (behind and not part(behind)):
                return False
            yield

    # --- values ---

    def _value(self, level: Level, lead: str, written: str) -> Parse[None]:
        """Read a value. `lead`: the JSON before it; `written`: what stood there."""
        source = self._source
        lead = ("," if level.begun else "") + lead
        mark = source.text[source.at]
        if mark in _OPENERS:
            source.emit(Markup(source.take(source.at + 1)))
            yield from self._open(_OPENERS[mark], lead)
            return
        quote = yield from self._quote()
        if not quote:
            yield from self._word(level, lead, written)
            return
        self._put('"', lead)
        closed = False
        parts = 0
        while quote:
            parts += 1
            closed = yield from self._string(quote)
            self.sound = self.sound and (closed or parts == 1)  # a part that is never closed may be no part
            quote = (yield from self._next_part()) if closed and quote in QUOTES else ""
        if closed or not source.done:
            self._put('"')
            self._end_member(level)

    def _open(self, closer: str, lead: str) -> Parse[None]:
        """Open a container. Braces without a key are a Python set, which becomes an array."""
        kind: Literal["object", "array"] = "array"
        if closer == "}":
            self._source.markup((yield from self._blanks()))
            kind = "object" if self._verbatim or (yield from self._begins_member()) else "array"
        self._put("{" if kind == "object" else "[", lead)
        self._levels.append(Level(closer, kind))

    def _begins_member(self) -> Parse[bool]:
        source = self._source
        whole, part = self._keys(":")
        while True:
            ahead = source.ahead(_MAX_KEY)
            if not source.more(_MAX_KEY) or whole(ahead) or not part(ahead):
                return not ahead or ahead[0] in CLOSERS or bool(whole(ahead)) or part(ahead) is not None
            yield

    def _word(self, level: Level, lead: str, written: str) -> Parse[None]:
        """Read a value that has no quotes: a number, a literal; text where it may be bare, or if only its opening quote
        is missing.
        """
        source = self._source
        pieces: list[str] = []
        bare = self._bare(level.key) if len(self._levels) == 1 and level.key is not None else ""
        while True:
            piece, marker = yield from read_until(source, self._words, _MAX_WORD)
            pieces.append(piece)
            goes_on = bare and (
                (marker == "'" and piece) or (marker == "," and (yield from self._goes_on(level, pieces)))
            )
            if not goes_on:
                break
            pieces.append(marker)
        text = "".join(pieces)
        if source.done and not marker:
            source.markup(text)
            return
        word = text.strip()
        if word and marker in (*self._verbatim, '"', "'") and (yield from self._closes(marker, odd=False)):
            source.markup(text if text != word else "")
            source.emit(Markup(marker))
            self._put(encode(word).decode(), lead)
            # It may be an expression, or begin with a quote that was broken.
            doubt = marker not in self._verbatim or self._holds_piece(word)
            self._tell("markup_repaired", "a text without its opening quote", doubt=doubt)
        elif word and marker not in (*_OPENERS, '"', "'", *self._verbatim) and (bare or _literal(word) is not None):
            source.unread(marker)
            literal = _literal(word)
            value = encode(word).decode() if literal is None or bare == "text" else literal
            if is_number(value) and not is_number(word):
                self._tell("argument_coerced", f"{word!r} was read as {value}", doubt=False)
            source.markup(text if value != text else "")
            self._put(value, lead)
            if literal is None:
                self._tell("markup_repaired", "a text without its quotes", doubt=self._holds_piece(word))
        else:
            source.unread(marker)
            yield from self._foreign(level, written + text)
            return
        self._end_member(level)

    def _goes_on(self, level: Level, pieces: list[str]) -> Parse[bool]:
        """Whether a bare text goes on behind a comma: it is no literal, and neither a name nor the end follows."""
        if len(pieces) == 1 and _literal(pieces[0]) is not None:
            return False
        if (yield from self._key_comes(level)):
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
