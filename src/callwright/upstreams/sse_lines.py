"""Server-sent events as they come from a model server: the data of each event, out of bytes cut anywhere.

Lines of other fields and comments are passed over, as every server that speaks OpenAI's API sends one line of data per
event. Knows no HTTP and no JSON.
"""

from typing import Final

__all__ = ["DONE", "SseLines", "TooLongLineError"]

DONE: Final = b"[DONE]"
_MAX_LINE_BYTES: Final = 16_777_216
_SHOWN: Final = 500


class TooLongLineError(Exception):
    """A line that does not end. `shown` is its begin."""

    def __init__(self, shown: bytes) -> None:
        super().__init__("a line of more than 16 MB")
        self.shown = shown


class SseLines:
    """Feed it bytes; `is_over` once `[DONE]` has come, behind which nothing counts."""

    def __init__(self) -> None:
        self.is_over = False
        self._begun: list[bytes] = []  # a line without its end: a long one is put together once
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of the events that have ended. Raises `TooLongLineError`."""
        self._begun.append(chunk)
        self._size += len(chunk)
        if b"\n" not in chunk:
            if self._size > _MAX_LINE_BYTES:
                shown = b"".join(self._begun[:2])[:_SHOWN]
                self._begun.clear()  # an error keeps what its frames hold, and may live for long
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
        """The data of an event whose line has no end, when the stream has one."""
        rest = b"".join(self._begun)
        if not self.is_over and rest.startswith(b"data:") and (last := rest[5:].strip()) != DONE:
            return [last]
        return []
