"""Answers of the Messages API: https://platform.claude.com/docs/en/api/messages/create, and of its streams."""

from typing import Any, Final

from callwright.conform.answer import DONE, Answer, Body, Event
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


def read_whole(answer: Answer, body: Body) -> None:
    """Read a `message`."""
    _head(answer, body)
    content = body.get("content")
    answer.expect(isinstance(content, list), "fields", "a list of content", content)
    for block in objects(content):
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
        _head(answer, message)
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
                block["input"] = _value(written)
        return self._blocks


def _value(text: str) -> Any:
    try:
        return decode(text)
    except NotJsonError:
        return text


def _head(answer: Answer, body: Body) -> None:
    for name, expected in (("type", "message"), ("role", "assistant")):
        answer.expect(body.get(name) == expected, "fields", f'{name} "{expected}"', body.get(name))
    for name in ("id", "model"):
        answer.expect(isinstance(body.get(name), str), "fields", f"{name}: a text", body.get(name))
    for name in ("stop_reason", "stop_sequence"):
        answer.expect(name in body, "fields", f"the key {name}", list(body))


def _take_block(answer: Answer, block: Body) -> None:
    match block.get("type"):
        case "text":
            answer.expect(isinstance(block.get("text"), str), "fields", "text: a text", block)
            answer.text += text_of(block.get("text"))
        case "thinking":
            answer.reasoning += text_of(block.get("thinking"))
        case "tool_use":
            given = block.get("input")
            answer.expect(isinstance(given, dict), "arguments", "input: an object", given)
            text = given if isinstance(given, str) else encode(given).decode()
            answer.take_call(block.get("id"), block.get("name"), text)
        case kind:
            answer.expect(isinstance(kind, str), "fields", "a block with a type", block)


def _finish(answer: Answer, reason: Any, shown: object) -> None:
    answer.expect(reason in _FINISHES, "finish", f"one of {', '.join(_FINISHES)}", shown)
    answer.finish = _FINISHES.get(text_of(reason), "")
