"""Rows per second of `callwright bulk parse`, for each engine that is installed, on one file; outputs are compared.

    python bench/bulk.py [--rows 20000] [--dialect hermes] [--workers N] [--engines local,ray,daft] [--row-group 0]

`one` is a plain loop over the rows in one process, without parts, `auto` the same with a dialect that is not named; the
ratio of their CPU times should be 1.5 at most. `floor` is what the engine does with the same file if
nothing is done to the rows: they are read and written. The start of the engine is in both. `MB` is the most memory that
the command and its processes had at once, shared pages counted once, taken every quarter of a second.

`--row-group N` is a Parquet file of so many rows in one row group, read and written on this machine: its memory should
be that of the small files.
"""

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from callwright import write
from callwright.bulk.engines import ENGINES
from callwright.bulk.rows import Batch, Work
from callwright.tolerant_json.codec import decode, encode
from processes import memory_of

PART_BYTES = 2_000_000
_SAMPLED_EVERY_S = 0.25
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
    options.add_argument("--row-group", type=int, default=0, help="rows of one row group of Parquet")
    given = options.parse_args()
    with TemporaryDirectory() as folder:
        source = Path(folder) / "outputs.jsonl"
        source.write_bytes(b"".join(encode(row) + b"\n" for row in _rows(given.rows, given.dialect)))
        source.with_name("tools.json").write_text(json.dumps(TOOLS))
        print(f"{given.rows:,} rows, {source.stat().st_size / 1e6:.0f} MB, {given.workers} workers")
        print(f"{'':12}{'rows/s':>10}{'floor':>10}{'s':>8}{'MB':>7}   output")
        _in_one(source, given.dialect)  # loads what both need
        expected, named = _in_one(source, given.dialect)
        _row("one", given.rows, named, None, None, expected)
        found, unnamed = _in_one(source, "auto")
        told = f"{found}{'' if found == expected else ' DIFFERS'}, {unnamed / named:.2f} times one"
        _row("auto", given.rows, unnamed, None, None, told)
        for engine in filter(None, given.engines.split(",")):
            target = source.with_name(f"{engine}.jsonl")
            try:
                took, memory = _ran(_command(source, target, given.dialect, engine, given.workers))
                floor, _ = _ran(_floor(source, target.with_name("floor.jsonl"), engine, given.workers))
            except RuntimeError as error:
                print(f"{engine:12}{error}", flush=True)
                continue
            digest = hashlib.sha256(target.read_bytes()).hexdigest()[:12]
            _row(engine, given.rows, took, floor, memory, digest + ("" if digest == expected else " DIFFERS"))
        if given.row_group:
            table = _one_group(source.with_name("group.parquet"), given.row_group, given.dialect)
            target = table.with_name("parsed.parquet")
            took, memory = _ran(_command(table, target, given.dialect, "local", given.workers))
            floor, _ = _ran(_floor(table, target.with_name("floor.parquet"), "local", given.workers))
            print(f"{given.row_group:,} rows in one row group, {table.stat().st_size / 1e6:.0f} MB of Parquet")
            _row("local", given.row_group, took, floor, memory, "")


def _row(name: str, rows: int, took: float, floor: float | None, memory: int | None, told: str) -> None:
    beside = f"{rows / floor:10,.0f}" if floor else f"{'':10}"
    held = f"{memory / 1e6:7,.0f}" if memory else f"{'':7}"
    print(f"{name:12}{rows / took:10,.0f}{beside}{took:8.1f}{held}   {told}".rstrip(), flush=True)


def _rows(count: int, dialect: str) -> Iterator[dict[str, object]]:
    chance = random.Random(7)
    for number in range(count):
        arguments = {"title": f"Note {number}", "text": "so it goes, " * chance.randint(0, 40), "pages": number}
        output = f"I save it.\n{write([{'name': 'save_note', 'arguments': arguments}], dialect=dialect)}"
        yield {"id": number, "output": output}


def _one_group(path: Path, count: int, dialect: str) -> Path:
    import pyarrow
    import pyarrow.parquet as parquet

    table = pyarrow.Table.from_pylist(list(_rows(count, dialect)))
    parquet.write_table(table, path, row_group_size=count)
    return path


def _in_one(source: Path, dialect: str) -> tuple[str, float]:
    """The digest of the output, and the CPU time."""
    batch = Batch(Work("parse", dialect, TOOLS))
    digest = hashlib.sha256()
    began = time.process_time()
    with source.open("rb") as file:
        for line in file:
            digest.update(encode(batch([decode(line)])[0]) + b"\n")
    return digest.hexdigest()[:12], time.process_time() - began


def _command(source: Path, target: Path, dialect: str, engine: str, workers: int) -> list[str]:
    asked = ["parse", source, target, "--dialect", dialect, "--tools", source.with_name("tools.json")]
    how = ["--engine", engine, "--part-mb", PART_BYTES / 1e6]
    how += [] if engine == "daft" else ["--workers", workers]  # which says itself how many
    return [str(Path(sys.executable).with_name("callwright")), "bulk", *map(str, [*asked, *how])]


def _floor(source: Path, target: Path, engine: str, workers: int) -> list[str]:
    given = [source, target, engine, workers, PART_BYTES]
    return [sys.executable, str(Path(__file__).with_name("bulk_floor.py")), *map(str, given)]


def _ran(command: list[str]) -> tuple[float, int]:
    """How long a command took, in seconds, and how much memory it had at most. Raises `RuntimeError`."""
    paths = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    began, memory = time.perf_counter(), 0
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, encoding="utf-8", env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    )
    parent = psutil.Process(process.pid)
    while process.poll() is None:
        memory = max(memory, memory_of(parent))
        time.sleep(_SAMPLED_EVERY_S)
    took = time.perf_counter() - began
    assert process.stderr is not None
    told = process.stderr.read()
    if process.returncode:
        raise RuntimeError(told.strip().splitlines()[-1])
    return took, memory


if __name__ == "__main__":
    main()
