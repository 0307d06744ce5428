"""The work of recorded requests stays below ceilings: `bench/entries.py` counts it, the same on every machine."""

import json
import subprocess
import sys
from math import ceil
from typing import Final

import pytest

from tests.support.paths import ROOT

pytestmark = pytest.mark.processes
ENTRIES: Final = ROOT / "bench" / "entries.py"
MARGIN: Final = 1.05  # above what was measured
# Functions of ours that are entered, tasks that are made, bytes of JSON that are read and that are written.
CEILINGS: Final = {
    "native whole": (496, 1, 1942, 2641),
    "native stream": (823, 5, 2781, 2510),
    "raw stream": (1020, 6, 2114, 3058),
    "responses stream": (1143, 6, 2713, 11787),
    "messages stream": (1012, 5, 2763, 4484),
    "native whole, large": (1350, 1, 96940, 123636),
    "native stream, large": (1717, 5, 97779, 123505),
    "raw stream, large": (2924, 6, 97112, 114116),
    "responses stream, large": (3990, 6, 92937, 300083),
    "messages stream, large": (3826, 5, 95526, 161238),
    "raw stream, pages off": (976, 6, 2114, 3058),
    "custom tool": (885, 2, 562, 3882),
    "parse, 3 chunks": (220, 0, 18, 222),
}


@pytest.fixture(scope="module")
def measured() -> dict[str, list[int]]:
    run = subprocess.run([sys.executable, ENTRIES, "--json"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    found: dict[str, list[int]] = json.loads(run.stdout)
    return found


def test_each_recorded_request_has_a_ceiling(measured: dict[str, list[int]]) -> None:
    assert set(measured) == set(CEILINGS), table(measured)


@pytest.mark.parametrize("name", CEILINGS)
def test_a_request_takes_no_more_work_than_its_ceiling(name: str, measured: dict[str, list[int]]) -> None:
    within = all(one <= most for one, most in zip(measured[name], CEILINGS[name], strict=True))
    assert within, (
        f"{measured[name]} where {list(CEILINGS[name])} is the most. The table as it would be now:\n{table(measured)}"
    )


def table(measured: dict[str, list[int]]) -> str:
    """`CEILINGS` for what was measured."""
    rows = (
        f'    "{name}": ({ceil(entries * MARGIN)}, {tasks}, {ceil(read * MARGIN)}, {ceil(written * MARGIN)}),'
        for name, (entries, tasks, read, written) in measured.items()
    )
    return "\n".join(rows)
