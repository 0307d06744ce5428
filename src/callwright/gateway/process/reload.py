"""Another configuration for a gateway that runs: its file is read again on SIGHUP, and with `watch` when it changes.

A file that is wrong changes nothing: the error is logged, and shown on the pages until a right one is read.

SIGHUP also arrives when the terminal of the process is closed. Then the process ends, as on SIGTERM, unless it was
started to ignore that (`nohup`).
"""

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, TypeAlias

from callwright.errors import ConfigError
from callwright.gateway.config.changes import differences, new_warning
from callwright.gateway.config.config import Config, name_file
from callwright.gateway.observability.logs import configure as configure_logs
from callwright.gateway.process.descriptors import allow_requests
from callwright.gateway.process.own_address import refuse_own_address
from callwright.gateway.running import RunningGateway

log = logging.getLogger("callwright.gateway")
# How often the file is looked at. It is read when it was the same twice: it may be written in several steps.
LOOK_S: Final = 0.5
# A message to a worker: its configuration with the names of `KeyCounters`, or the error of the file.
Message: TypeAlias = tuple[Config, tuple[str, ...]] | str


class ConfigFile:
    """The file at `path`, as `load` reads it, which raises `ConfigError`. `is_asked`: SIGHUP arrived before anything
    could handle it. To be made before SIGHUP is handled.
    """

    is_asked = False

    def __init__(self, path: Path, load: Callable[[], Config]) -> None:
        self._path = path
        self._load = load
        self._read = self._seen = self._stamp()
        self._ends_with_terminal = has_terminal() and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN

    def read(self) -> Config:
        """The configuration. Raises `ConfigError`."""
        self._read = self._stamp()
        return self._load()

    def has_changed(self) -> bool:
        """Whether the file is another one than was read, and the same as at the last look."""
        seen, self._seen = self._seen, self._stamp()
        return self._seen is not None and seen == self._seen != self._read

    def lost_terminal(self) -> bool:
        """Whether SIGHUP means that the terminal is closed, not that the file is to be read."""
        return self._ends_with_terminal and not has_terminal()

    def name_errors(self) -> AbstractContextManager[None]:
        """Begin errors of its configuration with its path."""
        return name_file(self._path)

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:  # it is being replaced
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


def has_terminal() -> bool:
    """Whether this process has a controlling terminal. When that is closed, the system takes it from the process."""
    if sys.platform == "win32":
        return False
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


def note_hangup(file: ConfigFile | None) -> None:
    """Have SIGHUP note that the file is to be read, or do nothing. Without this it would end a process that starts."""

    def note(*_: object) -> None:
        if file is not None:
            file.is_asked = True

    if sys.platform != "win32":
        signal.signal(signal.SIGHUP, note)


def log_differences(before: Config, after: Config) -> None:
    """Log what changes, and what would need a restart."""
    found = differences(before, after)
    for one in found:
        log.log(logging.WARNING if one.needs_restart else logging.INFO, "configuration: %s", one)
    if not found:
        log.info("configuration: nothing changed")
    if (warning := new_warning(before, after)) is not None:
        log.warning("configuration: %s", warning)


def log_error(error: object) -> None:
    """Log why a configuration is not taken."""
    log.error("the configuration stays as it was: %s", error)


async def follow_file(file: ConfigFile, running: RunningGateway) -> None:
    """Apply the file on SIGHUP and when it changes, until cancelled, or until the terminal is closed."""
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    if sys.platform != "win32":
        loop.add_signal_handler(signal.SIGHUP, asked.set)
    if file.is_asked:
        asked.set()
    watches = running.revision.config.server.watch
    while True:
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_S if watches else None):
                await asked.wait()
        if asked.is_set() and file.lost_terminal():
            log.info("the terminal is closed")
            signal.raise_signal(signal.SIGTERM)  # once: a shell signals its jobs, and so does the system
            return
        if asked.is_set() or file.has_changed():
            asked.clear()
            await _apply_file(file, running)


async def _apply_file(file: ConfigFile, running: RunningGateway) -> None:
    try:
        config = await asyncio.to_thread(file.read)
        before = running.revision.config
        with file.name_errors():
            await refuse_own_address(before, config)
            await _change(running, config)
    except ConfigError as error:
        log_error(error)
        running.lasting.config_error = str(error)
    except Exception as error:
        log.exception("the configuration stays as it was")
        running.lasting.config_error = f"An error in the gateway, see its log: {type(error).__name__}"
    else:
        log_differences(before, config)


async def follow_parent(parent: Connection, running: RunningGateway) -> None:
    """Apply the messages from the parent of this worker, until cancelled."""
    loop, coming = asyncio.get_running_loop(), asyncio.Queue[Message]()

    def receive() -> None:
        with suppress(EOFError, OSError, RuntimeError):  # the parent has ended, or this loop has
            while True:
                loop.call_soon_threadsafe(coming.put_nowait, parent.recv())

    threading.Thread(target=receive, name="configuration", daemon=True).start()
    while True:
        message = await coming.get()
        if isinstance(message, str):
            running.lasting.config_error = message
            continue
        config, names = message
        running.lasting.counters.add(names)
        try:
            await _change(running, config)
        except Exception as error:  # the parent has checked it
            log.exception("the configuration of a worker stays as it was")
            running.lasting.config_error = f"In one of the workers: {error}"


async def _change(running: RunningGateway, config: Config) -> None:
    await running.change(config)
    lasting, server = running.lasting, running.revision.config.server
    lasting.config_error = None
    lasting.connections.most = allow_requests(server.max_requests, lasting.connections.most)
    configure_logs(server.log_level, server.log_format)
