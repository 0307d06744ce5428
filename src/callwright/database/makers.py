"""Processes that own unfinished work, so that work left by a dead one can be distinguished from work in progress.

A process of this machine is dead if it no longer exists, or if another has its number. One on another machine or in
another container is dead if it is silent: it notes the time while it has work.
"""

import os
import platform
import secrets
from pathlib import Path
from typing import Final

from msgspec import Struct

# A process that has noted no time for this long is dead. It is noted every five seconds.
SILENT_S: Final = 20
# In /proc/…/stat, after the name: the places of the state and of the start time, and the states of ended processes.
_STATE: Final = 0
_STARTED: Final = 19
_ENDED: Final = ("Z", "X")


class Maker(Struct, frozen=True):
    """A process: where process numbers mean the same, its number there, and when it was started, as far as it can be
    known.
    """

    id: str
    place: str
    pid: int
    started: str


def this_process() -> Maker:
    """The process that runs, with an id of its own."""
    return Maker(f"maker_{secrets.token_hex(16)}", _place(), os.getpid(), _started(os.getpid()) or "")


def is_dead(maker: Maker, silent_s: float) -> bool:
    """Whether a process has ended, given the seconds since its last sign of life."""
    if maker.place != _place():
        return silent_s > SILENT_S
    started = _started(maker.pid)
    return started is None or started != maker.started


def _place() -> str:
    """The machine since its start, and the space of process numbers in it."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return platform.node()


def _started(pid: int) -> str | None:
    """When a process was started, empty if unknown; None if there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        fields = stat.rpartition(")")[2].split()
        return None if fields[_STATE] in _ENDED else fields[_STARTED]
    except (OSError, IndexError):
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except OSError:  # it is another user's
        return ""
    return ""
