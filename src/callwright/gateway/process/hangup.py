"""SIGHUP while a process starts: it stays pending until it can be handled. By default it would end the process."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def hold_hangup() -> Callable[[], None]:
    """Hold SIGHUP back, in this thread and in the processes that it starts. Returns what undoes this."""
    if sys.platform == "win32":
        return release_hangup
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGHUP,))
    return _keep if signal.SIGHUP in before else release_hangup


def release_hangup() -> None:
    """Let SIGHUP arrive from now on, also one that was held back."""
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGHUP,))


@contextmanager
def without_hangup() -> Iterator[None]:
    """Hold SIGHUP back until this is left."""
    release = hold_hangup()
    try:
        yield
    finally:
        release()


def _keep() -> None:
    """Leave SIGHUP to whoever held it back before."""
