"""Several processes that serve one port: `workers` in `[server]`.

The parent listens, starts the workers, restarts those that die, and passes a signal to end and changes of the
configuration on to them; it answers no requests. Workers share the port, the store, the metrics and the limits of keys.
Each has its share of `max_requests` and `max_connections`; all else (connections, results of probes, caches) each has
for itself.
"""

import asyncio
import logging
import multiprocessing
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from prometheus_client.multiprocess import mark_process_dead

from callwright.errors import ConfigError
from callwright.gateway.access.key_counters import KeyCounters
from callwright.gateway.check import check_config, explain_restart
from callwright.gateway.config.changes import applicable
from callwright.gateway.config.config import Config, file_of
from callwright.gateway.observability.metrics import MULTIPROCESS
from callwright.gateway.process.hangup import release_hangup, without_hangup
from callwright.gateway.process.own_address import refuse_own_address
from callwright.gateway.process.reload import (
    LOOK_S,
    ConfigFile,
    Message,
    follow_parent,
    log_differences,
    log_error,
    note_hangup,
)
from callwright.gateway.process.shared_folder import hold, shared_folder
from callwright.multiprocess import when_parent_ends

log = logging.getLogger("callwright.gateway")
_SPAWN: Final = multiprocessing.get_context("spawn")
# A worker that dies is restarted, but at most this often.
_PAUSE_S: Final = 1.0
_SIGNALS: Final = 1  # bytes to read, one a signal
_ENDS: Final = (bytes((signal.SIGTERM,)), bytes((signal.SIGINT,)))
_RELOAD: Final = bytes((getattr(signal, "SIGHUP", 0),))  # not on Windows
_LIMITS_FILE: Final = "limits"
_METRICS: Final = "metrics"


def check_workers(config: Config) -> None:
    """Raises `ConfigError` for a configuration that several processes cannot serve."""
    count = config.server.workers
    if count == 1:
        return
    if sys.platform == "win32":
        raise ConfigError(
            "workers: on Windows a gateway is one process. Leave it out, or start several and put a proxy in front."
        )
    if config.store is None or config.store.url in ("sqlite://", "sqlite:///:memory:"):
        raise ConfigError(
            f"workers: {count} processes cannot share a store in memory. Name a file (sqlite:///responses.db), "
            "postgresql://…, or none."
        )
    for model in config.models:
        if (file := file_of(model)) is not None:
            raise ConfigError(
                f"workers: {file.name} would be loaded {count} times. Leave out workers: one process runs a "
                "model's file, and answers as fast as that."
            )
        if model.max_requests is not None and model.max_requests < count:
            raise ConfigError(
                f"Model {model.name!r}: max_requests = {model.max_requests} cannot be shared by {count} workers. Give "
                "at least one to each, or have fewer workers."
            )


def share_of(config: Config, number: int) -> Config:
    """The configuration of one worker: limits on requests and connections are divided. The shares of a model's limit
    add up exactly.
    """
    count = config.server.workers
    most = -(-config.server.max_requests // count)
    connections = -(-config.limits.max_connections // count)
    bodies = -(-config.limits.max_bodies_bytes // count)
    models = tuple(
        msgspec.structs.replace(model, max_requests=_share(model.max_requests, number, count))
        for model in config.models
    )
    return msgspec.structs.replace(
        config,
        server=msgspec.structs.replace(config.server, max_requests=most),
        limits=msgspec.structs.replace(config.limits, max_connections=connections, max_bodies_bytes=bodies),
        models=models,
    )


def _share(most: int | None, number: int, count: int) -> int | None:
    return None if most is None else most // count + (number < most % count)


def serve_by_workers(
    config: Config,
    listeners: Sequence[socket.socket],
    ready: Callable[[], None] = lambda: None,
    file: ConfigFile | None = None,
) -> None:
    """Serve with one process for each listener until signalled to stop; `ready` is called once all of them serve.
    Changes of the `file` are applied. Raises `SystemExit` if one cannot start.
    """
    with shared_folder() as folder:
        if config.server.metrics and MULTIPROCESS not in os.environ:
            (folder / _METRICS).mkdir()
            os.environ[MULTIPROCESS] = str(folder / _METRICS)
        _Parent(config, listeners, folder, ready, file).run()


def _counters(names: Sequence[str], workers: int, folder: Path) -> KeyCounters:
    """The counters that the workers share."""
    return KeyCounters(names, workers, folder / _LIMITS_FILE)


class _Worker(Struct):
    process: SpawnProcess
    pipe: Connection  # gets a byte when it serves; it is told changes of the configuration
    started_s: float
    is_first: bool
    is_ready: bool = False


class _Parent:
    """Starts and watches the workers; see the module's docstring."""

    def __init__(
        self,
        config: Config,
        listeners: Sequence[socket.socket],
        folder: Path,
        ready: Callable[[], None],
        file: ConfigFile | None,
    ) -> None:
        self._config = config
        self._counters = _counters([key.name for key in config.keys], config.server.workers, folder)
        self._file = file
        self._error: str | None = None
        self._listeners = listeners
        self._folder = folder
        self._ready = ready
        self._workers: dict[int, _Worker] = {}
        self._has_served = False
        self._is_told = False
        self._has_failed = False

    def run(self) -> None:
        """Run until every worker has ended after a signal. Raises `SystemExit` if one cannot start."""
        pause_s = LOOK_S if self._file is not None and self._config.server.watch else None
        with _signals(self._file) as told:
            for number in range(len(self._listeners)):
                self._start(number, is_first=True)
            while self._workers:
                waiting = [worker.pipe for worker in self._workers.values() if not worker.is_ready]
                wait([told, *waiting, *(worker.process.sentinel for worker in self._workers.values())], pause_s)
                sign = None
                with suppress(BlockingIOError):
                    sign = told.recv(_SIGNALS)
                if sign in _ENDS:
                    self._tell()
                elif self._file is not None and not self._is_told:
                    self._follow(self._file, is_asked=sign == _RELOAD)
                for number, worker in [*self._workers.items()]:
                    self._listen(worker)
                    if worker.process.exitcode is not None:
                        self._on_exit(number, worker)
        if self._has_failed:
            raise SystemExit(1)

    def _listen(self, worker: _Worker) -> None:
        """Note that a worker serves; one that has died sends nothing."""
        if worker.is_ready or not worker.pipe.poll():
            return
        try:
            worker.is_ready = bool(worker.pipe.recv_bytes())
        except EOFError:
            worker.process.join()
            return
        if not self._has_served and all(each.is_ready for each in self._workers.values()):
            self._has_served = True
            self._ready()

    def _on_exit(self, number: int, worker: _Worker) -> None:
        del self._workers[number]
        worker.pipe.close()
        if MULTIPROCESS in os.environ:
            mark_process_dead(worker.process.pid)  # type: ignore[no-untyped-call]
        if self._is_told:
            return
        if worker.is_first and not worker.is_ready:
            log.error("a worker could not start: see what it said before")
            self._has_failed = True
            self._tell()
            return
        log.error("worker %d ended (%s): it is started again", number + 1, _how(worker.process.exitcode))
        time.sleep(max(0.0, worker.started_s + _PAUSE_S - time.monotonic()))
        self._start(number, is_first=False)

    def _start(self, number: int, *, is_first: bool) -> None:
        pipe, parent = _SPAWN.Pipe()
        config, names = share_of(self._config, number), self._counters.names
        given = (config, names, number, self._listeners[number], self._folder, parent)
        process = _SPAWN.Process(target=_work, args=given, name=f"callwright-{number + 1}", daemon=True)
        with without_hangup():  # until the worker handles it
            process.start()
        parent.close()
        self._workers[number] = _Worker(process, pipe, time.monotonic(), is_first)
        if self._error is not None:
            self._send(number, self._error)

    def _follow(self, file: ConfigFile, *, is_asked: bool) -> None:
        """Apply the file if that is asked for or it has changed. If SIGHUP was that of the terminal, end: once, because
        both the shell and the system send it.
        """
        if is_asked and file.lost_terminal():
            log.info("the terminal is closed")
            self._tell()
        elif is_asked or file.has_changed():
            self._reload(file)

    def _reload(self, file: ConfigFile) -> None:
        """Have the workers serve the configuration of the file."""
        try:
            wanted = file.read()
            config = applicable(self._config, wanted)
            with file.name_errors(), explain_restart(self._config, wanted):
                check_workers(config)
                check_config(config)
                asyncio.run(refuse_own_address(self._config, config))
        except ConfigError as error:
            log_error(error)
            self._error = str(error)
            for number in self._workers:
                self._send(number, self._error)
            return
        log_differences(self._config, wanted)
        self._config, self._error = config, None
        self._counters.add(key.name for key in config.keys)
        for number in self._workers:
            self._send(number, (share_of(config, number), self._counters.names))

    def _send(self, number: int, message: Message) -> None:
        with suppress(OSError):  # one that has died is started again with the present configuration
            self._workers[number].pipe.send(message)

    def _tell(self) -> None:
        """The first time the workers drain, the second time they end."""
        self._is_told = True
        for listener in self._listeners:  # so that the queue of a worker closes when it ends
            listener.close()
        for worker in self._workers.values():
            worker.process.terminate()


@contextmanager
def _signals(file: ConfigFile | None) -> Iterator[socket.socket]:
    """A socket that gets the number of each signal to stop or to read the configuration, as a byte.

    The byte is sent as the signal arrives. A handler in Python would run at the next step of this thread, and so not
    at all if the signal arrives just before the thread begins to wait.
    """
    told, tell = socket.socketpair()
    told.setblocking(False)
    tell.setblocking(False)
    with told, tell:
        signals = [signal.SIGTERM, signal.SIGINT, *([] if file is None else [signal.SIGHUP])]
        wakes = signal.set_wakeup_fd(tell.fileno(), warn_on_full_buffer=False)
        before = {sign: signal.signal(sign, lambda *_: None) for sign in signals}
        if file is not None and file.is_asked:
            tell.send(_RELOAD)
        try:
            yield told
        finally:
            for sign, earlier in before.items():
                signal.signal(sign, earlier)
            signal.set_wakeup_fd(wakes)


def _how(code: int | None) -> str:
    assert code is not None
    return signal.Signals(-code).name if code < 0 else f"status {code}"


# --- in a worker ---


def _work(
    config: Config, names: Sequence[str], number: int, listener: socket.socket, folder: Path, parent: Connection
) -> None:
    held = hold(folder)  # until the process ends, which may be after its parent
    note_hangup(None)  # the parent is asked
    release_hangup()
    os.setpgrp()  # Ctrl-C in a terminal goes to the parent alone, which passes it on
    when_parent_ends(lambda: os.kill(os.getpid(), signal.SIGTERM))
    from callwright.gateway.app import create_app
    from callwright.gateway.observability.logs import configure
    from callwright.gateway.process.serving import serve

    configure(config.server.log_level, config.server.log_format)
    counters = _counters(names, config.server.workers, folder)
    app = create_app(config, counters=counters, worker=number, folder=folder)
    with held:
        serve(app, config, listener, lambda: parent.send_bytes(b"!"), partial(follow_parent, parent))
