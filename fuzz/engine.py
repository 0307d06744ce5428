"""Runs one target in this process: `python -m fuzz.engine TARGET SECONDS FOLDER guided|blind`.

Guided by coverage, with atheris, or blind: random bytes, three to six times as many of them. What fails is kept in
FOLDER once per place, as the bytes that make it, and the run goes on; an input that takes more than `LIMIT_S` is such
a failure. FOLDER/summary.json tells how it stands, also when the process dies. Times are the processor's.
"""

import contextlib
import gc
import json
import os
import random
import resource
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct, to_builtins

from fuzz import targets
from tests.support.choices import Choices

__all__ = ["LIMIT_S", "MAX_BYTES", "Findings", "Summary", "main"]

LIMIT_S = 10.0
MAX_BYTES = 400
# How often the summary is written.
_EVERY_S = 1.0
_PASSES = 3
_SIZES = (10, 20, 40, 60, 150, 300, MAX_BYTES)
_REPLAYED = 200


class TookTooLongError(Exception):
    """An input did not come to its end in time."""


class Summary(Struct):
    """How a run stands. `blocks` of memory are left behind by one more run of the same inputs."""

    target: str
    guided: bool = False
    executions: int = 0
    seconds: float = 0.0
    slowest_s: float = 0.0
    memory_mb: float = 0.0
    blocks: int | None = None
    findings: int = 0


class Findings:
    """Runs inputs and keeps those that fail: one for each place in the sources and thing that is read."""

    def __init__(self, name: str, folder: Path) -> None:
        self.summary = Summary(name)
        self._run = targets.load(name)
        self._folder = folder
        self._seen: set[str] = set()
        self._inputs: list[bytes] = []
        self.began_s = time.process_time()
        self._written = 0.0
        signal.signal(signal.SIGPROF, _stop)

    def one(self, data: bytes) -> None:
        """Run one input."""
        begun = time.process_time()
        draw = Choices(data)
        try:
            with _in_time():
                self._run(draw)
        except Exception as error:
            self._keep(data, draw, error)
        now = time.process_time()
        told = self.summary
        told.executions += 1
        told.slowest_s = max(told.slowest_s, round(now - begun, 3))
        if len(self._inputs) < _REPLAYED and told.executions % 7 == 0:
            self._inputs.append(data)
        if now - self._written > _EVERY_S:
            self.write()

    def again(self) -> None:
        """Run some of the inputs over and over: what that leaves behind is a leak."""
        left = []
        for _ in range(_PASSES):
            for data in self._inputs:
                with contextlib.suppress(Exception), _in_time():
                    self._run(Choices(data))
            gc.collect()
            left.append(sys.getallocatedblocks())
        self.summary.blocks = left[-1] - left[-2]
        self.write()

    def write(self) -> None:
        """Write the summary."""
        told = self.summary
        self._written = time.process_time()
        told.seconds = round(self._written - self.began_s, 1)
        told.memory_mb = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)
        (self._folder / "summary.json").write_text(json.dumps(to_builtins(told)))

    def _keep(self, data: bytes, draw: Choices, error: Exception) -> None:
        place = traceback.extract_tb(error.__traceback__)[-1]
        own = [frame for frame in traceback.extract_tb(error.__traceback__) if "callwright" in frame.filename] or [
            place
        ]
        name = f"{type(error).__name__}-{Path(own[-1].filename).stem}-{own[-1].lineno}-{place.lineno}"
        name = "-".join(filter(None, (*draw.about.split(), name)))
        if name in self._seen:
            return
        self._seen.add(name)
        self.summary.findings += 1
        told = "".join(traceback.format_exception(error))
        (self._folder / f"{name}.txt").write_text(f"{data.hex()}\n\n{told}", errors="backslashreplace")


@contextlib.contextmanager
def _in_time() -> Iterator[None]:
    signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _stop(*_: Any) -> None:
    raise TookTooLongError(f"more than {LIMIT_S} s")


def main(name: str, seconds: float, folder: Path, way: str) -> None:
    """Run a target for so long, and end the process."""
    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    if way == "blind":
        _blind(Findings(name, folder), seconds)
    else:
        import atheris

        with atheris.instrument_imports(include=["callwright"]):
            found = Findings(name, folder)
        found.summary.guided = True
        _guided(found, seconds, folder / "corpus")


def _guided(found: Findings, seconds: float, corpus: Path) -> None:
    import atheris

    corpus.mkdir(exist_ok=True)

    def one(data: bytes) -> None:
        found.one(data)
        if time.process_time() - found.began_s > seconds:
            # atheris ends the process where it stands.
            found.write()
            found.again()
            os._exit(0)

    flags = ["-timeout=1200", "-rss_limit_mb=4096", f"-max_len={MAX_BYTES}", "-len_control=0", "-print_final_stats=0"]
    atheris.Setup([sys.argv[0], *flags, f"-artifact_prefix={corpus.parent}/", str(corpus)], one)
    atheris.Fuzz()


def _blind(found: Findings, seconds: float) -> None:
    chance = random.Random()
    while time.process_time() - found.began_s < seconds:
        found.one(chance.randbytes(chance.choice(_SIZES)))
    found.write()
    found.again()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
