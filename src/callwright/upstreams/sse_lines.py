"""Server-sent events: the data of each event, out of bytes that are cut anywhere. Knows neither HTTP nor JSON.

Other fields and comments are skipped: every server with OpenAI's API sends one line of data per event.
"""

from typing import Final

__all__ = ["DONE", "SseLines", "TooLongLineError"]

DONE: Final = b"[DONE]"
_MAX_LINE_BYTES: Final = 16_777_216
_SHOWN: Final = 500


class TooLongLineError(Exception):
    """A line without an end. `shown` is its begin."""

    def __init__(self, shown: bytes) -> None:
        super().__init__("a line of more than 16 MB")
        self.shown = shown


class SseLines:
    """Feed it bytes. `is_over` once `[DONE]` has come; what follows is ignored."""

    def __init__(self) -> None:
        self.is_over = False
        self._begun: list[bytes] = []  # pieces of an unfinished line, joined once it ends
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of the events that are complete. Raises `TooLongLineError`."""
        self._begun.append(chunk)
        self._size += len(chunk)
        if b"\n" not in chunk:
            if self._size > _MAX_LINE_BYTES:
                shown = b"".join(self._begun[:2])[:_SHOWN]
                self._begun.clear()  # an exception keeps its frames alive, and with them this
                raise TooLongLineError(shown)
            return []
        *lines, rest = b"".join(self._begun).split(b"\n")
        self._begun, self._size = [rest], len(rest)
        batch: list[bytes] = []
        for line in lines:
            if line.startswith(b"data:"):
                data = line[5:].strip()
                if data == DONE:
                    self.is_over = True
                    break
                batch.append(data)
        return batch

    def finish(self) -> list[bytes]:
        """The stream is over: the data of a last event without a line break."""
        rest = b"".join(self._begun)
        if not self.is_over and rest.startswith(b"data:") and (last := rest[5:].strip()) != DONE:
            return [last]
        return []
