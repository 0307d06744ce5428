"""`bench/soak.py`, small: what comes of each request, by what the model server and the client do."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.support.paths import ROOT

SOAK = ROOT / "bench" / "soak.py"
pytestmark = [
    pytest.mark.processes,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc"),
]
ANSWERED = {
    "text": 5,
    "call": 16,
    "slow": 8,
    "quiet": 5,
    "long": 6,
    "closes behind it": 4,
    "closes when asked again": 4,
}
FAILED = {
    "stall": 3,
    "headers, then nothing": 3,
    "silent": 3,
    "late": 3,
    "reset": 5,
    "closed without end": 5,
    "half an event": 4,
    "garbage": 3,
    "no HTTP": 2,
    "invalid UTF-8": 2,
    "invalid JSON": 3,
    "HTML page": 2,
    "status 500": 2,
    "status 429": 2,
    "status 503": 2,
    "endless line": 1,
    "client stays": 1,
}
LEFT = {"client leaves midway": 3, "client leaves early": 2, "client half a request": 1}


@pytest.fixture(scope="module")
def soaked() -> Any:
    """What a wave of a hundred requests came to."""
    command = [sys.executable, str(SOAK), *"--streams 100 --waves 1 --json".split()]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=300, check=False)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def test_nothing_is_left_over_and_every_answer_ends_properly(soaked: Any) -> None:
    assert soaked["faults"] == []


def test_every_request_ends_as_what_it_met_makes_it_end(soaked: Any) -> None:
    ends = {row: _ends(counts) for row, counts in soaked["counts"].items()}
    assert ends == {
        **{row: {"answered": number} for row, number in ANSWERED.items()},
        **{row: {"failed": number} for row, number in FAILED.items()},
        **{row: {"left": number} for row, number in LEFT.items()},
    }


def _ends(counts: dict[str, int]) -> dict[str, int]:
    """Outcomes without whether an error came as a status or in a stream, which a busy machine has a say in."""
    failed = counts.get("error event", 0) + counts.get("error status", 0)
    others = {name: number for name, number in counts.items() if not name.startswith("error ")}
    return {**others, "failed": failed} if failed else others
