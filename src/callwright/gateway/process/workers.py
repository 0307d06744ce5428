"""Several processes that serve one port: `workers` in `[server]`.

The parent listens, starts the workers, restarts those that die, and passes a signal to end on to them; it answers no
requests. Workers share the port, the store, the metrics and the limits of keys. Each has its share of `max_requests`
and `max_connections`; all else (connections, results of probes, caches) each has for itself.
"""

import logging
import multiprocessing
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from prometheus_client.multiprocess import mark_process_dead

from callwright.errors import ConfigError
from callwright.gateway.access.clients import Clients
from callwright.gateway.access.keys import counters_size
from callwright.gateway.access.shared_counters import SharedCounters
from callwright.gateway.config.config import Config
from callwright.gateway.observability.metrics import MULTIPROCESS
from callwright.gateway.process.shared_folder import hold, shared_folder
from callwright.multiprocess import when_parent_ends

log = logging.getLogger("callwright.gateway")
_SPAWN: Final = multiprocessing.get_context("spawn")
# A worker that dies is restarted, but at most this often.
_PAUSE_S: Final = 1.0
_SIGNALS: Final = 1  # bytes to read, one a signal
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
        if model.file is not None:
            raise ConfigError(
                f"workers: {model.file.name} would be loaded {count} times. Leave out workers: one process runs a "
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
    config: Config, listeners: Sequence[socket.socket], ready: Callable[[], None] = lambda: None
) -> None:
    """Serve with one process for each listener until signalled to stop; `ready` is called once all of them serve.
    Raises `SystemExit` if one cannot start.
    """
    with shared_folder() as folder:
        _counters(config, folder)
        if config.server.metrics and MULTIPROCESS not in os.environ:
            (folder / _METRICS).mkdir()
            os.environ[MULTIPROCESS] = str(folder / _METRICS)
        _Parent(config, listeners, folder, ready).run()


def _counters(config: Config, folder: Path) -> SharedCounters:
    """The counters that the workers share: the rate limits of keys, then the places taken."""
    size = counters_size(config.keys) + Clients.size(config.keys, config.server.workers)
    return SharedCounters.shared(folder / _LIMITS_FILE, size)


class _Worker(Struct):
    process: SpawnProcess
    heard: Connection  # gets a byte when it serves
    started_s: float
    is_first: bool
    is_ready: bool = False


class _Parent:
    """Starts and watches the workers; see the module's docstring."""

    def __init__(
        self, config: Config, listeners: Sequence[socket.socket], folder: Path, ready: Callable[[], None]
    ) -> None:
        self._config = config
        self._listeners = listeners
        self._folder = folder
        self._ready = ready
        self._workers: dict[int, _Worker] = {}
        self._has_served = False
        self._is_told = False
        self._has_failed = False

    def run(self) -> None:
        """Run until every worker has ended after a signal. Raises `SystemExit` if one cannot start."""
        with _signals() as told:
            for number in range(len(self._listeners)):
                self._start(number, is_first=True)
            while self._workers:
                waiting = [worker.heard for worker in self._workers.values() if not worker.is_ready]
                wait([told, *waiting, *(worker.process.sentinel for worker in self._workers.values())])
                with suppress(BlockingIOError):
                    if told.recv(_SIGNALS):
                        self._tell()
                for number, worker in [*self._workers.items()]:
                    self._listen(worker)
                    if worker.process.exitcode is not None:
                        self._on_exit(number, worker)
        if self._has_failed:
            raise SystemExit(1)

    def _listen(self, worker: _Worker) -> None:
        """Note that a worker serves; one that has died sends nothing."""
        if worker.is_ready or not worker.heard.poll():
            return
        try:
            worker.is_ready = bool(worker.heard.recv_bytes())
        except EOFError:
            worker.process.join()
            return
        if not self._has_served and all(each.is_ready for each in self._workers.values()):
            self._has_served = True
            self._ready()

    def _on_exit(self, number: int, worker: _Worker) -> None:
        del self._workers[number]
        worker.heard.close()
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
        heard, said = _SPAWN.Pipe(duplex=False)
        given = (share_of(self._config, number), number, self._listeners[number], self._folder, said)
        process = _SPAWN.Process(target=_work, args=given, name=f"callwright-{number + 1}", daemon=True)
        process.start()
        said.close()
        self._workers[number] = _Worker(process, heard, time.monotonic(), is_first)

    def _tell(self) -> None:
        """The first time the workers drain, the second time they end."""
        self._is_told = True
        for listener in self._listeners:  # so that the queue of a worker closes when it ends
            listener.close()
        for worker in self._workers.values():
            worker.process.terminate()


@contextmanager
def _signals() -> Iterator[socket.socket]:
    """A socket that gets a byte when this process is signalled to stop."""
    told, tell = socket.socketpair()
    told.setblocking(False)

    def handler(*_: object) -> None:
        tell.send(b"!")

    with told, tell:
        before = {sign: signal.signal(sign, handler) for sign in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield told
        finally:
            for sign, earlier in before.items():
                signal.signal(sign, earlier)


def _how(code: int | None) -> str:
    assert code is not None
    return signal.Signals(-code).name if code < 0 else f"status {code}"


# --- in a worker ---


def _work(config: Config, number: int, listener: socket.socket, folder: Path, said: Connection) -> None:
    held = hold(folder)  # until the process ends, which may be after its parent
    os.setpgrp()  # Ctrl-C in a terminal goes to the parent alone, which passes it on
    when_parent_ends(lambda: os.kill(os.getpid(), signal.SIGTERM))
    from callwright.gateway.app import create_app
    from callwright.gateway.observability.logs import configure
    from callwright.gateway.process.serving import serve

    configure(config.server.log_level, config.server.log_format)
    app = create_app(config, counters=_counters(config, folder), worker=number, folder=folder)
    with held:
        serve(app, config, listener, lambda: said.send_bytes(b"!"))
