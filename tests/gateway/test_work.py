"""The work of recorded requests stays below ceilings: `bench/entries.py` counts it, the same on every machine."""

import json
import subprocess
import sys
from collections.abc import Callable
from math import ceil
from typing import Final, TypeAlias

import pytest

from tests.support.paths import ROOT

Record: TypeAlias = Callable[[str, object], None]
pytestmark = pytest.mark.processes
ENTRIES: Final = ROOT / "bench" / "entries.py"
MARGIN: Final = 1.02  # above what was measured
# Functions of ours that are entered, how often the next one is in another file, tasks that are made, bytes of JSON that
# are read and that are written, and objects that wait for the collector of garbage: those are of SQLAlchemy.
CEILINGS: Final = {
    "native whole": (402, 274, 1, 1886, 2542, 0),
    "native stream": (684, 469, 4, 2693, 2415, 0),
    "raw stream": (850, 584, 5, 1999, 2945, 10),
    "responses stream": (879, 606, 5, 2627, 10770, 10),
    "messages stream": (838, 551, 4, 2676, 3692, 0),
    "native whole, large": (414, 278, 1, 94170, 120057, 0),
    "native stream, large": (695, 473, 4, 94977, 119929, 0),
    "raw stream, large": (869, 588, 5, 94282, 110806, 10),
    "responses stream, large": (890, 610, 5, 90274, 265316, 10),
    "messages stream, large": (849, 555, 4, 92789, 119963, 0),
    "raw stream, pages off": (821, 561, 5, 1999, 2945, 10),
    "custom tool": (810, 518, 2, 546, 3608, 10),
    "parse, 3 chunks": (228, 150, 0, 18, 216, 0),
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
def test_a_request_takes_no_more_work_than_its_ceiling(
    name: str, measured: dict[str, list[int]], record_property: Record
) -> None:
    for what, now, most in zip(("entries", "changes of file"), measured[name], CEILINGS[name], strict=False):
        record_property("ceiling", (f"{what}: {name}", now, most))
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
