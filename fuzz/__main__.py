"""`scripts/fuzz`: runs targets one after the other, each in a process of its own, and prints what came of it."""

import argparse
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import msgspec

from fuzz import targets
from fuzz.engine import Summary
from tests.support.choices import Choices

__all__ = ["main"]

OUT = Path(".fuzz")
# A process that is not over when a busy machine would have let it hangs where Python cannot stop it.
_BUSY = 8
_GRACE_S = 300


def main() -> int:
    """Run the command line; answers the number of findings."""
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=f"Fuzz targets: {', '.join(targets.names())}.")
    parser.add_argument("target", nargs="*", metavar="TARGET", help="all of them when none is named")
    parser.add_argument("--minutes", type=float, default=1.0, help="of the processor's time, for each target (1)")
    parser.add_argument("--blind", action="store_true", help="random bytes, not guided by coverage")
    parser.add_argument("--again", metavar="HEX", help="run one input of one target, as a finding tells it")
    given = parser.parse_args()
    unknown = sorted(set(given.target) - set(targets.names()))
    if unknown:
        parser.error(f"no target is called {', '.join(unknown)}. There are: {', '.join(targets.names())}")
    if given.again is not None:
        if len(given.target) != 1:
            parser.error("--again needs the one target whose input it is")
        targets.load(given.target[0])(Choices(bytes.fromhex(given.again)))
        return 0
    way = "blind" if given.blind or find_spec("atheris") is None else "guided"
    print(
        f"{'target':20} {'executions':>10} {'minutes':>8} {'per s':>7} {'slowest':>8} {'peak':>8} {'left':>7} findings"
    )
    told = [_run(name, given.minutes * 60, way) for name in given.target or targets.names()]
    minutes = sum(each.seconds for each in told) / 60
    found = sum(each.findings for each in told)
    print(f"{'all':20} {sum(each.executions for each in told):10,} {minutes:8.1f} {'':40} {found}")
    if found:
        print(f"What failed is in {OUT}/TARGET, with the input in the first line: scripts/fuzz TARGET --again HEX")
    return int(bool(found))


def _run(name: str, seconds: float, way: str) -> Summary:
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "summary.json").unlink(missing_ok=True)
    with (folder / "log.txt").open("wb") as log:
        command = [sys.executable, "-m", "fuzz.engine", name, str(seconds), str(folder), way]
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            process.wait(seconds * _BUSY + _GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    try:
        told = msgspec.json.decode((folder / "summary.json").read_bytes(), type=Summary)
    except FileNotFoundError:
        told = Summary(name)
    if process.returncode:  # it died or was stopped: libFuzzer has left the input beside its log
        told.findings += 1
    rate = told.executions / told.seconds if told.seconds else 0
    left = "" if told.blocks is None else f"{told.blocks:+}"
    print(
        f"{name:20} {told.executions:10,} {told.seconds / 60:8.1f} {rate:7.0f} {told.slowest_s:7.2f}s "
        f"{told.memory_mb:5.0f} MB {left:>7} {told.findings}"
        f"{'' if told.guided else '  blind'}{f'  died: {process.returncode}' if process.returncode else ''}",
        flush=True,
    )
    return told


if __name__ == "__main__":
    sys.exit(main())
