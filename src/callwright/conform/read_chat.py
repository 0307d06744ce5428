"""Answers of Chat Completions: https://developers.openai.com/api/reference/resources/chat."""

from typing import Any, Final

from callwright.conform.answer import DONE, Answer, Body, Event
from callwright.eval.wires import object_of, objects, text_of

_FINISHES: Final = ("stop", "length", "tool_calls", "content_filter", "function_call")
_COUNTS: Final = ("prompt_tokens", "completion_tokens")


def read_whole(answer: Answer, body: Body) -> None:
    """Read a `chat.completion`."""
    _head(answer, body, "chat.completion")
    choices = objects(body.get("choices"))
    answer.expect(len(choices) == 1 and choices[0].get("index") == 0, "fields", "one choice of index 0", choices)
    choice = choices[0] if choices else {}
    message = object_of(choice.get("message"))
    if answer.expect(bool(message), "fields", "an object in message", choice):
        answer.expect(message.get("role") == "assistant", "fields", "role assistant", message.get("role"))
        content = message.get("content", 0)
        answer.expect(content is None or isinstance(content, str), "fields", "content: a text or null", message)
        answer.text = text_of(content)
        _read_besides(answer, message)
        for call in objects(message.get("tool_calls")):
            _take_call(answer, call)
    answer.take_counts(body.get("usage"), _COUNTS, "total_tokens")
    _finish(answer, choice.get("finish_reason"))


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
    deltas = [object_of(choice.get("delta")) for choice in choices]
    first = deltas[0] if deltas else {}
    answer.expect(first.get("role") == "assistant", "start", "the role in the first delta", first)
    for chunk in chunks:
        _head(answer, chunk, "chat.completion.chunk")
        answer.expect(isinstance(chunk.get("choices"), list), "fields", "a list of choices", chunk)
    _stream_finish(answer, choices)
    _stream_usage(answer, chunks)
    answer.text = "".join(text_of(delta.get("content")) for delta in deltas)
    for delta in deltas:
        _read_besides(answer, delta)
    calls: list[Body] = []
    for piece in (piece for delta in deltas for piece in objects(delta.get("tool_calls"))):
        _take_piece(answer, piece, calls)
    for call in calls:
        _take_call(answer, call)
    _finish(answer, answer.finish)


def _take_piece(answer: Answer, piece: Body, calls: list[Body]) -> None:
    """Add a piece of a call to the calls so far."""
    index: Any = piece.get("index")
    kind = piece.get("type") or ("custom" if "custom" in piece else "function")
    if not answer.expect(type(index) is int, "items", "an index in each piece of a call", piece):
        index = len(calls) if piece.get("id") else max(0, len(calls) - 1)
    inner = object_of(piece.get(kind))
    field = "input" if kind == "custom" else "arguments"
    if index < len(calls):
        call = calls[index]
        answer.expect(index == len(calls) - 1, "items", "one call after the other", piece)
        answer.expect(not piece.get("id") or piece["id"] == call["id"], "items", "one id for each call", piece)
        answer.expect(not inner.get("name"), "items", "the name in the first piece only", piece)
        call[call["type"]][field] += text_of(inner.get(field))
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
    answer.take_counts(counted[-1]["usage"] if counted else None, _COUNTS, "total_tokens")


def _head(answer: Answer, body: Body, kind: str) -> None:
    answer.expect(body.get("object") == kind, "fields", f'object "{kind}"', body.get("object"))
    for name, type_ in (("id", str), ("created", int), ("model", str)):
        answer.expect(type(body.get(name)) is type_, "fields", f"{name}: {type_.__name__}", body.get(name))


def _read_besides(answer: Answer, message: Body) -> None:
    answer.reasoning += text_of(message.get("reasoning_content") or message.get("reasoning"))
    answer.refusal += text_of(message.get("refusal"))


def _take_call(answer: Answer, call: Body) -> None:
    kind = call.get("type")
    if kind == "custom" and isinstance(made := call.get("custom"), dict):
        answer.take_call(call.get("id"), made.get("name"), made.get("input"), "custom")
        return
    made = object_of(call.get("function"))
    if answer.expect(kind == "function" and bool(made), "fields", "a call of type function", call):
        answer.expect(isinstance(made.get("arguments"), str), "arguments", "arguments: a text", made)
        answer.take_call(call.get("id"), made.get("name"), made.get("arguments"))


def _finish(answer: Answer, reason: Any) -> None:
    answer.finish = text_of(reason)
    if answer.error is None:
        answer.expect(reason in _FINISHES, "finish", f"one of {', '.join(_FINISHES)}", reason)
