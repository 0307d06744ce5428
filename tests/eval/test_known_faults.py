"""The measurement measured: what the simulated model is told to do wrong is what is counted, case by case."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from callwright.eval.ask import ModelAsker
from callwright.eval.case import Case
from callwright.eval.judge import Verdict
from callwright.eval.results import Plan, ResultFile
from callwright.eval.run import run
from callwright.eval.stats import cases_for
from callwright.eval.suite import digest_of, suite
from callwright.eval.summary import summary_of
from callwright.tolerant_json.codec import encode
from tests.support.eval_models import TODAY, Injected

# What a fault shows as: a problem by its kind, or a count of the verdict. A `null` as text is a
# text that fits, and a tool with a parameter `name` may mean it.
SIGNS = {
    "string_numbers": "argument_coerced or wrong",
    "camel_case": "argument_renamed",
    "odd_name": "tool_name_repaired",
    "call_in_call": "arguments_unwrapped or invalid",
    "arguments_as_text": "arguments_decoded",
    "bare_keys": "json_repaired",
    "no_commas": "json_repaired",
    "missing_close_tag": "markup_repaired",
    "unknown_tool": "unknown_tool",
    "missing_argument": "not right",
    "second_call": "false",
    "only_said": "lost",
}


def measured(cases: list[Case], injected: Injected, folder: Path, *mode: str | None) -> dict[str, Verdict]:
    plan = Plan("simulated", digest_of(cases), "own")
    with ResultFile(folder, plan) as results:
        asyncio.run(run(cases, {"w": ModelAsker(injected.model(*mode), TODAY)}, results))
        found = {result.case: result.verdict for result in results.done.values()}
    return {case: verdict for case, verdict in found.items() if verdict is not None}


@pytest.fixture(scope="module")
def easy(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    """Cases of one answer, with a call that is wanted for itself, that the simulated model gets right."""
    cases = [
        case
        for case in suite("full", 2, ["one_tool", "many_tools", "values", "optional"])
        if case.steps == 1 and case.must.calls
    ]
    verdicts = measured(cases, Injected(), tmp_path_factory.mktemp("easy"))
    found = [case for case in cases if verdicts[case.id].clean]
    assert len(found) > 100
    return found


@pytest.mark.parametrize("rate", [0.1, 0.4, 1.0])
@pytest.mark.parametrize("fault", SIGNS)
def test_what_is_counted_is_what_was_injected_case_by_case(
    easy: list[Case], tmp_path: Path, fault: str, rate: float
) -> None:
    injected = Injected(f"{fault}:{rate}")
    verdicts = measured(easy, injected, tmp_path)
    struck = {case.id for case in easy if injected.of(case)}
    assert {id_ for id_, verdict in verdicts.items() if not verdict.clean} == struck
    assert {id_ for id_, verdict in verdicts.items() if shows(verdict, SIGNS[fault])} == struck
    assert struck or rate < 1


@pytest.mark.parametrize("mode", [("prompt", "json"), ("native", None)], ids=["prompt", "native"])
@pytest.mark.parametrize("fault", ["string_numbers", "missing_argument", "second_call", "only_said"])
def test_what_a_model_means_wrongly_is_counted_in_every_way_of_asking(
    easy: list[Case], tmp_path: Path, fault: str, mode: tuple[str, str | None]
) -> None:
    injected = Injected(f"{fault}:0.4")
    verdicts = measured(easy, injected, tmp_path, *mode)
    struck = {case.id for case in easy if injected.of(case)}
    assert struck
    assert {id_ for id_, verdict in verdicts.items() if shows(verdict, SIGNS[fault])} == struck
    assert {id_ for id_, verdict in verdicts.items() if not verdict.clean} == struck


def shows(verdict: Verdict, sign: str) -> bool:
    if sign == "not right":
        return not verdict.right and verdict.invalid + verdict.wrong + verdict.lost > 0
    return any(getattr(verdict, one, 0) or one in verdict.problems for one in sign.split(" or "))


def test_two_ways_five_points_apart_are_told_apart_at_the_size_that_says_so(tmp_path: Path) -> None:
    """Of the same cases one way loses one in twenty calls; the size is for a power of 99 %."""
    size = cases_for(0.05, 0.05, power=0.99)
    cases = many(size)
    plan = Plan("simulated", digest_of(cases), "own")
    ways = {"well": Injected(), "worse": Injected("only_said:0.05")}
    with ResultFile(tmp_path, plan) as results:
        asyncio.run(run(cases, {name: ModelAsker(one.model(), TODAY) for name, one in ways.items()}, results))
        (pair,) = summary_of(list(results.done.values())).pairs
    struck = {case.id for case in cases if ways["worse"].of(case)}
    # The way whose first answer was sooner is the first of the pair.
    lost, won = (pair.worse, pair.better) if pair.first == "well" else (pair.better, pair.worse)
    assert set(lost) == struck
    assert not won
    assert pair.comparison.is_told


def many(number: int) -> list[Case]:
    """So many cases of a group that the simulated model gets right every time."""
    cases: dict[bytes, Case] = {}
    for seed in range(20):
        for case in suite("full", seed, ["one_tool"]):
            cases.setdefault(encode(case.request()), msgspec.structs.replace(case, id=f"{case.id}/{seed}"))
    assert len(cases) >= number
    return list(cases.values())[:number]
