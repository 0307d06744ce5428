"""Answers of the Messages API: https://platform.claude.com/docs/en/api/messages/create, and of its streams."""

from typing import Any, Final

from callwright.conform.answer import COUNT, DONE, NAME, OBJECTS, TEXT, Answer, Body, Event, form, or_null
from callwright.eval.wires import object_of, objects, text_of
from callwright.tolerant_json.codec import NotJsonError, decode, encode

_FINISHES: Final = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "stop",
    "refusal": "content_filter",
}
_DELTAS: Final = {
    "text_delta": ("text", "text"),
    "input_json_delta": ("tool_use", "partial_json"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
    "citations_delta": ("text", ""),
}
_COUNTS: Final = ("input_tokens", "output_tokens")
_HEAD: Final = form(
    {
        "type": {"const": "message"},
        "role": {"const": "assistant"},
        "id": NAME,
        "model": NAME,
        "content": OBJECTS,
        "stop_reason": or_null(TEXT),
        "stop_sequence": or_null(TEXT),
    },
    {
        "usage": {
            "type": "object",
            "properties": {f"cache_{what}_input_tokens": or_null(COUNT) for what in ("read", "creation")},
        }
    },
)
_BLOCKS: Final = {
    "text": form({"text": TEXT}),
    "thinking": form({"thinking": TEXT}),
    "tool_use": form({"id": NAME, "name": NAME, "input": {"type": "object"}}),
}


def read_whole(answer: Answer, body: Body) -> None:
    """Read a `message`."""
    answer.is_readable = isinstance(body.get("content"), list)
    answer.check(_HEAD, body)
    for block in objects(body.get("content")):
        _take_block(answer, block)
    answer.take_counts(body.get("usage"), _COUNTS)
    _finish(answer, body.get("stop_reason"), body)


def read_stream(answer: Answer, events: list[Event]) -> None:
    """Read the events of a message."""
    named = [event for event in events if event.data != DONE]
    answer.expect(len(named) == len(events), "framing", "no [DONE], which is not an event of this API", DONE)
    for event in named:
        answer.expect(event.name == event.value.get("type"), "framing", "event: named as its type", event.data)
    told = [event.value for event in named if event.value.get("type") != "ping"]
    kinds = [text_of(event.get("type")) for event in told]
    answer.error = next((event.get("error") for event in told if event.get("type") == "error"), None)
    starts = [number for number, kind in enumerate(kinds) if kind == "message_start"]
    answer.is_readable = bool(starts or "content_block_start" in kinds)
    answer.expect(starts == [0], "start", "message_start first, and once", kinds[:3])
    usage = _begin(answer, object_of(told[0].get("message")) if told else {})
    blocks = _Blocks(answer)
    for value in told:
        blocks.take(value)
    for block in blocks.end():
        _take_block(answer, block)
    last = next((event for event in told if event.get("type") == "message_delta"), None)
    if answer.error is not None:
        answer.expect(kinds[-1:] == ["error"], "end", "nothing after the error", kinds[-2:])
        return
    ends = [kind for kind in kinds if kind in ("message_delta", "message_stop")]
    well = ends == ["message_delta", "message_stop"] and kinds[-2:] == ends
    answer.expect(well, "end", "message_delta and message_stop last, each once", kinds[-3:])
    told_last = object_of(last).get("usage")
    counts = {**usage, **object_of(told_last)} if isinstance(usage, dict) else None
    fits = isinstance(told_last, dict) and type(told_last.get("output_tokens")) is int
    answer.expect(fits, "usage", "usage with output_tokens in message_delta", told_last)
    answer.take_counts(counts, _COUNTS)
    delta = last.get("delta") if last is not None else None
    _finish(answer, delta.get("stop_reason") if isinstance(delta, dict) else None, delta)


def _begin(answer: Answer, message: Body) -> Any:
    """Read the message of `message_start`; return its usage."""
    if answer.expect(bool(message), "start", "a message in message_start", message):
        answer.check(_HEAD, message, "$.message")
        answer.expect(message.get("content") == [], "fields", "content: [] in message_start", message.get("content"))
    return message.get("usage")


class _Blocks:
    """The content blocks of a stream."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._blocks: list[Body] = []
        self._open = False

    def take(self, event: Body) -> None:
        """Read an event."""
        expect, index = self._answer.expect, event.get("index")
        match event.get("type"):
            case "content_block_start":
                expect(not self._open, "items", "content_block_stop before the next content_block_start", event)
                expect(index == len(self._blocks), "items", f"index {len(self._blocks)}", event)
                block = event.get("content_block")
                expect(isinstance(block, dict), "items", "a content_block", event)
                self._blocks.append({**block, "_json": ""} if isinstance(block, dict) else {})
                self._open = True
            case "content_block_delta":
                if expect(self._open and index == len(self._blocks) - 1, "items", "a delta of the open block", event):
                    self._add(self._blocks[-1], event)
            case "content_block_stop":
                expect(self._open and index == len(self._blocks) - 1, "items", "a stop of the open block", event)
                self._open = False
            case "message_start" | "message_delta" | "message_stop" | "error":
                pass
            case kind:
                expect(False, "framing", "an event of the API", kind)

    def _add(self, block: Body, event: Body) -> None:
        delta = object_of(event.get("delta"))
        kind, field = _DELTAS.get(text_of(delta.get("type")), ("", ""))
        fits = self._answer.expect(block.get("type") == kind, "deltas", f"a delta of {block.get('type')}", delta)
        if fits and field:
            place = "_json" if field == "partial_json" else field
            block[place] = text_of(block.get(place)) + text_of(delta.get(field))

    def end(self) -> list[Body]:
        """The blocks, with the input of their deltas."""
        cut = self._answer.error is not None or bool(self._answer.fault)
        self._answer.expect(not self._open or cut, "items", "content_block_stop for each block", "none for the last")
        for block in self._blocks:
            written = block.pop("_json", "")
            if block.get("type") == "tool_use" and written:
                self._answer.expect(not block.get("input"), "deltas", "the input either at the start or after", block)
                block |= {"input": _value(written), "_written": written}
        return self._blocks


def _value(text: str) -> Any:
    try:
        return decode(text)
    except NotJsonError:
        return text


def _take_block(answer: Answer, block: Body) -> None:
    kind = text_of(block.get("type"))
    answer.check(_BLOCKS.get(kind, form({"type": NAME})), block, "$.content[…]")
    match kind:
        case "text":
            answer.text += text_of(block.get("text"))
        case "thinking":
            answer.reasoning += text_of(block.get("thinking"))
        case "tool_use":
            written = block.get("_written") or encode(block.get("input")).decode()
            answer.take_call(block.get("id"), block.get("name"), written)


def _finish(answer: Answer, reason: Any, shown: object) -> None:
    answer.expect(text_of(reason) in _FINISHES, "finish", f"one of {', '.join(_FINISHES)}", shown)
    answer.finish = _FINISHES.get(text_of(reason), "")
