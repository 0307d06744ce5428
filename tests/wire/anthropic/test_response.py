"""Answers of the Messages API: a stream makes the message of a whole answer, whatever the core sends in which order."""

import itertools
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.errors import RequestError
from callwright.events import (
    AnnotationsDelta,
    AnswerMetadata,
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    ContentDelta,
    Event,
    Finished,
    FinishReason,
    Markup,
    Problem,
    ReasoningDelta,
    RefusalDelta,
    Usage,
)
from callwright.openai_format.tool_names import ToolNames
from callwright.wire.anthropic.request import Thinking
from callwright.wire.anthropic.response import MessageWriter
from callwright.wire.sealed import unsealed
from callwright.wire.server_events import McpEnded, McpStarted, ToolsSearched
from tests.support.examples import examples
from tests.support.messages_client import assembled

TEXTS = st.sampled_from(["Hello", " ", "\n", "", "é🙂", "</block>", "</", "block>", "a b"])
ASIDE = st.one_of(
    st.builds(ContentDelta, TEXTS),
    st.builds(ReasoningDelta, TEXTS),
    st.builds(RefusalDelta, TEXTS),
    st.just(Markup("<x>")),
    st.just(Problem("markup_repaired", "x")),
    st.just(AnswerMetadata("f", None)),
    st.just(AnnotationsDelta(({"type": "url_citation"},))),
)
VALUES = st.sampled_from(['{"city": "Paris"}', "{}", '{"a": [1, {"b": null}], "é": "🙂"}'])
REASONS: tuple[FinishReason, ...] = ("stop", "tool_calls", "length", "content_filter")


@st.composite
def turns(draw: st.DrawFn) -> list[Any]:
    """Events as the core sends them: calls one behind the other, with anything else between their parts."""
    events: list[Any] = draw(st.lists(ASIDE, max_size=4))
    complete = True
    for index in range(draw(st.integers(0, 3))):
        kind = draw(st.sampled_from(["call", "call", "mcp", "search"]))
        if kind == "search":
            events.append(ToolsSearched("tea", ("get_weather",), ()))
            continue
        text = draw(VALUES)
        at = draw(st.integers(0, len(text)))
        complete = kind == "mcp" or draw(st.sampled_from([True, True, False]))
        begin: Any = CallStarted(index, "get_weather") if kind == "call" else McpStarted(index, "m", "get_weather")
        pieces = [ArgumentsDelta(index, text[:at]), ArgumentsDelta(index, text[at:])] if complete else []
        inner = draw(st.lists(ASIDE, max_size=2))
        events += [begin, *pieces[:1], *inner, *pieces[1:], CallEnded(index, complete)]
        if kind == "mcp":
            events.append(draw(st.sampled_from([McpEnded("sunny"), McpEnded(None, {"message": "no"})])))
        events += draw(st.lists(ASIDE, max_size=2))
        if not complete:
            break
    reason: FinishReason = "length" if not complete else draw(st.sampled_from(REASONS))
    return [*events, Finished(reason)]


def written(
    events: list[Any], thinking: Thinking = "shown", stops: tuple[str, ...] = (), usage: Usage | None = None
) -> tuple[MessageWriter, list[tuple[str, Any]]]:
    """The writer at the end, and the events of the stream with their names."""
    numbers = itertools.count()
    writer = MessageWriter(
        id_="msg_1",
        model="m",
        names=ToolNames(),
        new_id=lambda prefix: f"{prefix}_{next(numbers)}",
        input_tokens=9,
        thinking=thinking,
        stop_sequences=stops,
    )
    out = [writer.begin()]
    for event in events:
        writer.write(event)
        out += writer.take()
        if writer.hit is not None:
            break
    out += writer.finish(usage)
    found: list[tuple[str, Any]] = []
    for each in out:
        name, data = each.decode().removesuffix("\n\n").split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return writer, found


@given(turns(), st.sampled_from(["shown", "sealed", "none"]), st.sampled_from([(), ("</block>",), ("lo", "\n")]))
@examples(400)
def test_a_stream_makes_the_message_of_a_whole_answer(events: list[Any], thinking: Thinking, stops: Any) -> None:
    writer, stream = written(events, thinking, stops)
    whole = json.loads(msgspec.json.encode(writer.message))
    made = assembled(stream)
    made["content"] = [block for block in made["content"] if not isinstance(block.get("input"), str)]
    if not any(isinstance(event, CallEnded) and not event.complete for event in events):
        assert made == whole
    blocks = whole["content"]
    assert all(block["text"].strip() for block in blocks if block["type"] == "text")
    calls = [event for event in events if isinstance(event, CallEnded) and event.complete]
    if not stops:
        uses = [block for block in blocks if block["type"] in ("tool_use", "mcp_tool_use")]
        assert len(uses) == len(calls)
        said = "".join(event.text for event in events if isinstance(event, ContentDelta | RefusalDelta))
        texts = "".join(block["text"] for block in blocks if block["type"] == "text")
        assert "".join(texts.split()) == "".join(said.split())
    if thinking == "none":
        assert not [block for block in blocks if block["type"] == "thinking"]
    for block in blocks:
        if block["type"] == "thinking":
            packed = unsealed(block["signature"])
            assert packed == (block["thinking"] if thinking == "shown" else packed)
            assert packed
            assert thinking == "shown" or not block["thinking"]


@pytest.mark.parametrize(
    ("reason", "told"),
    [("stop", "end_turn"), ("tool_calls", "tool_use"), ("length", "max_tokens"), ("content_filter", "refusal")],
)
def test_why_it_ended_is_told(reason: FinishReason, told: str) -> None:
    writer, stream = written([ContentDelta("Hi"), Finished(reason)], usage=Usage(11, 7, 4, 2))
    assert writer.message.stop_reason == told
    assert (writer.message.stop_details is not None) == (told == "refusal")
    usage = stream[-2][1]["usage"]
    assert (usage["input_tokens"], usage["cache_read_input_tokens"], usage["output_tokens"]) == (7, 4, 7)
    assert usage["output_tokens_details"] == {"thinking_tokens": 2}


def test_an_error_is_an_event_of_its_own() -> None:
    event = MessageWriter.fail(RequestError("no", status=429), "req_1")
    assert event.startswith(b'event: error\ndata: {"type":"error","error":{"type":"rate_limit_error"')


def test_text_that_came_while_a_call_was_written_follows_it() -> None:
    events: list[Event] = [
        CallStarted(0, "a"),
        ArgumentsDelta(0, "{"),
        ContentDelta("One moment."),
        ArgumentsDelta(0, "}"),
        CallEnded(0),
        Finished("tool_calls"),
    ]
    writer, _ = written(events)
    assert [type(block).__name__ for block in writer.message.content] == ["ToolUseBlock", "TextBlock"]
