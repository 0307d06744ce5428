"""The folder that the processes of one gateway share, for as long as one of them lives.

A process that is killed erases nothing. So each holds a lock on the folder, which the system releases, and the next
process to start erases the folders without a lock.
"""

import logging
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

log = logging.getLogger("callwright.gateway")
_PREFIX: Final = "callwright-"
_LOCK: Final = "held"


@contextmanager
def shared_folder() -> Iterator[Path]:
    """A new folder, held and then erased; those that killed processes have left are erased, too."""
    _erase_left(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as name, hold(Path(name)):
        yield Path(name)


def hold(folder: Path) -> IO[bytes]:
    """Protect the folder from erasure by others until the file is closed or the process ends."""
    import fcntl  # missing on Windows; a gateway is one process there

    file = (folder / _LOCK).open("ab")
    fcntl.flock(file, fcntl.LOCK_SH)
    return file


def _erase_left(root: Path) -> None:
    import fcntl

    for folder in root.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # another process erases it, or it is not such a folder
            found = folder.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
                continue
            with (folder / _LOCK).open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)
                log.info("erased %s, which a killed gateway had left", folder.name)
