"""What leaves of an answer against which nothing is told, whoever checked it."""

import pytest

from callwright import ArgumentsDelta, CallEnded, CallStarted, ContentDelta, Event, Finished, Problem
from callwright.conversation import Conversation, FunctionTool
from callwright.turn.retry import DemandNotMet, RetryPolicy

TOOLS = (FunctionTool("ping"),)


def call(index: int, *, complete: bool = True) -> list[Event]:
    return [CallStarted(index, "ping"), ArgumentsDelta(index, "{}"), CallEnded(index, complete)]


def left(conversation: Conversation, *events: Event) -> list[Event]:
    policy = RetryPolicy(conversation, retries=0, streamed=False)
    policy.push([*events, Finished("stop")])
    assert policy.next_attempt(in_time=True) is None
    return policy.finish()


def test_a_text_is_no_answer_where_a_call_is_demanded() -> None:
    with pytest.raises(DemandNotMet):
        left(Conversation(tools=TOOLS, tool_choice="required"), ContentDelta("Hi"))


def test_one_call_leaves_where_only_one_is_allowed() -> None:
    events = left(Conversation(tools=TOOLS, parallel_tool_calls=False), *call(0), *call(1))
    assert sum(isinstance(event, CallStarted) for event in events) == 1


def test_a_call_that_is_incomplete_leaves_an_answer_that_is_unfinished() -> None:
    assert left(Conversation(tools=TOOLS), *call(0, complete=False))[-1] == Finished("length", unfinished=True)


@pytest.mark.parametrize("own", ["", "behind it"])
def test_a_call_that_does_not_leave_is_in_its_problem(own: str) -> None:
    policy = RetryPolicy(Conversation(tools=TOOLS, tool_choice="required"), retries=0, streamed=False)
    wrong = (Problem("invalid_arguments", "not so", call=0, text=own), Problem("invalid_arguments", "nor so", call=0))
    made: list[Event] = [
        CallStarted(0, "ping"),
        ArgumentsDelta(0, '{"city": '),
        ArgumentsDelta(0, '"Os'),
        *wrong,
        CallEnded(0),
    ]
    policy.push([*made, ContentDelta("Hi"), Finished("content_filter")])
    assert policy.next_attempt(in_time=True) is None
    first, second = (event for event in policy.finish() if isinstance(event, Problem))
    assert first == Problem("invalid_arguments", "not so", text=f'{own}\nping {{"city": "Os'.strip())
    assert second == Problem("invalid_arguments", "nor so")
