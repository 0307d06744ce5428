"""A turn as a generator, done without a server, a clock or an event loop."""

import asyncio
from collections.abc import Iterable
from typing import Any, Final

import pytest

from callwright import ArgumentsDelta, CallStarted, ContentDelta, Event, Finished
from callwright.conversation import Conversation, FunctionTool, Message, TextPart
from callwright.errors import RequestError, UpstreamError
from callwright.events import Usage
from callwright.turn.ask_ambiguous import AmbiguousReply
from callwright.turn.fallback import Rounds
from callwright.turn.loop import Ask, Beside, ChooseMode, Emit, Fit, Question, Step, TurnLoop
from callwright.turn.model import Model
from callwright.turn.observe import Observation
from callwright.turn.run import run_turn
from callwright.upstreams.base import Delta, FinishDelta, TextDelta
from callwright.upstreams.simulated.scripted import ScriptedUpstream

SCHEMA: Final = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ASKED: Final = Conversation(
    items=(Message("user", (TextPart("Is it warm in Bonn?"),)),), tools=(FunctionTool("weather", parameters=SCHEMA),)
)
HELD: Final = Conversation(items=ASKED.items, tools=(FunctionTool("weather", parameters=SCHEMA, retry_invalid=True),))
CALL: Final = '<tool_call>\n{"name": "weather", "arguments": {"city": "Bonn"}}\n</tool_call>'
BAD: Final = CALL.replace("city", "town")
END: Final[list[Delta]] = [FinishDelta("stop"), Usage(prompt_tokens=3, completion_tokens=2)]
BROKEN: Final = UpstreamError("It is gone.", fault="cut", upstream="m")

TOO_LONG: Final = RequestError("It is too long.", code="context_length_exceeded")


class Done:
    """A turn that is done with these answers: its steps, in order, the conversations, and the events."""

    def __init__(
        self,
        *answers: Any,
        asked: Conversation = ASKED,
        seconds: Iterable[float] = (),
        fit: Fit | None = None,
        **how: Any,
    ) -> None:
        model = Model("m", ScriptedUpstream(()), "m", mode="raw", dialect="hermes", **how)
        clock = iter(seconds)
        self.steps: list[type[Step]] = []
        self.events: list[Event | Usage] = []
        self.asked: list[Conversation] = []
        loop = TurnLoop(
            model,
            asked,
            {},
            today="2026-11-01",
            streamed=True,
            seen=None,
            told=None,
            fit=fit,
            rounds=Rounds(),
            now=lambda: next(clock, 0.0),
        )
        left = list(answers)
        steps = loop.steps()
        step = next(steps)
        while step is not None:
            self.steps.append(type(step))
            result: Any = None
            if isinstance(step, Emit):
                self.events += step.events
            elif isinstance(step, Ask):
                self.asked.append(step.reader.generation.conversation)
                answer = left.pop(0)
                for deltas in answer:
                    if isinstance(deltas, UpstreamError | RequestError):
                        step = steps.throw(deltas)
                        break
                    self.events += loop.push(step.reader.read(deltas), step.reader)
                else:
                    step = steps.send(None)
                continue
            elif isinstance(step, Beside):
                result = step.work()
            else:
                result = left.pop(0)
            step = steps.send(result)


def said(*texts: str) -> list[list[Delta]]:
    pieces: list[list[Delta]] = [[TextDelta(text)] for text in texts]
    return [*pieces, END]


def calls(done: Done) -> list[str]:
    return [event.text for event in done.events if isinstance(event, ArgumentsDelta)]


def test_an_answer_goes_out_while_it_comes_and_the_tokens_last() -> None:
    done = Done(said("It is ", "warm."))
    assert "".join(event.text for event in done.events if isinstance(event, ContentDelta)) == "It is warm."
    assert isinstance(done.events[-2], Finished)
    assert done.events[-1] == Usage(prompt_tokens=3, completion_tokens=2)
    assert done.steps == [Ask, Emit, Emit]


def test_a_call_that_does_not_hold_is_asked_for_again_behind_what_was_wrong() -> None:
    done = Done(said(BAD), said(CALL), asked=HELD)
    assert done.steps == [Ask, Ask, Emit]
    assert done.asked[1].items[: len(ASKED.items)] == ASKED.items
    assert len(done.asked[1].items) > len(ASKED.items)
    assert '"Bonn"' in "".join(calls(done))
    assert done.events[-1] == Usage(prompt_tokens=6, completion_tokens=4)


def test_no_attempt_begins_after_the_time_for_retries() -> None:
    done = Done(said(BAD), said(CALL), asked=HELD, seconds=(0.0, 100.0))
    assert done.steps == [Ask, Emit]
    assert "town" in "".join(calls(done))


def test_a_failure_is_raised_when_what_was_held_has_gone_out() -> None:
    with pytest.raises(UpstreamError, match="It is gone") as failed:
        Done([[TextDelta("It is <tool")], BROKEN])
    assert failed.value is BROKEN


def test_a_failure_of_a_retry_falls_back_on_what_was_answered_before() -> None:
    done = Done(said(BAD), [BROKEN], asked=HELD)
    assert done.steps == [Ask, Ask, Emit]
    assert [event.name for event in done.events if isinstance(event, CallStarted)] == ["weather"]


def test_another_mode_is_asked_in_where_the_first_one_is_to_blame() -> None:
    selector: Any = object()
    native = Model("m", ScriptedUpstream(()), "m", mode_selector=selector)
    raw = Model("m", ScriptedUpstream(()), "m", mode="raw", dialect="hermes", mode_selector=selector)
    done = Done(native, [BROKEN], raw, said(CALL), mode_selector=selector)
    assert done.steps[:4] == [ChooseMode, Ask, ChooseMode, Ask]
    assert "".join(calls(done)) == '{"city": "Bonn"}'


def test_a_request_that_is_too_long_is_made_shorter_as_long_as_that_can_be_done() -> None:
    lengths: list[int] = []

    def fit(error: RequestError, asked: Conversation, fields: Any, begun: bool) -> Any:
        assert error is TOO_LONG
        lengths.append(len(asked.items))
        shorter = Conversation(items=asked.items[1:], tools=asked.tools)
        return None if begun or len(asked.items) == 1 else (shorter, fields)

    asked = Conversation(items=ASKED.items * 3, tools=ASKED.tools)
    done = Done([TOO_LONG], [TOO_LONG], said(CALL), asked=asked, fit=fit)
    assert [len(one.items) for one in done.asked] == [3, 2, 1]
    assert "".join(calls(done)) == '{"city": "Bonn"}'
    with pytest.raises(RequestError, match="It is too long"):
        Done([TOO_LONG], asked=ASKED, fit=fit)
    with pytest.raises(RequestError, match="It is too long"):
        Done([[TextDelta("It is warm.")], TOO_LONG], asked=asked, fit=fit)
    assert lengths == [3, 2, 1, 3]


@pytest.mark.parametrize("outcome", ["run", "shown", "failed"])
def test_what_may_be_a_call_is_one_if_the_model_says_so(outcome: Any) -> None:
    shown = 'For example: {"name": "weather", "arguments": {"city": "Bonn"}}'
    done = Done(said(shown), AmbiguousReply(outcome, Usage(1, 1)))
    assert Question in done.steps
    assert bool(calls(done)) == (outcome == "run")
    assert done.events[-1] == Usage(prompt_tokens=4, completion_tokens=3)


def test_a_request_that_is_made_shorter_is_one_turn_for_observers() -> None:
    seen: list[Observation] = []
    model = Model("m", ScriptedUpstream([[TOO_LONG], "It is warm."]), "m", observers=(seen.append,))
    asked = Conversation(items=ASKED.items * 2)

    async def turn() -> list[Event | Usage]:
        fitted = run_turn(
            model, asked, {}, today="2026-11-01", fit=lambda _error, _asked, fields, _begun: (ASKED, fields)
        )
        return [event async for batch in fitted for event in batch]

    assert ContentDelta("It is warm.") in asyncio.run(turn())
    (only,) = seen
    assert [one.failure is not None for one in only.asked] == [True, False]
    assert [len(one.generation.conversation.items) for one in only.asked] == [2, 1]
    assert (only.conversation, only.reason, only.error) == (asked, "stop", None)
