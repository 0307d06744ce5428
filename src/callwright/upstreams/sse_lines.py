"""Server-sent events: the data of each event, from bytes in arbitrary chunks. Knows neither HTTP nor JSON.

Parsed as in the HTML standard (https://html.spec.whatwg.org/multipage/server-sent-events.html, 9.2.6): a byte order
mark, lines that end in CR, LF or both, data of several lines, comments. `id` and `retry` are ignored. Deviations of
servers: two events without an empty line between them are two, the last one needs none, and the end mark ends the
stream immediately.
"""

import re
from typing import Final

from callwright.settings.bounds import MAX_EVENT_BYTES

DONE: Final = b"[DONE]"
_SHOWN: Final = 500
_BOM: Final = b"\xef\xbb\xbf"
_CR: Final = 13
_EVENTS: Final = re.compile(rb"data: (\{.*\})\n\n").findall
_AROUND: Final = len(b"data: \n\n")


class ErrorData(bytes):
    """The data of an event whose type is `error`."""


class TooLongLineError(Exception):
    """An event that is too large.

    `shown` is its beginning; `before` is the data of the complete events from the same chunk, not yet returned.
    """

    def __init__(self, shown: bytes, most: int, before: list[bytes]) -> None:
        super().__init__(f"an event of more than {most:,} bytes")
        self.shown = shown
        self.before = before


class SseLines:
    """Incremental parser of bytes.

    `is_over` is set at `[DONE]`; anything after it is ignored. `most`: maximum bytes of one event; `held`: bytes of an
    incomplete one.
    """

    def __init__(self, most: int = MAX_EVENT_BYTES) -> None:
        self.is_over = False
        self.held = 0  # the data of the event so far, and the line that has begun
        self._most = most
        self._begun: list[bytes] = []  # pieces of an unfinished line, joined once it ends
        self._data: bytes | bytearray = b""  # of the event, so far
        self._is_error = False
        self._is_first = True  # no line has come
        self._after_cr = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of the events that are complete. Raises `TooLongLineError`."""
        if self.is_over:
            return []
        # Whole events of one line of JSON each, as nearly all are.
        if not (self.held or self._is_first or self._after_cr or self._is_error or _CR in chunk):
            found = _EVENTS(chunk)
            if sum(map(len, found)) + _AROUND * len(found) == len(chunk) <= self._most:
                return found
        if b"\r" in chunk or self._after_cr:
            chunk = self._with_line_feeds(chunk)
        self._begun.append(chunk)
        if b"\n" not in chunk:
            self.held += len(chunk)
            if self.held > self._most:
                raise self._too_long([], b"".join(piece[:_SHOWN] for piece in self._begun[:_SHOWN]))
            return []
        return self._read_lines()

    def _read_lines(self) -> list[bytes]:
        """Read the lines that are complete."""
        *lines, rest = b"".join(self._begun).split(b"\n")
        self._begun = [rest]
        batch: list[bytes] = []
        for line in lines:
            if len(line) + len(self._data) > self._most:
                raise self._too_long(batch, line)
            if self._is_first:
                line, self._is_first = line.removeprefix(_BOM), False
            data = line[5:].strip() if line.startswith(b"data:") else None
            # A brace after a closing brace is not valid JSON: another event begins.
            if not line or data == DONE or (data is not None and data[:1] == b"{" and self._data[-1:] == b"}"):
                if self._data:
                    batch.append(ErrorData(self._data) if self._is_error else bytes(self._data))
                self._data, self._is_error = b"", False
            if data == DONE:
                self.is_over, self.held = True, 0
                return batch
            if data is not None:
                self._data = self._joined(data) if self._data else data
            elif line.startswith(b"event:"):
                self._is_error = line[6:].strip() == b"error"
        self.held = len(rest) + len(self._data)
        if self.held > self._most:
            raise self._too_long(batch, rest)
        return batch

    def finish(self) -> list[bytes]:
        """End the stream: the data of a last event without an empty line after it. Half an end mark is ignored."""
        last = self.feed(b"\n\n")
        return last[:-1] if last and DONE.startswith(last[-1]) else last

    def _joined(self, line: bytes) -> bytearray:
        data = self._data if isinstance(self._data, bytearray) else bytearray(self._data)
        data += b"\n" + line
        return data

    def _with_line_feeds(self, chunk: bytes) -> bytes:
        if self._after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._after_cr = False
        self._after_cr = self._after_cr or chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _too_long(self, before: list[bytes], line: bytes) -> TooLongLineError:
        shown = bytes(self._data or line)[: min(_SHOWN, self._most)]  # also of a line that is all there
        self._begun, self._data = [], b""  # an exception references its frames, and they this
        return TooLongLineError(shown, self._most, before)
