"""Rows per second of `callwright bulk parse`, for each engine that is installed, on one file; outputs are compared.

    python bench/bulk.py [--rows 20000] [--dialect hermes] [--workers N] [--engines local,ray,daft] [--kills 0]

`one` is a plain loop over the rows in one process, without parts. `--kills` kills the local run so many times in the
middle and goes on with it: the output must be the same.
"""

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from callwright import write
from callwright.bulk.engines import ENGINES
from callwright.bulk.rows import Batch, Work
from callwright.tolerant_json.codec import decode, encode

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "save_note",
            "parameters": {
                "type": "object",
                "properties": {"title": {"type": "string"}, "text": {"type": "string"}, "pages": {"type": "integer"}},
                "required": ["title"],
            },
        },
    }
]


def main() -> None:
    """Measure and print one table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=20_000)
    options.add_argument("--dialect", default="hermes")
    options.add_argument("--workers", type=int, default=os.cpu_count())
    options.add_argument("--engines", default=",".join(ENGINES), help="with commas")
    options.add_argument("--kills", type=int, default=0, help="how often the local run is killed")
    given = options.parse_args()
    with TemporaryDirectory() as folder:
        source = Path(folder) / "outputs.jsonl"
        _write_rows(source, given.rows, given.dialect)
        (Path(folder) / "tools.json").write_text(json.dumps(TOOLS))
        print(f"{given.rows:,} rows, {source.stat().st_size / 1e6:.0f} MB, {given.workers} workers")
        print(f"{'':12}{'rows/s':>10}{'s':>8}   output")
        began = time.perf_counter()
        expected = _in_one(source, given.dialect)
        _row("one", given.rows, time.perf_counter() - began, expected)
        for engine in given.engines.split(","):
            target = source.with_name(f"{engine}.jsonl")
            began = time.perf_counter()
            command = _command(source, target, given.dialect, engine, given.workers)
            for _ in range(given.kills if engine == "local" else 0):
                _killed(command, target)
            done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
            took = time.perf_counter() - began
            if done.returncode:
                print(f"{engine:12}{done.stderr.strip().splitlines()[-1]}")
                continue
            digest = hashlib.sha256(target.read_bytes()).hexdigest()[:12]
            _row(engine, given.rows, took, digest + ("" if digest == expected else " DIFFERS"))


def _row(name: str, rows: int, took: float, told: str) -> None:
    print(f"{name:12}{rows / took:10,.0f}{took:8.1f}   {told}")


def _write_rows(path: Path, count: int, dialect: str) -> None:
    chance = random.Random(7)
    with path.open("wb") as file:
        for number in range(count):
            arguments = {"title": f"Note {number}", "text": "so it goes, " * chance.randint(0, 40), "pages": number}
            output = f"I save it.\n{write([{'name': 'save_note', 'arguments': arguments}], dialect=dialect)}"
            file.write(encode({"id": number, "output": output}) + b"\n")


def _in_one(source: Path, dialect: str) -> str:
    batch = Batch(Work("parse", dialect, TOOLS))
    digest = hashlib.sha256()
    with source.open("rb") as file:
        for line in file:
            digest.update(encode(batch([decode(line)])[0]) + b"\n")
    return digest.hexdigest()[:12]


def _command(source: Path, target: Path, dialect: str, engine: str, workers: int) -> list[str]:
    asked = ["parse", source, target, "--dialect", dialect, "--tools", source.with_name("tools.json")]
    how = ["--engine", engine, "--workers", workers, "--part-mb", 2]
    return [str(Path(sys.executable).with_name("callwright")), "bulk", *map(str, [*asked, *how])]


def _killed(command: list[str], target: Path) -> None:
    """Start it and kill it, with its workers, when some more parts are done."""
    folder = target.with_name(f"{target.name}.parts")
    before = len(list(folder.glob("*.done")))
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
    while process.poll() is None and len(list(folder.glob("*.done"))) < before + 3:
        time.sleep(0.05)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


if __name__ == "__main__":
    main()
