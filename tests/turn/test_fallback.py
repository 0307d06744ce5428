"""Another model answers if one fails: the answer is right or an honest error, and no part of it is sent twice."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import msgspec
import pytest

from callwright import CallStarted, ContentDelta, Event, Finished, ReasoningDelta
from callwright.conversation import Conversation, FunctionTool, MediaPart, Message, ResponseFormat, TextPart
from callwright.errors import RefusedByServerError, RequestError, UpstreamError
from callwright.events import Problem, Usage
from callwright.reading.collect import collect
from callwright.turn.model import Model
from callwright.turn.observe import Observation
from callwright.turn.run import run_turn
from callwright.upstreams.base import Delta, FinishDelta, ReasoningTextDelta, TextDelta, ToolCallDelta
from callwright.upstreams.simulated.scripted import ScriptedUpstream
from callwright.wire.pass_rules import PassRules

SCHEMA: Final = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ASKED: Final = (Message("user", (TextPart("Is it warm in Bonn?"),)),)
AUTO: Final = Conversation(items=ASKED, tools=(FunctionTool("weather", parameters=SCHEMA),))
STRICT: Final = Conversation(items=ASKED, tools=(FunctionTool("weather", parameters=SCHEMA, strict=True),))
REQUIRED: Final = msgspec.structs.replace(AUTO, tool_choice="required")
TEXT: Final = Conversation(items=ASKED)
FORM: Final = Conversation(
    items=ASKED, response_format=ResponseFormat("json_schema", "place", None, SCHEMA, strict=True)
)
GOOD: Final = '{"city": "Bonn"}'
END: Final = (FinishDelta("stop"), Usage(prompt_tokens=3, completion_tokens=2))
Answer = Sequence[Delta | Exception]


def failed(fault: Any, status: int | None = None) -> UpstreamError:
    return UpstreamError("It is gone.", fault=fault, upstream="first", status=status)


FAULTS: Final[dict[str, Exception]] = {
    "unreachable": failed("unreachable"),
    "timeout": failed("timeout"),
    "protocol": failed("protocol"),
    "cut": failed("cut"),
    "status": failed("status", 500),
    "rate_limit_exceeded": failed("status", 429),
    "context_length_exceeded": RequestError("It is too long.", code="context_length_exceeded"),
    "model_not_found": RequestError("There is none.", code="model_not_found", status=404),
}
MODES: Final[dict[str, dict[str, Any]]] = {
    "native": {},
    "prompt": {"mode": "prompt", "dialect": "json"},
    "raw": {"mode": "raw", "dialect": "hermes"},
}


def calls(mode: str, arguments: str = GOOD) -> Answer:
    """A call as the server of a mode writes it."""
    if mode == "native":
        return (ToolCallDelta(0, "call_up", "weather", arguments), *END)
    text = f'{{"name": "weather", "arguments": {arguments}}}'
    return (TextDelta(f"<tool_call>\n{text}\n</tool_call>" if mode == "raw" else text), *END)


def a_model(name: str, mode: str, *answers: Answer, **how: Any) -> Model:
    return Model(name, ScriptedUpstream(answers), f"{name}-served", **MODES[mode], **{"retries": 0, **how})


class Turn:
    """A turn of these models, the first of which is asked: its events, its observation, and its error."""

    def __init__(self, first: Model, *others: Model, asked: Conversation = AUTO, streamed: bool = False) -> None:
        self.events: list[Event] = []
        self.usage: Usage | None = None
        self.error: Exception | None = None
        seen: list[Observation] = []
        model = msgspec.structs.replace(first, fallbacks=others, observers=(seen.append,))

        async def run() -> None:
            try:
                async for batch in run_turn(model, asked, {}, today="2026-11-01", streamed=streamed):
                    for event in batch:
                        if isinstance(event, Usage):
                            self.usage = event
                        else:
                            self.events.append(event)
            except (RequestError, UpstreamError) as error:
                self.error = error

        asyncio.run(run())
        (self.seen,) = seen

    @property
    def calls(self) -> list[tuple[str, str]]:
        return [(call.name, call.arguments) for call in collect(self.events).calls]

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, ContentDelta))

    @property
    def replaced(self) -> list[str]:
        return [e.detail for e in self.events if isinstance(e, Problem) and e.kind == "model_replaced"]


def asks_of(model: Model) -> int:
    assert isinstance(model.upstream, ScriptedUpstream)
    return len(model.upstream.asked)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("to", MODES)
@pytest.mark.parametrize("fault", FAULTS)
def test_the_next_model_answers_what_a_server_fails(fault: str, mode: str, to: str, streamed: bool) -> None:
    turn = Turn(a_model("small", mode, [FAULTS[fault]]), a_model("big", to, calls(to)), streamed=streamed)
    assert turn.error is None
    assert turn.calls == [("weather", GOOD)]
    assert turn.replaced == [f"'big' answers in place of 'small': {fault}"]
    assert turn.usage == END[1]
    assert isinstance(turn.events[-1], Finished)
    assert turn.seen.fallback is not None
    assert (turn.seen.fallback.model, turn.seen.fallback.reason) == ("big", fault)
    assert [one.fallback is not None for one in turn.seen.asked] == [False, True]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("to", MODES)
@pytest.mark.parametrize(("streamed", "asked"), [(False, AUTO), (False, STRICT), (True, STRICT), (True, REQUIRED)])
def test_the_next_model_makes_the_call_that_does_not_hold(
    streamed: bool, asked: Conversation, mode: str, to: str
) -> None:
    small = a_model("small", mode, calls(mode, '{"town": "Bonn"}'), calls(mode, '{"x": "Bonn"}'), retries=1)
    big = a_model("big", to, calls(to))
    turn = Turn(small, big, asked=asked, streamed=streamed)
    assert (turn.error, turn.calls) == (None, [("weather", GOOD)])
    (replaced,) = turn.replaced
    assert replaced.startswith("'big' answers in place of 'small': ")
    assert turn.usage == Usage(prompt_tokens=9, completion_tokens=6)
    assert isinstance(big.upstream, ScriptedUpstream)
    # it reads nothing of the other's mistakes, if nothing was sent that it must continue
    assert turn.text or big.upstream.asked[0].conversation.items == ASKED


def test_a_structured_answer_that_does_not_hold_is_given_by_the_next() -> None:
    for streamed in (False, True):
        small = a_model("small", "native", [TextDelta("It is in Bonn."), *END])
        turn = Turn(small, a_model("big", "native", [TextDelta(GOOD), *END]), asked=FORM, streamed=streamed)
        assert (turn.error, turn.text) == (None, GOOD)


@pytest.mark.parametrize("fault", [failed("stopped"), RefusedByServerError("That is no field."), RequestError("Bad.")])
def test_what_the_request_or_the_gateway_is_to_blame_for_is_not_asked_again(fault: Exception) -> None:
    big = a_model("big", "native", calls("native"))
    turn = Turn(a_model("small", "native", [fault]), big)
    assert (turn.error, asks_of(big), turn.seen.fallback) == (fault, 0, None)


def test_a_good_answer_asks_nobody_else() -> None:
    big = a_model("big", "native", calls("native"))
    turn = Turn(a_model("small", "native", calls("native")), big, streamed=True)
    assert (turn.calls, asks_of(big), turn.replaced) == ([("weather", GOOD)], 0, [])


def test_each_is_asked_once_in_order_and_the_first_error_is_the_answer() -> None:
    gone = [a_model(name, "native", [failed("unreachable")]) for name in ("b", "c")]
    first = failed("timeout")
    turn = Turn(a_model("a", "native", [first]), *gone)
    assert turn.error is first
    assert [asks_of(one) for one in gone] == [1, 1]
    assert [one.fallback and one.fallback.model for one in turn.seen.asked] == [None, "b", "c"]
    last = Turn(a_model("a", "native", [failed("cut")]), gone_like("b"), a_model("c", "raw", calls("raw")))
    assert (last.calls, last.replaced) == ([("weather", GOOD)], ["'c' answers in place of 'a': unreachable"])


def gone_like(name: str) -> Model:
    return a_model(name, "native", [failed("unreachable")])


def test_a_fallback_that_refuses_the_request_is_skipped() -> None:
    refuses = a_model("b", "native", [RefusedByServerError("no tools here")])
    turn = Turn(a_model("a", "native", [failed("cut")]), refuses, a_model("c", "native", calls("native")))
    assert turn.calls == [("weather", GOOD)]
    first = failed("cut")
    assert Turn(a_model("a", "native", [first]), refuses_all("b")).error is first


def refuses_all(name: str) -> Model:
    return a_model(name, "native", [RefusedByServerError("no tools here")])


def test_an_answer_that_does_not_hold_is_sent_if_no_other_is_there() -> None:
    bad = '{"town": "Bonn"}'
    turn = Turn(a_model("small", "native", calls("native", bad)), gone_like("big"))
    assert (turn.error, turn.calls, turn.replaced, turn.seen.fallback) == (None, [("weather", bad)], [], None)
    strict = Turn(a_model("small", "native", calls("native", bad)), gone_like("big"), asked=STRICT)
    assert isinstance(strict.error, UpstreamError)
    assert strict.error.fault == "unmet"


def test_a_retry_that_fails_is_followed_by_the_next_model() -> None:
    small = a_model("small", "native", calls("native", '{"town": 1}'), [failed("cut")], retries=1)
    turn = Turn(small, a_model("big", "native", calls("native")))
    assert (turn.calls, len(turn.seen.asked)) == ([("weather", GOOD)], 3)


@pytest.mark.parametrize("fault", ["cut", "timeout"])
def test_text_that_was_sent_is_never_taken_back_nor_continued_by_another(fault: str) -> None:
    big = a_model("big", "native", [TextDelta("It is cold."), *END])
    small = a_model("small", "native", [TextDelta("It is w"), FAULTS[fault]])
    turn = Turn(small, big, asked=TEXT, streamed=True)
    assert (turn.text, turn.error, asks_of(big)) == ("It is w", FAULTS[fault], 0)


def test_arguments_that_were_sent_are_never_taken_back() -> None:
    big = a_model("big", "native", calls("native"))
    bad = a_model("small", "native", calls("native", '{"town": "Bonn"}'))
    turn = Turn(bad, big, streamed=True)
    assert (turn.calls, asks_of(big)) == ([("weather", '{"town": "Bonn"}')], 0)
    cut = a_model("small", "native", [ToolCallDelta(0, "call_up", "weather", '{"ci'), failed("cut")])
    turn = Turn(cut, big, streamed=True)
    assert isinstance(turn.error, UpstreamError)
    assert asks_of(big) == 0


SAID: Final = TextDelta("I look it up. ")
HALF: Final = ToolCallDelta(0, "call_up", "weather", '{"city": "Bo')
WRONG: Final = ToolCallDelta(0, "call_up", "weather", '{"town": "Bonn"}')


@pytest.mark.parametrize("broken", [(SAID, WRONG, *END), (SAID, HALF, failed("cut")), (SAID, HALF, failed("timeout"))])
@pytest.mark.parametrize("to", MODES)
def test_a_held_call_that_fails_is_made_by_the_next_after_the_text_that_was_sent(broken: Answer, to: str) -> None:
    again = "Let me see. "
    answer: Answer = (TextDelta(again), *calls(to)) if to != "prompt" else calls(to)
    big = a_model("big", to, answer)
    turn = Turn(a_model("small", "native", broken), big, asked=STRICT, streamed=True)
    assert (turn.error, turn.calls) == (None, [("weather", GOOD)])
    assert turn.text.strip() == SAID.text.strip()  # the text of the other before its call is not sent
    assert sum(isinstance(event, CallStarted) for event in turn.events) == 1
    assert isinstance(big.upstream, ScriptedUpstream)
    items = big.upstream.asked[0].conversation.items
    assert any(isinstance(item, Message) and SAID.text.strip() in item.text for item in items)


def test_a_held_call_that_fails_everywhere_is_an_error_and_no_half_call() -> None:
    turn = Turn(a_model("small", "native", (SAID, HALF, failed("cut"))), gone_like("big"), asked=STRICT, streamed=True)
    assert isinstance(turn.error, UpstreamError)
    assert (turn.calls, turn.text.strip()) == ([], SAID.text.strip())


def test_reasoning_that_was_sent_is_not_sent_again() -> None:
    thinks: Answer = (ReasoningTextDelta("Hm. "), WRONG, *END)
    turn = Turn(
        a_model("small", "native", thinks),
        a_model("big", "native", (ReasoningTextDelta("Well. "), *calls("native"))),
        asked=REQUIRED,
        streamed=True,
    )
    assert turn.calls == [("weather", GOOD)]
    assert [event.text for event in turn.events if isinstance(event, ReasoningDelta)] == ["Hm. "]


def test_a_server_gets_no_media_that_its_model_may_not_have() -> None:
    asked = Conversation(
        items=(Message("user", (MediaPart({"type": "image_url", "image_url": {"url": "http://10.0.0.1/a.png"}}),)),)
    )
    closed = a_model("b", "native", [TextDelta("A cat."), *END], passes=PassRules(media_urls=frozenset({"https"})))
    turn = Turn(gone_like("a"), closed, a_model("c", "native", [TextDelta("A dog."), *END]), asked=asked)
    assert (turn.text, asks_of(closed)) == ("A dog.", 0)
