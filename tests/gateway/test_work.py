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
    "native whole": (490, 2, 1895, 2641),
    "native stream": (830, 7, 2734, 2510),
    "raw stream": (962, 8, 2114, 3058),
    "responses stream": (1142, 8, 2665, 11787),
    "messages stream": (1010, 7, 2716, 4484),
    "native whole, large": (1338, 2, 96892, 123636),
    "native stream, large": (1719, 7, 97731, 123505),
    "raw stream, large": (2866, 8, 97112, 114116),
    "responses stream, large": (3989, 8, 92890, 300083),
    "messages stream, large": (3820, 7, 95479, 161238),
    "raw stream, pages off": (918, 8, 2114, 3058),
    "custom tool": (854, 4, 562, 3882),
    "parse, 3 chunks": (219, 0, 18, 222),
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
