"""What must hold for every output that is read, whatever it is."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

import jsonschema

from callwright import ArgumentsDelta, CallStarted, Event, Finished, Problem, Turn, collect
from callwright.calls.check import arguments_problem
from callwright.calls.toolset import Toolset
from callwright.events import PROBLEM_KINDS, CallEnded
from callwright.free_text.recover import RecoveredCall, Segment, TextSegment
from tests.support.choices import Choices
from tests.support.parsing import lost, merged, read

__all__ = [
    "assert_calls_hold",
    "assert_read_alike",
    "assert_segments_hold",
    "assert_well_formed",
    "output_holds",
    "strict_json",
]

# A call that goes out with one of these is said to be wrong.
WRONG = frozenset({"unknown_tool", "non_json_arguments", "invalid_arguments", "incomplete_arguments", "invalid_input"})
# A call in text that nobody may run has one of these.
IN_DOUBT = frozenset({"argument_repeated", "malformed_call"})


def output_holds(draw: Choices, output: str, finish: str, request: Mapping[str, Any]) -> None:
    """Read an output in all ways, and look at what comes of it."""
    events = assert_read_alike(draw, output, finish, request)
    assert_well_formed(events)
    turn = collect(events)
    whole = finish == "stop" and all(call.complete for call in turn.calls)
    assert turn.finish_reason == ("length" if not whole else "tool_calls" if turn.calls else "stop")
    assert_calls_hold(turn, request)
    bare = {**request, "check": "verbatim"}
    verbatim = read(draw.cuts(output), finish, **bare)
    assert_well_formed(verbatim)
    # JSON that is written anew has the replacement character for half of a surrogate pair.
    missing = {letter for letter in lost(output, verbatim) if not "\ud800" <= letter <= "\udfff"}
    assert not missing, f"lost: {missing!r}"
    told = collect(verbatim)
    assert (turn.content, turn.reasoning) == (told.content, told.reasoning), "the check changes the text"


def assert_read_alike(draw: Choices, output: str, finish: str, request: Mapping[str, Any]) -> list[Event]:
    """However an output is cut, the same comes of it."""
    events = read([output], finish, **request)
    whole = merged(events)
    for pieces in (list(output), draw.cuts(output)):
        other = merged(read(pieces, finish, **request))
        assert other == whole, f"{output!r} in pieces such as {pieces[:3]} differs: {_differing(other, whole)}"
    return events


def _differing(ones: Sequence[Event], others: Sequence[Event]) -> str:
    """The first events in which two readings differ."""
    pairs = zip_longest(ones, others)
    return next(f"{one}, whole {other}" for one, other in pairs if one != other)


def assert_well_formed(events: Sequence[Event]) -> None:
    """Calls are numbered from 0, begun once, filled while open, ended once; the end of the turn is said once, last.

    A problem that names a call names one of the turn.
    """
    started = 0
    open_: set[int] = set()
    for event in events:
        match event:
            case CallStarted(index):
                assert index == started
                started += 1
                open_.add(index)
            case ArgumentsDelta(index, text):
                assert index in open_
                assert text
            case CallEnded(index):
                assert index in open_
                open_.remove(index)
            case Finished():
                assert event is events[-1]
            case _:
                pass
    assert not open_
    assert isinstance(events[-1], Finished)
    problems = [event for event in events if isinstance(event, Problem)]
    assert all(problem.kind in PROBLEM_KINDS for problem in problems)
    assert all(problem.call is None or problem.call < started for problem in problems)


def assert_calls_hold(turn: Turn, request: Mapping[str, Any]) -> None:
    """The calls obey the request, and those that nothing is said against are valid."""
    choice = request.get("tool_choice")
    assert not turn.calls or choice != "none"
    assert len(turn.calls) <= 1 or request.get("parallel_tool_calls", True)
    if isinstance(choice, Mapping):
        assert {call.name for call in turn.calls} <= {choice["function"]["name"]}
    schemas: dict[str, Any] = {
        tool["function"]["name"]: tool["function"].get("parameters") or {} for tool in request["tools"]
    }
    wrong = {problem.call for problem in turn.problems if problem.kind in WRONG}
    for number, call in enumerate(turn.calls):
        if number in wrong:
            continue
        assert call.complete, "a call is cut and nobody says so"
        assert call.name in schemas, f"{call.name!r} is not offered"
        value = strict_json(call.arguments)
        fault = next(jsonschema.Draft202012Validator(schemas[call.name]).iter_errors(value), None)
        assert fault is None, f"{call.arguments} is said to be valid: {fault.message if fault else ''}"


def assert_segments_hold(text: str, pieces: Sequence[Segment], tools: Toolset) -> None:
    """The segments of a reply hold all of its text. A call is valid, and so is one that is asked about; one in doubt
    says so, is JSON even so, and is not asked about.
    """
    calls = [piece for piece in pieces if isinstance(piece, RecoveredCall)]
    problems = [piece.problem for piece in pieces if isinstance(piece, TextSegment) and piece.problem]
    told = "".join(piece.text for piece in pieces)
    assert calls or told == text
    told += "".join(problem.text for problem in (*problems, *(each for call in calls for each in call.problems)))
    missing = Counter(text) - Counter(told)
    assert not missing, f"{missing} of {text!r} are lost in {pieces!r}"
    for call in calls:
        assert call.name in tools
        assert isinstance(strict_json(call.arguments), dict)
        assert call.complete == IN_DOUBT.isdisjoint(problem.kind for problem in call.problems)
    runnable = [(call.name, call.arguments) for call in calls if call.complete]
    asked = [problem.candidate for problem in problems if problem.candidate]
    for name, arguments in (*runnable, *((call.name, call.arguments) for call in asked)):
        wrong = arguments_problem(name, arguments, tools)
        assert wrong is None, f"{arguments} of {text!r}: {wrong}"


def strict_json(text: str) -> Any:
    """The value of a text that is JSON and nothing more."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)
