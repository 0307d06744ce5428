"""The cases: whole, the same for the same seed, solvable, apart from the test vectors; and what a verdict says."""

import asyncio
import re
from itertools import islice
from random import Random
from typing import Any

import pytest

from callwright.conversation import Call
from callwright.errors import ConfigError
from callwright.eval.ask import ModelAsker
from callwright.eval.case import Case, Must, WantedCall
from callwright.eval.groups.tools import TEXT, WHOLE, function, user
from callwright.eval.play import Play
from callwright.eval.run import played
from callwright.eval.suite import GROUPS, SIZES, digest_of, suite
from callwright.eval.wanted import PREDICATES, check_wanted, misfit
from callwright.reading.collect import Turn
from callwright.tolerant_json.codec import decode, encode
from callwright.turn.model import Model
from callwright.wire.chat.request import read_request
from tests.support.eval_models import TODAY, Copying, Right
from tests.support.paths import ROOT

FULL = suite("full")


def test_there_are_ten_groups_with_as_many_cases_as_their_size_says() -> None:
    assert len(GROUPS) == 10
    for size, number in SIZES.items():
        assert len(suite(size)) == 10 * number
    assert len({case.id for case in FULL}) == len(FULL) == 400
    assert len({encode(case.request()) for case in FULL}) == len(FULL)


def test_seeds_repeat_and_a_smaller_size_begins_a_larger_one() -> None:
    assert digest_of(suite("normal", 3)) == digest_of(suite("normal", 3))
    assert digest_of(suite("normal", 3)) != digest_of(suite("normal", 4))
    for name in GROUPS:
        quick, full = suite("quick", 5, [name]), suite("full", 5, [name])
        assert full[: len(quick)] == quick


@pytest.mark.parametrize("name", GROUPS)
def test_every_case_is_a_request_that_the_gateway_takes_and_survives_as_json(name: str) -> None:
    for case in islice(GROUPS[name](Random(1)), 60):
        assert case.group == name
        assert not case.must.is_empty
        read_request({"model": "m", **case.request()})
        assert decode(encode(case), Case).request() == decode(encode(case.request()))
        check_wanted([dict(call.arguments) for call in case.must.calls or ()], case.id)


def test_no_words_of_the_test_vectors_are_among_the_cases() -> None:
    """Names of tools, and what users say."""
    ours = {tool.get("function", tool.get("custom"))["name"] for case in FULL for tool in case.tools}
    said = {message["content"] for case in FULL for message in case.messages if message["role"] == "user"}
    vectors = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests" / "vectors").rglob("*.txt"))]
    assert vectors
    names = {word for text in vectors for word in re.findall(r'"name":\s*"(\w+)"', text)}
    assert names
    assert not ours & names
    assert not [words for words in said for text in vectors if words in text]


WAYS: list[tuple[Any, str | None]] = [
    ("raw", "hermes"),
    ("raw", "harmony"),
    ("prompt", "json"),
    ("native", None),
]


def model_of(upstream: Any, mode: Any, dialect: str | None) -> Model:
    return Model(name="m", upstream=upstream, upstream_model="m", mode=mode, dialect=dialect, retries=0)


@pytest.mark.parametrize(("mode", "dialect"), WAYS)
def test_a_model_that_is_right_scores_all_of_it(mode: Any, dialect: str | None) -> None:
    asker = ModelAsker(model_of(Right(FULL), mode, dialect), TODAY)

    async def whys() -> list[tuple[str, str]]:
        results = [(await played(case, "w", asker))[0] for case in FULL]
        return [(one.case, one.verdict.why) for one in results if one.verdict and not one.verdict.right]

    assert asyncio.run(whys()) == []


@pytest.mark.parametrize(("mode", "dialect"), WAYS)
def test_a_model_that_copies_the_prompt_scores_what_it_should(mode: Any, dialect: str | None) -> None:
    """It never calls, so each wanted call is lost, none is false, and right is what wants no call and no form. Where
    the prompt itself begins the call, what it says becomes an argument, which is wrong.
    """
    asker = ModelAsker(model_of(Copying(), mode, dialect), TODAY)

    async def check() -> None:
        for case in suite("normal"):
            verdict = (await played(case, "w", asker))[0].verdict
            assert verdict is not None
            if isinstance(case.tool_choice, dict):
                assert not verdict.right
                continue
            assert (verdict.made, verdict.false, verdict.invalid) == (0, 0, 0), case.id
            assert verdict.lost == len(case.must.calls or ()), case.id
            assert verdict.right == (case.must.calls == () and case.must.answer is None), (case.id, verdict.why)

    asyncio.run(check())


# --- verdicts ---

_DIG = function("dig_hole", "Digs.", {"depth": WHOLE, "place": TEXT, "tool": {"type": "string", "default": "spade"}})
_DIG["function"]["parameters"]["required"] = ["depth", "place"]
_FILL = function("fill_hole", "Fills.", {"place": TEXT})
_WANTED = (
    WantedCall("dig_hole", {"depth": 3, "place": {"$words": "the yard"}}),
    WantedCall("fill_hole", {"place": "pit"}),
)


def verdict_on(*calls: tuple[str, str], must: Must, steps: int = 1) -> Any:
    case = Case(id="x", group="own", messages=(user("Dig."),), tools=(_DIG, _FILL), must=must, steps=steps)
    play = Play(case)
    play.take(Turn(None, None, tuple(Call(name, arguments) for name, arguments in calls), "tool_calls"))
    return play.verdict()


RIGHT_DIG = ("dig_hole", '{"depth": 3, "place": "The  Yard."}')
DIG_BY_SPADE = ("dig_hole", '{"depth": 3, "place": "the yard", "tool": "spade"}')
DIG_BY_HAND = ("dig_hole", '{"depth": 3, "place": "the yard", "tool": "hands"}')
RIGHT_FILL = ("fill_hole", '{"place": "pit"}')


def test_a_call_too_many_is_not_taken_for_one_that_was_never_wanted() -> None:
    twice = verdict_on(RIGHT_FILL, RIGHT_FILL, must=Must(calls=_WANTED[1:]))
    other = verdict_on(RIGHT_FILL, RIGHT_DIG, must=Must(calls=_WANTED[1:]))
    assert twice.why == "fill_hole was called more often than was asked for"
    assert other.why == "dig_hole was called, and nobody asked for it"


@pytest.mark.parametrize(
    ("calls", "right", "counts"),
    [
        pytest.param([RIGHT_DIG, RIGHT_FILL], True, (0, 0, 0, 0), id="as wanted"),
        pytest.param([RIGHT_FILL, RIGHT_DIG], True, (0, 0, 0, 0), id="in another order"),
        pytest.param([DIG_BY_SPADE, RIGHT_FILL], True, (0, 0, 0, 0), id="a default"),
        pytest.param([DIG_BY_HAND, RIGHT_FILL], False, (0, 0, 1, 0), id="not asked for"),
        pytest.param([RIGHT_DIG], False, (0, 1, 0, 0), id="one lost"),
        pytest.param([], False, (0, 2, 0, 0), id="all lost"),
        pytest.param([RIGHT_DIG, RIGHT_FILL, RIGHT_FILL], False, (1, 0, 0, 0), id="one too many"),
        pytest.param([RIGHT_DIG, ("fill_hole", '{"place": "moat"}')], False, (0, 0, 1, 0), id="another value"),
        pytest.param([RIGHT_DIG, ("fill_hole", '{"plaice": "pit"}')], False, (0, 0, 0, 1), id="not its schema"),
        pytest.param([RIGHT_DIG, ("fill_hole", '{"place": "pit"')], False, (0, 0, 0, 1), id="no JSON"),
        pytest.param([RIGHT_DIG, ("fill_holes", '{"place": "pit"}')], False, (0, 0, 0, 1), id="no such tool"),
        pytest.param([RIGHT_DIG, ("fill_hole", '["pit"]')], False, (0, 0, 0, 1), id="no object"),
    ],
)  # fmt: skip
def test_a_verdict_says_what_became_of_each_call(
    calls: list[tuple[str, str]], right: bool, counts: tuple[int, int, int, int]
) -> None:
    verdict = verdict_on(*calls, must=Must(calls=_WANTED))
    assert verdict.right is right
    assert (verdict.false, verdict.lost, verdict.wrong, verdict.invalid) == counts
    assert bool(verdict.why) is not right


def test_no_call_is_right_where_none_may_be_made_and_any_where_some_must() -> None:
    assert verdict_on(must=Must(calls=())).right
    assert verdict_on(RIGHT_FILL, must=Must(calls=())).false == 1
    assert verdict_on(RIGHT_FILL, must=Must(some=True)).right
    assert not verdict_on(must=Must(some=True)).right
    assert not verdict_on(("fill_hole", "{}"), must=Must(some=True)).right
    assert verdict_on(RIGHT_DIG, RIGHT_FILL, must=Must(calls=_WANTED[1:], may=("dig_hole",))).right


@pytest.mark.parametrize(
    ("wanted", "fits", "not_"),
    [
        (3, [3, 3.0], [True, "3", 4, None]),
        (True, [True], [1, "true", False]),
        ("a", ["a"], ["A", None, ["a"]]),
        (None, [None], [0, "", "null"]),
        ([1, {"$any": True}], [[1, 2], [1, None]], [[1], [2, 1], "12"]),
        ({"a": 1, "b": {"$absent": True}}, [{"a": 1}], [{"a": 1, "b": None}, {}, {"a": 1, "c": 2}, 1]),
        ({"$one_of": [1, {"$has": "x"}]}, [1, "box"], [2, "b"]),
        ({"$words": "North Sea"}, ["north  sea.", '"North Sea"'], ["NorthSea", 3, None]),
        ({"$has": ["ice", "sea"]}, ["Sea of Ice"], ["ice", 3]),
        ({"$set": [1, {"$any": True}]}, [[5, 1]], [[1], [5, 6]]),
        ({"$near": [1.5, 0.1]}, [1.45, 1.6], [1.7, "1.5", True]),
    ],
)  # fmt: skip
def test_what_is_wanted_fits_what_it_says_and_nothing_else(wanted: Any, fits: list[Any], not_: list[Any]) -> None:
    check_wanted(wanted, "it")
    assert not [value for value in fits if misfit(wanted, value)]
    assert not [value for value in not_ if not misfit(wanted, value)]


@pytest.mark.parametrize("wanted", [{"$hass": "x"}, {"$has": 3}, {"$any": True, "b": 1}, [{"a": {"$set": "x"}}]])
def test_what_only_looks_like_a_predicate_is_refused_with_the_known_ones(wanted: Any) -> None:
    with pytest.raises(ConfigError, match=r"it.*expected"):
        check_wanted(wanted, "it")
    assert len(PREDICATES) == 8
