"""`callwright eval --engine ray`: a task for each server; results as on one machine, kept one by one."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from callwright.cli.eval.on_ray import parts_of, run_part
from callwright.eval.suite import suite
from callwright.gateway.config.config import ModelConfig
from tests.support.paths import ROOT
from tests.support.waiting import until

CASES = suite("quick", 0, ["one_tool", "restraint"])
ENTRIES = [
    ModelConfig(name="one", upstream="simulated", mode="raw", dialect="hermes"),
    ModelConfig(name="two", upstream="simulated", mode="prompt", dialect="json"),
    ModelConfig(name="three", upstream="http://127.0.0.1:1/v1"),
]
CONFIG = """
[[models]]
name = "well"
upstream = "simulated"
mode = "raw"
dialect = "hermes"

[[models]]
name = "badly"
upstream = "simulated"
mode = "raw"
dialect = "hermes"
faults = "only_said"

[[models]]
name = "absent"
upstream = "http://127.0.0.1:1/v1"
mode = "native"
"""


def parts(*missed: tuple[str, int]) -> Any:
    given = [(way, CASES[number]) for way, number in missed]
    return parts_of(ENTRIES, given, {"temperature": 0}, at_once=2, timeout_s=9.0)


def test_models_of_one_server_are_one_part_with_what_is_missing_of_each() -> None:
    (part,) = parts(("one", 0), ("two", 0), ("two", 3))
    assert [entry.name for entry in part.entries] == ["one", "two"]
    assert part.missing == {"one": (CASES[0].id,), "two": (CASES[0].id, CASES[3].id)}
    assert [case.id for case in part.cases] == [CASES[0].id, CASES[3].id]
    assert len(parts(("one", 0), ("three", 0))) == 2
    assert parts() == []


def test_a_part_asks_what_is_missing_and_nothing_else() -> None:
    (part,) = parts(("one", 0), ("two", 1))
    done = [one.result for one in run_part(part) if one.result]
    assert sorted((one.way, one.case) for one in done) == [("one", CASES[0].id), ("two", CASES[1].id)]
    assert all(one.verdict for one in done)


def test_a_server_that_is_not_there_is_told_as_an_error_of_its_part() -> None:
    entries = [ENTRIES[2]]
    cases = suite("full", 0, ["one_tool"])[:14]
    (part,) = parts_of(entries, [("three", case) for case in cases], {}, at_once=2, timeout_s=9.0)
    *results, last = run_part(part)
    assert last.result is None
    assert "cases in a row have failed" in last.error
    assert all(one.result and one.result.error for one in results)


ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
ENVIRONMENT["PYTHONPATH"] = str(ROOT / "src")


def command(*options: str) -> list[str]:
    return [sys.executable, "-m", "callwright", "eval", "--config", "c.toml", "--engine", "ray", *options]


@pytest.mark.clients
@pytest.mark.processes
def test_models_are_measured_on_ray_as_in_this_process_and_one_that_is_absent_does_not_end_the_others(
    tmp_path: Path,
) -> None:
    pytest.importorskip("ray", reason="ray is not installed")
    (tmp_path / "c.toml").write_text(CONFIG)
    options = ("--size", "normal", "--group", "one_tool", "--out", "there")
    how: Any = {"cwd": tmp_path, "env": ENVIRONMENT, "capture_output": True, "text": True}
    ended = subprocess.run(command(*options), check=False, **how)
    assert ended.returncode == 1, ended.stderr
    assert "absent" in ended.stdout
    assert "<svg" in (tmp_path / "there" / "report.html").read_text()
    assert "Asking in 3 ways: 42 cases" in ended.stderr
    assert "cases in a row have failed" in ended.stderr
    lines = [json.loads(line) for line in (tmp_path / "there" / "results.jsonl").read_text().splitlines()[1:]]
    found = {way: [line for line in lines if line["way"] == way] for way in ("well", "badly")}
    assert [len(of) for of in found.values()] == [14, 14]
    local = [
        word for word in command(*options[:-1], "here", "--json", "--model", "well") if word not in ("--engine", "ray")
    ]
    (well,) = json.loads(subprocess.run(local, check=True, **how).stdout)["ways"]
    assert sum(line["verdict"]["right"] for line in found["well"]) == well["right"] > 10
    assert not any(line["verdict"]["right"] for line in found["badly"])
    assert (tmp_path / "there" / "turns.jsonl").read_text().count("\n") >= 14


@pytest.mark.clients
@pytest.mark.processes
def test_a_run_on_ray_that_is_interrupted_goes_on_where_it_was(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="ray is not installed")
    (tmp_path / "c.toml").write_text(CONFIG)
    options = ("--size", "full", "--model", "well", "--out", "there", "--json")
    results = tmp_path / "there" / "results.jsonl"
    how: Any = {"cwd": tmp_path, "env": ENVIRONMENT}
    with subprocess.Popen(
        command(*options, "--at-once", "1"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **how
    ) as process:
        until(lambda: results.exists() and results.read_bytes().count(b"\n") > 5)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate()
    assert process.returncode == 1
    assert "Stopped. The results so far are in there" in told
    assert "Traceback" not in told
    before = results.read_bytes().count(b"\n")
    assert before < 401
    ended = subprocess.run(command(*options), check=True, capture_output=True, text=True, **how)
    assert "Going on: " in ended.stderr
    (way,) = json.loads(ended.stdout)["ways"]
    assert way["cases"] == 400
    assert results.read_bytes().count(b"\n") == 401
