"""Runs the parts of a job: in processes of this machine, a Ray cluster, or Daft. All do the same to each part.

Ray and Daft are extras. Workers on other machines need the files under the same paths.
"""

import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from importlib.util import find_spec
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec

from callwright.bulk.files import Part
from callwright.bulk.job import Done, Job
from callwright.errors import ConfigError
from callwright.multiprocess import when_parent_ends
from callwright.settings.extras import missing_package

Engine: TypeAlias = Literal["local", "ray", "daft"]
ENGINES: Final[tuple[Engine, ...]] = get_args(Engine)
# Smaller inputs are done before a second process could start.
_ALONE_BYTES: Final = 2_000_000


def check_engine(engine: Engine, workers: int | None) -> None:
    """Raise `ConfigError` if the engine is not installed, or would ignore the number of workers."""
    if engine == "daft" and workers is not None:
        raise ConfigError(
            "--workers is for the engines local and ray: Daft says itself how many run at once. Leave it out."
        )
    if engine == "ray" and workers is not None and "RAY_ADDRESS" in os.environ:
        raise ConfigError(
            "--workers is for a Ray that is started here: the cluster at RAY_ADDRESS says itself how many run at once. "
            "Leave it out."
        )
    if engine != "local" and find_spec(engine) is None:
        raise missing_package(engine, f"The engine {engine}")


def run(job: Job, parts: Sequence[Part], engine: Engine, workers: int | None = None) -> Iterator[Done]:
    """Run the parts and yield the result of each when it is done. `workers`: None: one for each CPU, or a single one
    if all parts together are small. Raises `ConfigError` for an engine that is not installed, or whose workers died.
    """
    alone = sum(part.size for part in parts) < _ALONE_BYTES
    return _RUNS[engine](job, parts, workers or (1 if alone else os.cpu_count()) or 1)


def _local(job: Job, parts: Sequence[Part], workers: int) -> Iterator[Done]:
    if workers == 1 or len(parts) == 1:
        yield from map(job.do, parts)
        return
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(parts)), mp_context=spawn, initializer=_end_with_parent) as pool:
        try:
            for future in as_completed([pool.submit(job.do, part) for part in parts]):
                yield future.result()
        except BrokenProcessPool as error:
            raise ConfigError("A worker process died. Run the same command to continue.") from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _end_with_parent() -> None:
    when_parent_ends(lambda: os._exit(1))


def _ray(job: Job, parts: Sequence[Part], workers: int) -> Iterator[Done]:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    if not ray.is_initialized():
        here: dict[str, Any] = {} if "RAY_ADDRESS" in os.environ else {"num_cpus": workers, "include_dashboard": False}
        try:
            ray.init(log_to_driver=False, **here)
        except Exception as error:  # it has no type of its own for this
            raise ConfigError(f"Ray did not start: {error}") from error

    @ray.remote  # type: ignore[untyped-decorator]
    def do(part: Part) -> Done:
        return job.do(part)

    waiting = [do.remote(part) for part in parts]
    while waiting:
        done, waiting = ray.wait(waiting)
        yield from ray.get(done)


def _daft(job: Job, parts: Sequence[Part], workers: int) -> Iterator[Done]:
    os.environ.setdefault("DAFT_ANALYTICS_ENABLED", "0")
    import daft

    @daft.func(return_dtype=daft.DataType.binary(), use_process=True)  # type: ignore[untyped-decorator]
    def do(part: bytes) -> bytes:
        return msgspec.json.encode(job.do(msgspec.json.decode(part, type=Part)))

    frame = daft.from_pydict({"part": list(map(msgspec.json.encode, parts))}).into_batches(1)
    for row in frame.select(do(daft.col("part")).alias("done")).iter_rows():
        yield msgspec.json.decode(row["done"], type=Done)


_RUNS: Final[Mapping[Engine, Callable[[Job, Sequence[Part], int], Iterator[Done]]]] = {
    "local": _local,
    "ray": _ray,
    "daft": _daft,
}
