"""Answers of Chat Completions: https://developers.openai.com/api/reference/resources/chat."""

from typing import Any, Final

from callwright.conform.answer import COUNT, DONE, NAME, OBJECTS, TEXT, TIME, Answer, Body, Event, form, or_null
from callwright.eval.wires import object_of, objects, text_of

_FINISH: Final = {"enum": ["stop", "length", "tool_calls", "content_filter", "function_call"]}
_COUNTS: Final = ("prompt_tokens", "completion_tokens")
_DETAILS: Final = ("prompt_tokens_details", "completion_tokens_details")
_ROLE: Final = {"const": "assistant"}
# Null is no finding: libraries write it for a missing value. `function_call` is the deprecated answer to `functions`,
# which no request has.
_FIELDS: Final = {
    "content": or_null(TEXT),
    "tool_calls": or_null(OBJECTS),
    "refusal": or_null(TEXT),
    "function_call": {"type": "null"},
}
_MESSAGE: Final = form({"role": _ROLE, "content": or_null(TEXT)}, _FIELDS)
_DELTA: Final = form({}, {"role": or_null(_ROLE), **_FIELDS})
_CALL: Final = form(
    {"id": NAME, "type": {"enum": ["function", "custom"]}},
    {"function": form({"name": NAME, "arguments": TEXT}), "custom": form({"name": NAME, "input": TEXT})},
)
_PIECE: Final = form({"index": COUNT}, {"id": or_null(TEXT), "function": {"properties": {"arguments": or_null(TEXT)}}})


def _schema(kind: str, least: int, **choice: Body) -> Body:
    """The schema of an answer or a chunk with `least` choices or more; several would be an answer to `n`."""
    one = form({"index": {"const": 0}, **choice})
    choices = {"type": "array", "minItems": least, "maxItems": 1, "items": one}
    created = {**TIME, "type": "integer"}
    return form({"object": {"const": kind}, "id": NAME, "created": created, "model": NAME, "choices": choices})


_WHOLE: Final = _schema("chat.completion", 1, message=_MESSAGE, finish_reason=_FINISH)
_CHUNK: Final = _schema("chat.completion.chunk", 0, delta=_DELTA, finish_reason=or_null(_FINISH))


def read_whole(answer: Answer, body: Body) -> None:
    """Read a `chat.completion`."""
    answer.is_readable = bool(objects(body.get("choices")))
    answer.check(_WHOLE, body)
    choice = next(iter(objects(body.get("choices"))), {})
    answer.expect("logprobs" in choice, "logprobs", "the key logprobs in a choice", [*choice])
    message = object_of(choice.get("message"))
    answer.expect("refusal" in message, "refusal", "the key refusal in the message", [*message])
    answer.text = text_of(message.get("content"))
    _read_besides(answer, message)
    for call in objects(message.get("tool_calls")):
        _take_call(answer, call)
    answer.take_counts(body.get("usage"), _COUNTS, _DETAILS)
    answer.finish = text_of(choice.get("finish_reason"))


def read_stream(answer: Answer, events: list[Event]) -> None:
    """Read `chat.completion.chunk`s."""
    ends = [number for number, event in enumerate(events) if event.data == DONE]
    answer.expect(
        ends == [len(events) - 1], "end", "one [DONE], as the last event", [event.data for event in events[-2:]]
    )
    chunks = [event.value for event in events if event.data != DONE]
    answer.error = next((chunk["error"] for chunk in chunks if chunk.get("error")), None)
    chunks = [chunk for chunk in chunks if "error" not in chunk]
    if not answer.expect(bool(chunks), "start", "a chunk", "none"):
        return
    for name in ("id", "created", "model"):
        values = {str(chunk.get(name)) for chunk in chunks}
        answer.expect(len(values) == 1, "ids", f"the same {name} in each chunk", sorted(values))
    choices = [choice for chunk in chunks for choice in objects(chunk.get("choices"))]
    answer.is_readable = bool(choices)
    deltas = [object_of(choice.get("delta")) for choice in choices]
    first = deltas[0] if deltas else {}
    answer.expect(first.get("role") == "assistant", "start", "the role in the first delta", first)
    for chunk in chunks:
        answer.check(_CHUNK, chunk)
    _stream_finish(answer, choices)
    answer.text = "".join(text_of(delta.get("content")) for delta in deltas)
    for delta in deltas:
        _read_besides(answer, delta)
    _take_pieces(answer, [piece for delta in deltas for piece in objects(delta.get("tool_calls"))])
    _stream_usage(answer, chunks)


def _take_pieces(answer: Answer, pieces: list[Body]) -> None:
    """Add the calls of a stream."""
    calls: list[Body] = []
    for piece in pieces:
        _take_piece(answer, piece, calls)
    for call in calls:
        _take_call(answer, call)


def _take_piece(answer: Answer, piece: Body, calls: list[Body]) -> None:
    """Add a piece of a call to the calls so far."""
    answer.check(_PIECE, piece, "$.choices[0].delta.tool_calls[…]")
    index: Any = piece.get("index")
    if not answer.expect(type(index) is int, "items", "an index in each piece of a call", piece):
        index = len(calls) if piece.get("id") else max(0, len(calls) - 1)
    # Pieces of several calls may alternate: the index tells them apart.
    call = calls[index] if 0 <= index < len(calls) else None
    is_custom = call["type"] == "custom" if call else "custom" in piece or piece.get("type") == "custom"
    kind, field = ("custom", "input") if is_custom else ("function", "arguments")
    inner = object_of(piece.get(kind))
    if call:
        answer.expect(not piece.get("id") or piece["id"] == call["id"], "items", "one id for each call", piece)
        answer.expect(not inner.get("name"), "items", "the name in the first piece only", piece)
        call[kind][field] += text_of(inner.get(field))
        return
    answer.expect(index == len(calls), "items", f"index {len(calls)} for the next call", index)
    begun = bool(piece.get("id") and piece.get("type") and inner.get("name"))
    answer.expect(begun, "items", "id, type and name in the first piece of a call", piece)
    calls.append(
        {"id": piece.get("id"), "type": kind, kind: {"name": inner.get("name"), field: text_of(inner.get(field))}}
    )


def _stream_finish(answer: Answer, choices: list[Body]) -> None:
    ended = [number for number, choice in enumerate(choices) if choice.get("finish_reason")]
    answer.finish = text_of(choices[ended[0]]["finish_reason"]) if ended else ""
    if answer.error is not None:
        return
    answer.expect(len(ended) == 1, "end", "one finish_reason", [choices[number]["finish_reason"] for number in ended])
    later = [choice for choice in (choices[ended[0] + 1 :] if ended else []) if choice.get("delta")]
    answer.expect(not later, "end", "no delta after the finish_reason", later)


def _stream_usage(answer: Answer, chunks: list[Body]) -> None:
    """With `include_usage`, the counts are in a last chunk without choices, and nowhere else."""
    counted = [chunk for chunk in chunks if chunk.get("usage")]
    if not (answer.sent.get("stream_options") or {}).get("include_usage"):
        answer.expect(not counted, "usage", "no usage unless it is requested", counted)
        return
    if answer.error is not None and not counted:
        return
    last = chunks[-1]
    fits = counted == [last] and last.get("choices") == []
    answer.expect(fits, "usage", "usage in one last chunk without choices", counted or last)
    answer.take_counts(counted[-1]["usage"] if counted else None, _COUNTS, _DETAILS)


def _read_besides(answer: Answer, message: Body) -> None:
    answer.reasoning += text_of(message.get("reasoning_content") or message.get("reasoning"))
    answer.refusal += text_of(message.get("refusal"))


def _take_call(answer: Answer, call: Body) -> None:
    answer.check(_CALL, call, "$.choices[0].message.tool_calls[…]")
    if call.get("type") == "custom" and isinstance(made := call.get("custom"), dict):
        answer.take_call(call.get("id"), made.get("name"), made.get("input"), "custom")
        return
    made = object_of(call.get("function"))
    if answer.expect(bool(made), "fields", "an object in function", call):
        answer.take_call(call.get("id"), made.get("name"), made.get("arguments"))
