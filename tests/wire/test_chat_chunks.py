"""Chunks are written from templates: each is what its type would encode to, in every byte."""

import itertools

import pytest

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
    ReasoningDelta,
    RefusalDelta,
    Usage,
)
from callwright.tolerant_json.codec import decode, encode
from callwright.wire.chat.response import ChatChunks
from callwright.wire.chat.types import ChatCompletionChunk

LOGPROBS = {"content": [{"token": "Hi", "logprob": -0.1, "bytes": [72, 105], "top_logprobs": []}], "refusal": None}
# Texts that look like a place in a template.
ODD = ("%b", '"\0"', "{}", "é\\u00e9")


def events(reason: FinishReason) -> list[Event]:
    """Events of every kind that a chunk is written for."""
    made: list[Event] = []
    for odd in ODD:
        made += (ReasoningDelta(odd), ContentDelta(odd), ContentDelta(odd, LOGPROBS))
        made += (RefusalDelta(odd), RefusalDelta(odd, LOGPROBS), AnnotationsDelta(({"type": odd},)))
        made.append(AnswerMetadata(odd, odd))
    for call in (CallStarted(0, "f%b"), CallStarted(1, "note", kind="custom", id="call_%b")):
        made += (call, *(ArgumentsDelta(call.index, odd) for odd in ODD), CallEnded(call.index))
    return [*made, Finished(reason)]


@pytest.mark.parametrize("include_usage", [False, True])
@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("reason", ["stop", "tool_calls", "length"])
def test_a_chunk_is_what_its_type_encodes_to(include_usage: bool, legacy: bool, reason: FinishReason) -> None:
    numbers = itertools.count()
    chunks = ChatChunks(
        id_="chatcmpl-1",
        created=7,
        model='m%b"\0é',
        call_id=lambda: f"call_{next(numbers)}",
        include_usage=include_usage,
        legacy=legacy,
    )
    stream = b"".join(map(chunks.event, events(reason))) + chunks.heartbeat() + chunks.usage(Usage(10, 5, 3, 2))
    written = stream.split(b"\n\n")
    assert written.pop() == b""
    assert len(written) > len(ODD)
    for one in written:
        text = one.removeprefix(b"data: ")
        assert encode(decode(text, ChatCompletionChunk)) == text


def test_what_is_said_of_the_answer_stands_in_all_chunks_behind_it() -> None:
    chunks = ChatChunks(id_="chatcmpl-1", created=7, model="m", call_id=lambda: "call_1")
    given: list[Event] = [
        CallStarted(0, "f"),
        ArgumentsDelta(0, "{"),
        AnswerMetadata("fp_1"),
        ArgumentsDelta(0, '"a":'),
        AnswerMetadata(service_tier="flex"),
        ArgumentsDelta(0, "1}"),
        Finished("tool_calls"),
    ]
    written = b"".join(map(chunks.event, given)).split(b"\n\n")[:-1]
    read = [decode(one.removeprefix(b"data: ")) for one in written]
    assert [one.get("system_fingerprint") for one in read] == [None] * 3 + ["fp_1"] * 3
    assert [one.get("service_tier") for one in read] == [None] * 4 + ["flex"] * 2
