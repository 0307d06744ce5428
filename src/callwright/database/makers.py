"""Which process makes what is not finished, so that what a dead one left can be told from what another makes.

A process of this machine is dead when it is not there any more, or when another has its number. Of one elsewhere, on
another machine or in another container, only its silence tells: it notes the time as long as it makes something.
"""

import os
import platform
import secrets
from pathlib import Path
from typing import Final

from msgspec import Struct

# Who has noted no time for so long is dead. It is noted every five seconds.
SILENT_S: Final = 20
# In /proc/…/stat, behind the name: the places of the state and of the start time, and the states of what has ended.
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
    """Whether a process has ended, that was last heard of so long ago."""
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
    """When a process was started, empty where that is not told; None if there is none."""
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
