"""Runs: what is done is kept, whatever ends them; servers that refuse, fail or say nothing."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from callwright.errors import ConfigError, UpstreamError
from callwright.eval import run as runs
from callwright.eval.ask import Answered, Asker, ModelAsker
from callwright.eval.cost import seconds_left
from callwright.eval.results import RESULTS, Plan, ResultFile, read_records, read_results
from callwright.eval.run import run
from callwright.eval.suite import digest_of, suite
from callwright.eval.summary import summary_of
from callwright.reading.collect import Turn
from callwright.turn.reread import reread
from tests.support.eval_models import TODAY, Injected
from tests.support.paths import ROOT
from tests.support.waiting import until

CASES = suite("quick", 1, ["one_tool", "restraint"])
PLAN = Plan("simulated", digest_of(CASES), "quick")


def asked(folder: Path, ways: dict[str, Asker], **how: Any) -> None:
    with ResultFile(folder, PLAN) as results:
        asyncio.run(run(CASES, ways, results, **how))


@pytest.mark.parametrize(
    ("left", "ended", "spent_s", "seconds"),
    [
        (8, 0, 30.0, 60.0),  # the four that run have taken 30 s each, and as many wait
        (3, 0, 30.0, 30.0),
        (136, 4, 30.0, 1020.0),
        (100, 40, 300.0, 750.0),
        (1, 39, 300.0, 300 * 4 / 39),  # which has no other beside it
    ],
)
def test_the_time_that_is_left_follows_from_the_cases_that_ended(
    left: int, ended: int, spent_s: float, seconds: float
) -> None:
    assert seconds_left(left, ended, spent_s, at_once=4) == pytest.approx(seconds)


class Counting:
    """Answers with a text, and counts; `fails` say what becomes of the first requests."""

    def __init__(self, *fails: Exception | float) -> None:
        self.fails = list(fails)
        self.asked: list[str] = []
        self.busy = self.most = 0

    def lacks(self, body: dict[str, Any]) -> str:
        return ""

    async def ask(self, body: dict[str, Any], label: str) -> Answered:
        self.asked.append(label)
        self.busy += 1
        self.most = max(self.most, self.busy)
        try:
            await asyncio.sleep(0)
            if self.fails:
                fail = self.fails.pop(0)
                if isinstance(fail, Exception):
                    raise fail
                await asyncio.Event().wait()
            return Answered(Turn("Well.", None, (), "stop"), 0.1)
        finally:
            self.busy -= 1

    async def close(self) -> None: ...


def error(status: int | None = None) -> UpstreamError:
    return UpstreamError("The upstream fails.", fault="status", upstream="it", status=status)


def test_what_is_done_is_not_asked_again_and_what_failed_is(tmp_path: Path) -> None:
    first = Counting(error())
    asked(tmp_path, {"w": first}, at_once=1)
    assert len(first.asked) == len(CASES)
    again = Counting()
    asked(tmp_path, {"w": again, "v": (other := Counting())})
    assert again.asked == first.asked[:1]
    assert len(other.asked) == len(CASES)
    _, results = read_results(tmp_path)
    assert len(results) == 2 * len(CASES)
    assert not any(result.error for result in results)


def test_a_line_that_was_not_written_to_its_end_is_asked_again(tmp_path: Path) -> None:
    asked(tmp_path, {"w": Counting()})
    path = tmp_path / RESULTS
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    assert len(read_results(tmp_path)[1]) == len(CASES) - 1
    asked(tmp_path, {"w": (again := Counting())})
    assert len(again.asked) == 1
    assert len(read_results(tmp_path)[1]) == len(CASES)
    assert path.read_bytes().count(b"\n") == len(CASES) + 1


def test_other_cases_or_another_model_do_not_go_into_the_same_folder(tmp_path: Path) -> None:
    asked(tmp_path, {"w": Counting()})
    for plan in (msgspec.structs.replace(PLAN, target="other"), msgspec.structs.replace(PLAN, cases="other")):
        with pytest.raises(ConfigError, match=r"holds another run: simulated.*--out"):
            ResultFile(tmp_path, plan)
    (tmp_path / RESULTS).write_text("{}\n")
    with pytest.raises(ConfigError, match="expected the results of"):
        ResultFile(tmp_path, PLAN)


def test_an_overloaded_server_gets_less_at_once_and_every_case_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "_PAUSE_S", 0.001)
    asker = Counting(*(error(429) for _ in range(5)))
    asked(tmp_path, {"w": asker}, at_once=8)
    assert len(asker.asked) == len(CASES) + 5
    assert asker.most <= 8
    assert not any(result.error for result in read_results(tmp_path)[1])


def test_a_server_that_keeps_failing_ends_the_run_and_says_with_what(tmp_path: Path) -> None:
    asker = Counting(*(error(500) for _ in range(100)))
    with ResultFile(tmp_path, PLAN) as results, pytest.raises(UpstreamError, match=r"12 cases.*The upstream fails"):
        asyncio.run(run(CASES * 4, {"w": asker}, results))
    assert len(asker.asked) < 20


def test_a_case_that_never_ends_has_failed_and_the_others_go_on(tmp_path: Path) -> None:
    asked(tmp_path, {"w": Counting(1.0)}, at_once=1, timeout_s=0.05)
    _, results = read_results(tmp_path)
    assert [result.error for result in results if result.error] == ["It took more than 0.05 s."]
    (way,) = summary_of(results).ways
    assert (way.cases, way.errors) == (len(CASES), 1)


def test_turns_of_cases_that_are_not_right_can_be_read_again(tmp_path: Path) -> None:
    injected = Injected("second_call")
    asked(tmp_path, {"w": ModelAsker(injected.model(), TODAY)})
    wrong = {f"w {result.case}" for result in read_results(tmp_path)[1] if not result.right}
    records = read_records(tmp_path)
    assert wrong == set(records)
    for found in records.values():
        for record in found:
            assert record.request["messages"]
            for one in reread(record):
                assert one is not None
                assert one.differing == []


@pytest.mark.processes
def test_a_run_that_is_interrupted_says_that_it_can_go_on_and_does(tmp_path: Path) -> None:
    options = "--way raw:hermes --size full --json --at-once 1 --out there".split()
    command = [sys.executable, "-m", "callwright", "eval", *options]
    how: Any = {"cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": str(ROOT / "src")}, "text": True}
    path = tmp_path / "there" / RESULTS
    pipes: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, **how) as process:
        until(lambda: path.exists() and path.read_bytes().count(b"\n") > 5)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate()
    assert process.returncode == 1
    assert "Stopped. The results so far are in there. Run the same command to continue." in told
    assert "Traceback" not in told
    done = path.read_bytes().count(b"\n") - 1
    assert 0 < done < 400
    ended = subprocess.run(command, check=True, capture_output=True, **how)
    assert f"Going on: {done} are done, left are {400 - done} cases" in ended.stderr


@pytest.mark.processes
def test_a_run_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    """Killed without a word in the middle; nothing is lost or asked twice, and all is as without that."""
    options = "--way raw:hermes --faults odd_name:0.5 --size quick --json --at-once 2".split()
    command = [sys.executable, "-m", "callwright", "eval", *options, "--out"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    how: Any = {"env": environment, "capture_output": True, "text": True, "check": True}
    path = tmp_path / "out" / RESULTS
    killed = [*command, str(tmp_path / "out")]
    with subprocess.Popen(killed, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        until(lambda: path.exists() and path.read_bytes().count(b"\n") > 5)
        process.send_signal(signal.SIGKILL)
    before = path.read_bytes()
    ended = subprocess.run(killed, **how)
    assert "Going on: " in ended.stderr
    assert path.read_bytes().startswith(before[: before.rindex(b"\n")])
    (way,) = json.loads(ended.stdout)["ways"]
    assert way["cases"] == 40
    (whole,) = json.loads(subprocess.run([*command, str(tmp_path / "fresh")], **how).stdout)["ways"]
    assert (whole["right"], whole["wanted"], whole["made"]) == (way["right"], way["wanted"], way["made"])
