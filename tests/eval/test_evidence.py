"""`scripts/evidence` with a server of the user's: its tables."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

pytestmark = pytest.mark.processes


def evidence(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "bench" / "evidence.py"), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def rows(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]


def test_each_way_of_a_server_has_a_row_for_each_choice(simulated: str, tmp_path: Path) -> None:
    out = tmp_path / "cases.jsonl"
    ran = evidence(simulated, "--model", "native", "--each", "1", "--out", str(out))
    assert ran.returncode == 0, ran.stderr
    heads, *told = rows(ran.stdout)
    by_way = [dict(zip(heads, row, strict=True)) for row in told if row[0] in ("the server itself", "native")]
    assert len(by_way) == 4  # two ways, with `auto` and with `required`
    assert {row["valid"] for row in by_way} == {"100.0 % (51–100)"}  # the simulated model calls
    assert {row["requests"] for row in by_way} == {"1.00"}
    outcomes = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(outcomes) == sum(int(row[1]) for row in told if row[1].isdigit())
    demanded = [one for one in outcomes if one["choice"] == "required" and one["way"].startswith("prompt")]
    assert all(one["is_nothing"] and not one["result"]["verdict"].get("made") for one in demanded)


def test_a_server_that_is_not_there_is_named(closed_port: str) -> None:
    ran = evidence(closed_port)
    assert ran.returncode == 1
    assert "The server cannot be asked: no connection to 127.0.0.1" in ran.stderr
    assert "Traceback" not in ran.stderr
