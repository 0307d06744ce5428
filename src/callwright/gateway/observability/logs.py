"""Logging: lines for people or JSON, each with its request id, and the request log, one line for each request.

From `info` on no line quotes a prompt, an answer, arguments or a key; only the traceback of a failure of the gateway
itself could. At `debug` errors come with their full message, which may quote some of it.
"""

import logging
import sys
import time
from asyncio.events import _get_running_loop  # which does not raise
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any, Final, TextIO

from msgspec import Struct

from callwright.gateway.config.config import LogFormat, LogLevel
from callwright.gateway.request_context import RequestContext, current
from callwright.tolerant_json.codec import encode

package = logging.getLogger("callwright")
access = logging.getLogger("callwright.access")
# Polled by machines every few seconds: their access lines are for `debug`.
_QUIET: Final = ("/healthz", "/readyz", "/metrics", "/")
_PAGES: Final = "/ui"
_FAILED: Final = 400


# Below this, Python writes a number with an exponent.
_SMALL: Final = 0.0001


class Line(Struct):
    """A line of fields: `name=value` for people, members of the object in JSON."""

    fields: dict[str, Any]

    def __str__(self) -> str:
        parts = []
        for name, value in self.fields.items():
            if type(value) is dict:
                value = ",".join([f"{inner}:{number}" for inner, number in value.items()])
            elif type(value) is bool:
                value = "yes" if value else "no"
            elif type(value) is float:
                value = value if value >= _SMALL else f"{value:.6f}"  # not "7e-05": it may be a cost
            elif type(value) is not int:
                value = str(value)
                value = value if value.isprintable() and " " not in value else repr(value)
            parts.append(f"{name}={value}")
        return " ".join(parts)


def is_quiet(context: RequestContext) -> bool:
    """Whether a request is one that is polled, and has not failed."""
    return context.status < _FAILED and (context.path in _QUIET or context.path.startswith(_PAGES))


def log_request(context: RequestContext) -> None:
    """Write the access line of a request. If the gateway's own handler is the only one, no log record is created: it
    costs as much as the line.
    """
    level = logging.DEBUG if is_quiet(context) else logging.INFO
    if not access.isEnabledFor(level):
        return
    line, handlers = Line(context.log_fields()), logging.root.handlers
    if len(handlers) == 1 and type(handlers[0]) is _LoopHandler and not (access.handlers or package.handlers):
        handlers[0].write_line(level, line)
    else:
        access.log(level, "%s", line)


class _LineFormatter(logging.Formatter):
    """Formats records, and lines of fields without one."""

    def format_line(self, created_s: float, level: str, logger: str, line: Line) -> str:
        """The text of a line; the time is in Unix seconds."""
        raise NotImplementedError


class JsonFormatter(_LineFormatter):
    """One JSON object a line: `time` (UTC), `level`, `logger`, `message` with the fields of a line, or with
    `request_id`.
    """

    def format(self, record: logging.LogRecord) -> str:
        if (line := _line(record)) is not None:
            return self.format_line(record.created, record.levelname, record.name, line)
        told = _headed(record.created, record.levelname, record.name)
        told["message"] = record.getMessage()
        if (context := current()) is not None:
            told["request_id"] = context.id
        if record.exc_info:
            told["exception"] = self.formatException(record.exc_info)
        return encode(told).decode()

    def format_line(self, created_s: float, level: str, logger: str, line: Line) -> str:
        return encode(_headed(created_s, level, logger) | {"message": "request", **line.fields}).decode()


def _headed(created_s: float, level: str, logger: str) -> dict[str, Any]:
    time_ = datetime.fromtimestamp(created_s, UTC).isoformat(timespec="milliseconds")
    return {"time": time_, "level": level.lower(), "logger": logger}


class _PlainFormatter(_LineFormatter):
    _second, _shown = -1, ""  # the last one that was written out

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802  # logging's
        return self._time(record.created)

    def format(self, record: logging.LogRecord) -> str:
        if (line := _line(record)) is not None:
            return self.format_line(record.created, record.levelname, record.name, line)
        text = super().format(record)
        context = current()
        return text if context is None else f"{text} request_id={context.id}"

    def format_line(self, created_s: float, level: str, logger: str, line: Line) -> str:
        return f"{self._time(created_s)} {level} {line}"

    def _time(self, created_s: float) -> str:
        """As `logging` writes it; the lines of one second have most of it in common."""
        second = int(created_s)
        if second != self._second:
            self._second, self._shown = second, time.strftime(self.default_time_format, time.localtime(second))
        return f"{self._shown},{int((created_s - second) * 1_000):03d}"


class _LoopHandler(logging.StreamHandler[TextIO]):
    """Writes the lines of one iteration of the event loop together. A warning is written immediately, with all
    earlier lines, as are records from outside the loop.
    """

    formatter: _LineFormatter

    def __init__(self, stream: TextIO, formatter: _LineFormatter) -> None:
        super().__init__(stream)
        self._lines: list[str] = []
        self.setFormatter(formatter)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._put(self.format(record), at_once=record.levelno >= logging.WARNING)
        except Exception:
            self.handleError(record)

    def write_line(self, level: int, line: Line) -> None:
        """Write an access line, for which there is no record."""
        name = logging.getLevelName(level)
        try:
            self._put(self.formatter.format_line(time.time(), name, access.name, line), at_once=False)
        except Exception:
            self.handleError(access.makeRecord(access.name, level, "", 0, "%s", (line,), None))

    def flush(self) -> None:
        """Write what waits."""
        with self.lock or nullcontext():
            lines, self._lines = self._lines, []
            if lines:
                self.stream.write("\n".join([*lines, ""]))
            super().flush()

    def _put(self, text: str, *, at_once: bool) -> None:
        self._lines.append(text)
        loop = _get_running_loop()
        if loop is None or at_once:
            self.flush()
        elif len(self._lines) == 1:
            loop.call_soon(self.flush)


def configure(level: LogLevel, format_: LogFormat) -> None:
    """Log to standard error, from a minimum level. A later call changes level and format."""
    # No line has the source location, thread or process: see "Optimization" in Python's logging.
    logging._srcfile = None
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    plain = _PlainFormatter("%(asctime)s %(levelname)s %(message)s")
    formatter = JsonFormatter() if format_ == "json" else plain
    own = [handler for handler in logging.root.handlers if type(handler) is _LoopHandler]
    for handler in own:
        handler.setFormatter(formatter)
        logging.root.setLevel(level.upper())
    if not own:
        logging.basicConfig(level=level.upper(), handlers=[_LoopHandler(sys.stderr, formatter)])


def _line(record: logging.LogRecord) -> Line | None:
    """The fields of a record; None if it is not a line of fields."""
    line = record.args[0] if isinstance(record.args, tuple) and record.args else None
    return line if isinstance(line, Line) else None
