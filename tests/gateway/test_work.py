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
# Functions of ours that are entered, tasks that are made, bytes of JSON that are read and that are written, and objects
# that wait for the collector of garbage: those are of SQLAlchemy.
CEILINGS: Final = {
    "native whole": (504, 1, 1638, 2617, 0),
    "native stream": (870, 4, 2477, 2486, 0),
    "raw stream": (1060, 5, 1762, 3034, 10),
    "responses stream": (1168, 5, 2656, 11086, 10),
    "messages stream": (1033, 4, 2706, 3800, 0),
    "native whole, large": (519, 1, 63404, 123588, 0),
    "native stream, large": (885, 4, 64243, 123456, 0),
    "raw stream, large": (1082, 5, 63528, 114067, 10),
    "responses stream, large": (1183, 5, 61748, 273119, 10),
    "messages stream, large": (1044, 4, 62699, 123491, 0),
    "raw stream, pages off": (1017, 5, 1762, 3034, 10),
    "custom tool": (987, 2, 562, 3731, 10),
    "parse, 3 chunks": (236, 0, 18, 222, 0),
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
    rows = []
    for name, (entries, tasks, read, written, garbage) in measured.items():
        most = (ceil(entries * MARGIN), tasks, ceil(read * MARGIN), ceil(written * MARGIN), garbage)
        rows.append(f'    "{name}": {most},')
    return "\n".join(rows)
