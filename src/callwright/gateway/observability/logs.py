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

from callwright.gateway.config.config import LogFormat, LogLevel
from callwright.gateway.request_context import RequestContext, current
from callwright.tolerant_json.codec import encode

__all__ = ["JsonFormatter", "Line", "configure", "is_quiet", "log_request"]


access = logging.getLogger("callwright.access")
# Polled by machines every few seconds: their access lines are for `debug`.
_QUIET: Final = ("/healthz", "/readyz", "/metrics", "/")
_PAGES: Final = "/ui"
_FAILED: Final = 400


class Line:
    """A line of fields: `name=value` for people, members of the object in JSON."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields

    def __str__(self) -> str:
        return " ".join([f"{name}={_plain(value)}" for name, value in self.fields.items()])


def is_quiet(context: RequestContext) -> bool:
    """Whether a request is one that is polled, and has not failed."""
    return context.status < _FAILED and (context.path in _QUIET or context.path.startswith(_PAGES))


def log_request(context: RequestContext) -> None:
    """Write the access line of a request."""
    level = logging.DEBUG if is_quiet(context) else logging.INFO
    if access.isEnabledFor(level):
        access.log(level, "%s", Line(context.told()))


class JsonFormatter(logging.Formatter):
    """One JSON object a line: `time` (UTC), `level`, `logger`, `message` with the fields of a line, or with
    `request_id`.
    """

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter`."""
        told: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        if (line := _line(record)) is not None:
            told |= {"message": "request", **line.fields}
        else:
            told["message"] = record.getMessage()
            if (context := current()) is not None:
                told["request_id"] = context.id
        if record.exc_info:
            told["exception"] = self.formatException(record.exc_info)
        return encode(told).decode()


class _PlainFormatter(logging.Formatter):
    _second, _shown = -1, ""  # the last one that was written out

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802  # logging's
        """See `logging.Formatter`; the lines of one second have that in common."""
        second = int(record.created)
        if second != self._second:
            self._second, self._shown = second, time.strftime(self.default_time_format, time.localtime(second))
        return f"{self._shown},{int(record.msecs):03d}"

    def format(self, record: logging.LogRecord) -> str:
        if (line := _line(record)) is not None:  # of each request, so without what other lines may have
            return f"{self.formatTime(record)} {record.levelname} {line}"
        text = super().format(record)
        context = current()
        return text if context is None else f"{text} request_id={context.id}"


class _LoopHandler(logging.StreamHandler[TextIO]):
    """Writes the lines of one turn of the event loop in one go. A warning goes out at once, with all that came before,
    as does what comes from elsewhere.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler`."""
        try:
            self._lines.append(self.format(record))
            loop = _get_running_loop()
            if loop is None or record.levelno >= logging.WARNING:
                self.flush()
            elif len(self._lines) == 1:
                loop.call_soon(self.flush)
        except Exception:
            self.handleError(record)

    def flush(self) -> None:
        """Write what waits."""
        with self.lock or nullcontext():
            lines, self._lines = self._lines, []
            if lines:
                self.stream.write("".join(f"{line}\n" for line in lines))
            super().flush()


def configure(level: LogLevel, format_: LogFormat) -> None:
    """Log to standard error, from a level on."""
    # No line says from where in the code, which thread or which process: see "Optimization" in Python's logging.
    logging._srcfile = None
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    handler = _LoopHandler(sys.stderr)
    plain = _PlainFormatter("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(JsonFormatter() if format_ == "json" else plain)
    logging.basicConfig(level=level.upper(), handlers=[handler])
    logging.getLogger("alembic").setLevel(logging.WARNING)


def _line(record: logging.LogRecord) -> Line | None:
    """The fields of a record, where it is a line of fields."""
    line = record.args[0] if isinstance(record.args, tuple) and record.args else None
    return line if isinstance(line, Line) else None


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ",".join([f"{name}:{number}" for name, number in value.items()])
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = str(value)
    return text if text.isprintable() and " " not in text else repr(text)
