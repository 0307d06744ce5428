"""Turns of a kind wait together: what is counted of them is what each would have counted at once."""

import random
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from callwright.calls.aliases import ParameterAliases
from callwright.calls.tool_search import SEARCH_TOOL
from callwright.conversation import Conversation, FunctionTool, Message, NamedTool, TextPart
from callwright.errors import UpstreamError
from callwright.events import Problem, ProblemKind, Usage
from callwright.gateway.observability.tallies import Tallies
from callwright.gateway.observability.turn_metrics import TurnMetrics, _kind_of
from callwright.turn.observe import Observation, RequestedTurn, SeenCall
from callwright.upstreams.base import GenerationRequest
from callwright.upstreams.timings import RequestTimings

TURNS = 4_000
TOOLS = tuple(FunctionTool(name, parameters={"type": "object"}) for name in ("weigh", "moor"))


def a_turn(chance: random.Random) -> Observation:
    """Most are of a few kinds. Times are multiples of an eighth, whose sums have one value in any order."""
    often = chance.random() < 0.7
    items = (Message("user", (TextPart(chance.choice("ab")),)),)
    choice: Any = chance.choice(["auto", "auto", "required", "none", NamedTool("moor")])
    conversation = Conversation(
        items,
        tools=TOOLS[: chance.randrange(3)],
        tool_choice=choice,
        allowed_tools=chance.choice([None, ("moor",)]),
    )
    turn = Observation(
        "m",
        "u",
        "m",
        "native",
        chance.choice([None, "hermes"]),
        None,
        ParameterAliases(),
        conversation,
        {},
        chance.random() < 0.5,
    )
    turn.begun_s, turn.ended_s = 8.0, 8.0 + chance.randrange(1, 80) / 8
    turn.first_s = chance.choice([None, 8.5])
    turn.reason = chance.choice([None, "stop", "tool_calls"])
    turn.usage = chance.choice([None, Usage(9, 4), Usage(9, 5, cached_tokens=3), Usage(9, 5, reasoning_tokens=2)])
    for number in range(chance.choice([0, 1, 1, 1 if often else 2])):
        turn.calls[number] = SeenCall(chance.choice(["moor", SEARCH_TOOL.name]), complete=chance.random() < 0.8)
    for number in range(1 if often else chance.randrange(3)):
        timings = RequestTimings(begun_s=8.0, sent_s=8.125, first_s=8.25, ended_s=9.0, servers=chance.randrange(3))
        timings.queued_s = chance.choice([0.0, 0.0, 0.125])
        timings.constraint = chance.choice([None, ("grammar", "x")])
        generation = GenerationRequest("m", conversation, dialect=chance.choice([None, "hermes"]))
        failure = None if often else chance.choice([None, UpstreamError("gone", fault="cut", upstream="u")])
        again: ProblemKind | None = "invalid_arguments" if number and chance.random() < 0.5 else None
        turn.asked.append(RequestedTurn(generation, timings, again=again, failure=failure))
    if not often:
        turn.problems = chance.choice([[], [Problem("unknown_tool", "")], [Problem("json_repaired", "", call=0)]])
        if turn.problems and turn.problems[0].call in turn.calls:
            turn.calls[0].problems.append(turn.problems[0].kind)
        turn.error = chance.choice([None, GeneratorExit(), UpstreamError("unmet", fault="unmet", upstream="u")])
        turn.ambiguous = chance.choice([None, "shown"])
    return turn


def shown(*, deferred: bool) -> list[str]:
    """What is exposed of the same turns, asked for on the way and at the end."""
    registry = CollectorRegistry()

    def counter(name: str, about: str, *labels: str) -> Counter:
        return Counter(name, about, labels, registry=registry)

    def histogram(name: str, about: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(name, about, labels, buckets=buckets, registry=registry)

    of = Tallies(deferred=deferred)
    metrics = TurnMetrics(counter, histogram, of, {})
    chance = random.Random(22)
    found: list[str] = []
    for number in range(TURNS):
        turn = a_turn(chance)
        ended = metrics.observer(chance.choice(["one", "other"]))(turn)
        assert ended is not None
        ended()
        if number in (TURNS // 2, TURNS - 1):
            metrics.add()
            of.add()
            lines = generate_latest(registry).decode().splitlines()
            found += [line for line in lines if "_created" not in line]
    return found


def test_turns_that_are_counted_by_their_kinds_count_as_they_would_one_by_one() -> None:
    assert sorted(shown(deferred=True)) == sorted(shown(deferred=False))


def test_most_turns_are_of_a_kind_and_kinds_come_again() -> None:
    chance = random.Random(22)
    kinds = [_kind_of(a_turn(chance)) for _ in range(TURNS)]
    known = [kind for kind in kinds if kind is not None]
    assert len(known) > TURNS / 3
    assert len(set(known)) < len(known)
