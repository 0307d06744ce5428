"""A command as a process of its own: its three streams, which may be closed, and the signals that stop it."""

import errno
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader, FileIO, TextIOWrapper
from types import FrameType
from typing import IO, Any, Final

from callwright.errors import CallwrightError, ConfigError, reason_of

__all__ = ["fault_of", "name_of", "open_streams", "reading", "stopped_by_signals"]

# Of the machine, wherever a command writes: a full disk, a full quota, a file that may not grow.
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# What a stream answers, which has no name: closed, broken.
_NO_STREAM: Final = (errno.EBADF, errno.EIO)
_SIGNALS: Final = ("SIGTERM", "SIGHUP")


def open_streams() -> None:
    """Put a stream in the place of each that was closed (`<&-`), where Python has None. Who reads or writes it is
    refused as the system would; what is told on standard error goes nowhere. So nothing else gets its number, either.
    """
    for name, flags, mode in (("stdin", os.O_WRONLY, "r"), ("stdout", os.O_RDONLY, "w"), ("stderr", os.O_WRONLY, "w")):
        if getattr(sys, name) is None:
            raw = FileIO(os.open(os.devnull, flags), mode, closefd=False)
            stream: Any = raw if mode == "w" else BufferedReader(raw)  # nothing is left to be written at the end
            setattr(sys, name, TextIOWrapper(stream, encoding="utf-8", write_through=True))


@contextmanager
def reading(file: IO[Any]) -> Iterator[None]:
    """A file, or standard input, is read meanwhile. Raises `ConfigError` with its name where it cannot be."""
    try:
        yield
    except OSError as error:
        raise ConfigError(f"Cannot read {name_of(file)}: {reason_of(error)}.") from error


def name_of(file: IO[Any], *, begins: bool = False) -> str:
    """What messages call a file, some of which begin with it."""
    if file in (sys.stdin, sys.stdin.buffer):
        return "Standard input" if begins else "standard input"
    return str(file.name)


def fault_of(error: OSError) -> CallwrightError | None:
    """What the system refused, as an error of ours; None for what no command lets happen. What has no name is the
    output: whoever reads names what it reads.
    """
    if error.errno in _NO_ROOM or (error.errno in _NO_STREAM and error.filename is None):
        return CallwrightError(f"Cannot write {error.filename or 'the output'}: {reason_of(error)}.")
    if error.filename is not None:
        return CallwrightError(f"Cannot read or write {error.filename}: {reason_of(error)}.")
    return None


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end a command as an error does: what it has begun is left in order. The second one ends it at
    once. Where somebody has said what becomes of them, that holds.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signs = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
    signs = [sign for sign in signs if signal.getsignal(sign) is signal.SIG_DFL]
    for sign in signs:
        signal.signal(sign, _stop)
    try:
        yield
    finally:
        for sign in signs:
            if signal.getsignal(sign) is _stop:
                signal.signal(sign, signal.SIG_DFL)


def _stop(sign: int, _: FrameType | None) -> None:
    signal.signal(sign, signal.SIG_DFL)
    raise SystemExit(128 + sign)
