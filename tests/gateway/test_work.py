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
MARGIN: Final = 1.02  # above what was measured
# Functions of ours that are entered, how often the next one is in another file, tasks that are made, bytes of JSON that
# are read and that are written, and objects that wait for the collector of garbage: those are of SQLAlchemy.
CEILINGS: Final = {
    "native whole": (500, 304, 1, 1592, 2542, 0),
    "native stream": (834, 525, 4, 2407, 2415, 0),
    "raw stream": (1009, 642, 5, 1712, 2947, 10),
    "responses stream": (1045, 670, 5, 2580, 10770, 10),
    "messages stream": (1003, 608, 4, 2629, 3692, 0),
    "native whole, large": (514, 312, 1, 61592, 120057, 0),
    "native stream, large": (847, 532, 4, 62407, 119929, 0),
    "raw stream, large": (1030, 650, 5, 61713, 110808, 10),
    "responses stream, large": (1058, 676, 5, 59984, 265316, 10),
    "messages stream, large": (1013, 616, 4, 60908, 119963, 0),
    "raw stream, pages off": (981, 621, 5, 1712, 2947, 10),
    "custom tool": (978, 572, 2, 546, 3625, 10),
    "parse, 3 chunks": (230, 148, 0, 18, 216, 0),
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
    for name, (entries, changes, tasks, read, written, garbage) in measured.items():
        counts = [ceil(count * MARGIN) for count in (entries, changes, read, written)]
        most = (*counts[:2], tasks, *counts[2:], garbage)
        rows.append(f'    "{name}": {most},')
    return "\n".join(rows)
