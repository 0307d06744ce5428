"""Arguments in notations that look like program code: `{a:<|"|>x<|"|>,b:[1,true]}`, `(a='x', b=[1, True])`.

Reads the members between a call's brackets and streams them as JSON: a string flows, a number or word goes out when it
is whole. What ends the call closes brackets that are missing. The caller knows the markers and the name.
"""

from collections.abc import Callable
from typing import Final, Literal

from callwright.dialects.readers.literal_escapes import ESCAPE, key_patterns, unescaped
from callwright.dialects.readers.literal_strings import CLOSERS, QUOTES, Level, StringReader
from callwright.events import Markup, Problem
from callwright.stream_reader import Markers, Parse, StreamReader, read_until
from callwright.tolerant_json.codec import encode
from callwright.tolerant_json.scalars import scalar

__all__ = ["LiteralReader"]

_MAX_KEY: Final = 1_000
_MAX_WORD: Final = 65_536
_OPENERS: Final = {"{": "}", "[": "]", "(": ")"}


class LiteralReader(StringReader):
    """Reads the arguments of one call; `put` takes the JSON text.

    `verbatim`: quotes of strings without escapes. `ends`: the literals that end a call; `begins`: those of them that
    begin another. `call`: the index of the call. `is_text`: whether a parameter is text, so that an unquoted `5` is
    `"5"`.
    """

    def __init__(
        self,
        source: StreamReader,
        put: Callable[[str], object],
        *,
        verbatim: tuple[str, ...] = (),
        ends: tuple[str, ...] = (),
        begins: tuple[str, ...] = (),
        call: int = 0,
        is_text: Callable[[str], bool] = lambda key: False,
    ) -> None:
        super().__init__(source, put, verbatim, ends, begins)
        self._call = call
        self._is_text = is_text
        self._words = Markers(*",})]\n([{", *ends)

    def arguments(self, closer: str, separator: str) -> Parse[bool]:
        """Read members up to `closer`, or to what ends the call. False if the output was cut off before."""
        self._levels = [Level(closer, "object", separator)]
        self._put("{")
        while self._levels:
            self._source.markup((yield from self._blanks()))
            if self._source.done or (yield from self._at(self._ends)):
                break
            yield from self._entry(self._levels[-1])
        whole = not self._levels or not self._source.done
        while self._levels and whole:
            self._close()
        return whole

    def _entry(self, level: Level) -> Parse[None]:
        source = self._source
        mark = source.text[source.at]
        if mark in CLOSERS:
            source.emit(Markup(source.take(source.at + 1)))
            if any(mark == outer.closer for outer in self._levels):
                while self._levels[-1].closer != mark:
                    self._close()
                self._close()
        elif mark == ",":
            source.emit(Markup(source.take(source.at + 1)))
        elif level.kind == "array":
            yield from self._value(level, "")
        else:
            key = yield from self._key(level.separator)
            if key is None:
                yield from self._junk()
            else:
                source.markup((yield from self._blanks()))
                if not source.done:
                    is_text = len(self._levels) == 1 and self._is_text(key)
                    yield from self._value(level, encode(key).decode() + ":", is_text=is_text)

    def _close(self) -> None:
        self._put("}" if self._levels.pop().kind == "object" else "]")

    def _junk(self) -> Parse[None]:
        """Report text where a member should stand."""
        text, marker = yield from read_until(self._source, self._words, _MAX_WORD)
        if marker in _OPENERS:
            text += marker
        else:
            self._source.unread(marker)
        if self._source.done:  # a key that was cut off
            self._source.markup(text)
            return
        self._source.emit(Problem("arguments_trailing_text", "a value without a name", call=self._call, text=text))

    # --- keys ---

    def _key(self, separator: str) -> Parse[str | None]:
        """Read a key and its separator; None if there is none."""
        source = self._source
        whole, part = key_patterns(separator, self._verbatim)
        while True:
            ahead = source.ahead(_MAX_KEY)
            if found := whole(ahead):
                source.emit(Markup(source.take(source.at + found.end())))
                quoted = found["quoted"]
                if quoted is not None:
                    return ESCAPE.sub(lambda escape: unescaped(escape.group()), quoted[1:-1])
                return found["bare"] if found["bare"] is not None else found["verbatim"]
            if not source.more(_MAX_KEY) or not part(ahead):
                return None
            yield

    # --- values ---

    def _value(self, level: Level, lead: str, *, is_text: bool = False) -> Parse[None]:
        source = self._source
        lead = ("," if level.begun else "") + lead
        mark = source.text[source.at]
        if mark in _OPENERS:
            source.emit(Markup(source.take(source.at + 1)))
            level.begun = True
            yield from self._open(_OPENERS[mark], lead)
            return
        quote = yield from self._quote()
        if not quote:
            level.begun = (yield from self._word(lead, is_text=is_text)) or level.begun
            return
        level.begun = True
        self._put(lead + '"')
        closed = False
        while quote:
            closed = yield from self._string(quote)
            quote = (yield from self._next_part()) if closed and quote in QUOTES else ""
        if closed or not source.done:
            self._put('"')

    def _open(self, closer: str, lead: str) -> Parse[None]:
        """Open a container. Braces without a key are a Python set, which becomes an array."""
        kind: Literal["object", "array"] = "array"
        if closer == "}":
            self._source.markup((yield from self._blanks()))
            kind = "object" if (yield from self._begins_member()) else "array"
        self._put(lead + ("{" if kind == "object" else "["))
        self._levels.append(Level(closer, kind))

    def _begins_member(self) -> Parse[bool]:
        source = self._source
        whole, part = key_patterns(":", self._verbatim)
        while True:
            ahead = source.ahead(_MAX_KEY)
            if not source.more(_MAX_KEY) or whole(ahead) or not part(ahead):
                return not ahead or ahead[0] in CLOSERS or bool(whole(ahead)) or part(ahead) is not None
            yield

    def _word(self, lead: str, *, is_text: bool) -> Parse[bool]:
        """Read a number, a literal, or unquoted text; False if there was nothing."""
        source, text, depth = self._source, "", 0
        while True:
            piece, marker = yield from read_until(source, self._words, _MAX_WORD)
            text += piece
            if marker in _OPENERS:
                depth += 1
            elif marker in CLOSERS and depth:
                depth -= 1
            elif not marker or not (depth and marker in ",\n"):
                break
            text += marker
        source.unread(marker)
        if not text.strip() or source.done:
            source.markup(text)
            return False
        word = text.strip()
        if word.endswith(self._verbatim):  # a string whose opening delimiter is missing
            word, is_text = word.removesuffix(self._verbatim[0]), True
        node, _ = scalar(word, at_end=False)
        value = encode(word).decode() if is_text or node.kind == "word" else node.text()
        source.markup(text if value != text else "")
        self._put(lead + value)
        return True
