"""Measures models of a configuration on a Ray cluster: one task per server, with the load of one machine.

Results are returned one by one, so finished ones are stored even if a worker or this process ends. Workers need
Callwright, and the keys and files that the configuration names, under the same paths.
"""

import asyncio
import os
import queue
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from callwright.cli.eval.target import Asked, fallbacks_of, models_target
from callwright.errors import ConfigError, UpstreamError
from callwright.eval.case import Case
from callwright.eval.results import Result
from callwright.eval.run import run
from callwright.gateway.config.config import ModelConfig
from callwright.settings.extras import missing_package
from callwright.turn.records import Record


class Part(Struct, frozen=True):
    """The work of one task: some ways of one server, and the ids of the missing cases of each. `others` are their
    fallbacks.
    """

    entries: tuple[ModelConfig, ...]
    others: tuple[ModelConfig, ...]
    missing: Mapping[str, tuple[str, ...]]
    cases: tuple[Case, ...]
    fields: dict[str, Any]
    at_once: int
    timeout_s: float


class _Sent(Struct, frozen=True):
    """A message from a task: a result with its turns, or why the task ended early."""

    result: Result | None = None
    records: tuple[Record, ...] = ()
    error: str = ""


def parts_of(
    entries: Iterable[ModelConfig],
    missed: Sequence[tuple[str, Case]],
    fields: dict[str, Any],
    *,
    at_once: int,
    timeout_s: float,
    others: Sequence[ModelConfig] = (),
) -> list[Part]:
    """One part per server, so that the limit on concurrent requests applies to each server. `others`: the entries of
    fallbacks.
    """
    entries = tuple(entries)
    by_server: dict[str, list[ModelConfig]] = {}
    for entry in entries:
        by_server.setdefault(str(entry.upstream), []).append(entry)
    found: list[Part] = []
    for ones in by_server.values():
        names = {entry.name for entry in ones}
        here = [(way, case) for way, case in missed if way in names]
        if here:
            ids = {name: tuple(case.id for way, case in here if way == name) for name in names}
            cases = tuple({case.id: case for _, case in here}.values())
            found.append(
                Part(tuple(ones), fallbacks_of(ones, (*entries, *others)), ids, cases, fields, at_once, timeout_s)
            )
    return found


def measured(parts: Sequence[Part]) -> Iterator[tuple[Result, tuple[Record, ...]]]:
    """Results as they arrive, each with its turns. If a server fails repeatedly only its own part ends; the others are
    finished before `UpstreamError` is raised. Raises `ConfigError` if Ray does not start, or if a worker died.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise missing_package("ray", "The engine ray") from error
    if not ray.is_initialized():
        # A task mostly waits for its server: one CPU for each part, whatever the machine has.
        own: dict[str, Any] = (
            {} if "RAY_ADDRESS" in os.environ else {"num_cpus": len(parts), "include_dashboard": False}
        )
        try:
            ray.init(log_to_driver=False, **own)
        except Exception as error:  # Ray has no exception type for this
            raise ConfigError(f"Ray did not start: {error}") from error

    @ray.remote(num_returns="streaming")  # type: ignore[untyped-decorator]
    def work(part: bytes) -> Iterator[bytes]:
        for sent in run_part(msgspec.json.decode(part, type=Part)):  # Ray sends into it, so no `yield from`
            yield msgspec.json.encode(sent)

    errors: list[str] = []
    waiting = [work.remote(msgspec.json.encode(part)) for part in parts]
    try:
        while waiting:
            ready, _ = ray.wait(waiting, num_returns=1, fetch_local=False)
            try:
                sent = msgspec.json.decode(ray.get(next(ready[0])), type=_Sent)
            except StopIteration:
                waiting.remove(ready[0])
                continue
            except ray.exceptions.RayError as error:
                raise ConfigError(f"A worker died: {_line(error)}. Run the same command to continue.") from error
            if sent.result is None:
                errors.append(sent.error)
            else:
                yield sent.result, sent.records
    finally:
        for task in waiting:
            ray.cancel(task)
    if errors:
        raise UpstreamError(" ".join(errors), fault="unreachable", upstream="ray")


def run_part(part: Part) -> Iterator[_Sent]:
    """Do a part, in its own thread."""
    sent: queue.Queue[_Sent | None] = queue.Queue()

    def work() -> None:
        try:
            asyncio.run(_work(part, sent))
        except (ConfigError, UpstreamError) as error:
            sent.put(_Sent(error=str(error)))
        finally:
            sent.put(None)

    threading.Thread(target=work, name="callwright eval", daemon=True).start()
    while (one := sent.get()) is not None:
        yield one


async def _work(part: Part, sent: "queue.Queue[_Sent | None]") -> None:
    target = models_target("", part.entries, Asked(fields=part.fields), part.others)
    try:
        await target.open()
        wanted = {name: set(ids) for name, ids in part.missing.items()}
        keeping = _Sending(part, wanted, sent)
        await run(part.cases, target.askers, keeping, at_once=part.at_once, timeout_s=part.timeout_s)
    finally:
        await target.close()


class _Sending:
    """A `Results` that sends them; cases that are not missing count as done."""

    def __init__(self, part: Part, wanted: Mapping[str, set[str]], sent: "queue.Queue[_Sent | None]") -> None:
        self._sent = sent
        self.done: dict[tuple[str, str, str], Result] = {}
        for entry in part.entries:
            for case in part.cases:
                if case.id not in wanted[entry.name]:
                    result = Result(entry.name, case.id, case.digest, case.group)
                    self.done[result.key] = result

    def add(self, result: Result, records: Iterable[Record] = ()) -> None:
        self._sent.put(_Sent(result, tuple(records)))


def _line(error: Exception) -> str:
    return str(error).strip().rpartition("\n")[2].rstrip(".")
