"""`--record DIR`: each turn as a line of JSON, in a file that only its owner can read.

A thread writes them, so that no request waits for the disk. If it is too slow, or the disk fails, turns are dropped,
counted and logged, and requests continue. Headers are not recorded, nor are secrets, see `redaction`.
"""

import logging
import os
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal, TypeAlias

from msgspec import Struct

import callwright
from callwright.errors import ConfigError
from callwright.gateway.observability.conversation_ids import ConversationIds
from callwright.gateway.observability.redaction import Redactor, request_without_keys
from callwright.gateway.request_context import RequestContext, current
from callwright.tolerant_json.codec import encode
from callwright.turn.observe import Ended, Observation
from callwright.turn.records import RecordedAttempt, record_of

log = logging.getLogger("callwright.gateway")
Told: TypeAlias = Callable[[Literal["written", "dropped", "failed"]], None]
_PATTERN: Final = "turns-*.jsonl"
# A longer turn is recorded without its input, then without its output: larger records are of no use, and this also
# limits the memory for one turn.
_MAX_TURN_BYTES: Final = 4_194_304
# The size at which a new file is begun: tools can still load a file of this size whole.
_MAX_FILE_BYTES: Final = 67_108_864
# How many turns wait to be written at most, and how many bytes in all.
_MAX_WAITING: Final = 1_024
_MAX_WAITING_BYTES: Final = 67_108_864
_COMPLAINS_EVERY_S: Final = 60.0


class _Waiting(Struct):
    seen: Observation
    context: RequestContext | None
    body: bytes | str | None
    conversation: str
    time_s: float
    size: int


class Recorder:
    """Records turns in a folder, which it creates. The oldest files go when all of them have more than `max_bytes`.
    Raises `ConfigError` if it cannot write there.
    """

    def __init__(
        self, folder: Path, max_bytes: int, told: Told, conversations: ConversationIds, redactor: Redactor
    ) -> None:
        self._told = told
        self._conversations = conversations
        self.redactor = redactor
        self._files = _Files(folder, max_bytes)
        self._waiting: queue.Queue[_Waiting | None] = queue.Queue(_MAX_WAITING)
        self._waiting_bytes = 0
        self._counting = threading.Lock()
        self._complained_s = -_COMPLAINS_EVERY_S
        self._thread: threading.Thread | None = None

    def open(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._work, name="callwright-record", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Write what waits, then end. Blocks."""
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join()
            self._thread = None

    def observe(self, seen: Observation) -> Ended | None:
        """See `callwright.turn.observe.Observer`. Only chats can be re-read, so nothing else is recorded."""
        if seen.operation != "chat":
            return None
        seen.keeps = max(seen.keeps, _MAX_TURN_BYTES)
        context = current()
        body = context.body if context is not None else None
        conversation = self._conversations.of(seen, context)
        return lambda: self._put(seen, context, body, conversation)

    def _put(
        self, seen: Observation, context: RequestContext | None, body: bytes | str | None, conversation: str
    ) -> None:
        kept = sum(seen.keeps - asked.raw.room for asked in seen.asked if asked.raw is not None)
        size = kept + 2 * len(body or b"")
        with self._counting:
            is_full = self._waiting_bytes + size > _MAX_WAITING_BYTES
            if not is_full:
                self._waiting_bytes += size
        try:
            if is_full:
                raise queue.Full
            self._waiting.put_nowait(_Waiting(seen, context, body, conversation, time.time(), size))
        except queue.Full:
            if not is_full:
                self._let_go(size)
            self._told("dropped")
            self._complain("turns are not recorded: the disk does not keep up")

    # --- in the thread ---

    def _work(self) -> None:
        while (waiting := self._waiting.get()) is not None:
            try:
                self._files.write(_line(waiting, _MAX_TURN_BYTES, self.redactor), waiting.time_s)
            except Exception as error:
                self._told("failed")
                # The message may quote the turn: only the kind of failure is logged.
                reason = error.strerror if isinstance(error, OSError) else type(error).__name__
                self._complain(f"a turn could not be recorded: {reason}")
            else:
                self._told("written")
            self._let_go(waiting.size)
        self._files.close()

    def _let_go(self, size: int) -> None:
        with self._counting:
            self._waiting_bytes -= size

    def _complain(self, words: str) -> None:
        now = time.monotonic()
        if now - self._complained_s >= _COMPLAINS_EVERY_S:
            self._complained_s = now
            log.warning("%s", words)


class _Files:
    """The files of a folder. A new one begins each day (UTC), when one is full, and in each process."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._max_file_bytes = min(_MAX_FILE_BYTES, max_bytes // 3)
        self._open: int | None = None
        self._day = ""
        self._size = 0
        self._number = 0
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"record: cannot make the folder {folder}: {error.strerror}.") from error
        if not os.access(folder, os.W_OK | os.X_OK):
            raise ConfigError(f"record: cannot write in the folder {folder}.")

    def write(self, line: bytes, time_s: float) -> None:
        """Append a line. After a failure the next line goes into a new file, as half a line may be left in this one."""
        day = datetime.fromtimestamp(time_s, UTC).strftime("%Y%m%d")
        if self._is_gone() or day != self._day or self._size + len(line) > self._max_file_bytes:
            self._begin(day)
        assert self._open is not None
        left = memoryview(line)
        try:
            while left:
                left = left[os.write(self._open, left) :]
        except OSError:
            self.close()
            raise
        self._size += len(line)

    def _is_gone(self) -> bool:
        """Whether there is no open file, or another process has deleted it as the oldest."""
        return self._open is None or os.fstat(self._open).st_nlink == 0

    def close(self) -> None:
        """Close the open file."""
        if self._open is not None:
            os.close(self._open)
            self._open = None

    def _begin(self, day: str) -> None:
        self.close()
        begun = datetime.now(UTC).strftime("%H%M%S")
        self._number += 1
        path = self._folder / f"turns-{day}-{begun}-{os.getpid()}-{self._number:04}.jsonl"
        self._open = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._day, self._size = day, 0
        self._erase_old(path)

    def _erase_old(self, kept: Path) -> None:
        """Delete the oldest files while the folder exceeds its limit, with room for the new file."""
        found: list[tuple[float, Path, int]] = []
        for path in self._folder.glob(_PATTERN):
            with suppress(FileNotFoundError):  # another process erases, too
                stat = path.stat()
                found.append((stat.st_mtime, path, stat.st_size))
        total = sum(size for _, path, size in found if path != kept) + self._max_file_bytes
        for _, path, size in sorted(found):
            if total <= self._max_bytes:
                break
            if path != kept:
                total -= size
                path.unlink(missing_ok=True)


def _line(waiting: _Waiting, most: int, redactor: Redactor) -> bytes:
    """The record of a turn as a line of at most `most` bytes: if it is too long, first the request is left out, then
    the answer.
    """
    context = waiting.context
    record = record_of(
        waiting.seen,
        version=callwright.__version__,
        time=datetime.fromtimestamp(waiting.time_s, UTC).isoformat(timespec="milliseconds"),
        request_id=context.id if context else None,
        client_request_id=context.client_id if context else None,
        endpoint=context.endpoint if context else None,
        reasoning_put_back=context.reasoning_put_back if context else 0,
        request=request_without_keys(waiting.body),
        conversation=waiting.conversation,
    )
    record = redactor.record(record, waiting.seen.secrets)
    line = encode(record) + b"\n"
    if len(line) > most:
        record.request = None
        for attempt in record.attempts:
            attempt.prompt = attempt.messages = None
        line = encode(record) + b"\n"
    if len(line) > most:
        record.is_cut = True
        record.attempts = [RecordedAttempt(one.mode, one.ended, is_cut=True) for one in record.attempts]
        record.tools, record.problems = [], []
        line = encode(record) + b"\n"
    return line
