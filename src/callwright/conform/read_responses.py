"""Answers of the Responses API: https://developers.openai.com/api/reference/resources/responses."""

from typing import Any, Final

from callwright.conform.answer import DONE, Answer, Body, Event
from callwright.eval.wires import object_of, objects, text_of

_ENDS: Final = ("response.completed", "response.incomplete", "response.failed")
_STATUSES: Final = ("completed", "incomplete", "failed", "in_progress", "queued", "cancelled")
_COUNTS: Final = ("input_tokens", "output_tokens")
_REQUIRED: Final = (
    *("id", "created_at", "model", "output", "status", "error", "incomplete_details", "instructions", "metadata"),
    *("parallel_tool_calls", "tool_choice", "tools"),
)
# Pieces of an item: the last part of the event's name before `.delta`, with the field of its `.done`.
_PIECES: Final = {
    "response.output_text": "text",
    "response.reasoning_text": "text",
    "response.reasoning_summary_text": "text",
    "response.refusal": "refusal",
    "response.function_call_arguments": "arguments",
    "response.custom_tool_call_input": "input",
}


def read_whole(answer: Answer, body: Body) -> None:
    """Read a `response`."""
    answer.expect(body.get("object") == "response", "fields", 'object "response"', body.get("object"))
    missing = [name for name in _REQUIRED if name not in body]
    answer.expect(not missing, "fields", "all required fields", f"without {', '.join(missing)}")
    answer.expect(body.get("status") in _STATUSES, "finish", "a status", body.get("status"))
    answer.expect(isinstance(body.get("output"), list), "fields", "a list of output", body.get("output"))
    for item in objects(body.get("output")):
        _take_item(answer, item)
    status = body.get("status")
    if status == "failed":
        answer.error = body.get("error")
        answer.expect(isinstance(answer.error, dict), "fields", "an error if it failed", answer.error)
        return
    answer.finish = "length" if status == "incomplete" else "tool_calls" if answer.calls else "stop"
    answer.take_counts(body.get("usage"), _COUNTS, "total_tokens")


def read_stream(answer: Answer, events: list[Event]) -> None:
    """Read the events of a response."""
    told = [event.value for event in events if event.data != DONE]
    kinds = [text_of(event.get("type")) for event in told]
    for event in events:
        fits = event.data == DONE or event.name == event.value.get("type")
        answer.expect(fits, "framing", "event: named as its type", event.data)
    first = [number for number, kind in enumerate(kinds) if kind == "response.created"]
    answer.expect(first == [0], "start", "response.created first, and once", kinds[:3])
    numbers = [event.get("sequence_number") for event in told]
    steps = [*range(numbers[0], numbers[0] + len(numbers))] if numbers and type(numbers[0]) is int else []
    answer.expect(bool(steps) and numbers == steps, "sequence", "sequence_number in steps of 1", numbers)
    if kinds[-1:] == ["error"]:
        answer.error = told[-1].get("error") or told[-1]
        return
    ends = [kind for kind in kinds if kind in _ENDS]
    answer.expect(len(ends) == 1 and kinds[-1:] == ends, "end", f"one of {', '.join(_ENDS)}, once and last", kinds[-2:])
    done = [number for number, event in enumerate(events) if event.data == DONE]
    answer.expect(done in ([], [len(events) - 1]), "end", "nothing after [DONE]", done)
    responses = [response for event in told if isinstance(response := event.get("response"), dict)]
    ids = {str(response.get("id")) for response in responses}
    answer.expect(len(ids) <= 1, "ids", "one id of the response", sorted(ids))
    last = responses[-1] if responses and ends else {}
    read_whole(answer, last)
    items = _Items(answer)
    for value in told:
        items.take(value)
    items.compare(objects(last.get("output")))


class _Items:
    """The output items of a stream: added, in pieces, done."""

    def __init__(self, answer: Answer) -> None:
        self._expect = answer.expect
        self._cut = False
        self._added: list[Body] = []
        self._done: list[Body] = []
        self._pieces: dict[tuple[str, Any, Any], str] = {}
        self._parts: dict[tuple[Any, Any], str] = {}

    def take(self, event: Body) -> None:
        """Read an event."""
        kind, index = text_of(event.get("type")), event.get("output_index")
        item = object_of(event.get("item"))
        if kind in ("response.failed", "response.incomplete"):
            self._cut = True
        elif kind == "response.output_item.added":
            fits = index == len(self._added) == len(self._done)
            self._expect(fits, "items", f"the next item, index {len(self._added)}, after the one before is done", event)
            self._added.append(item)
        elif kind == "response.output_item.done":
            fits = index == len(self._added) - 1 == len(self._done)
            self._expect(fits, "items", "one output_item.done for each item", event)
            before = self._added[-1].get("id") if self._added else None
            self._expect(item.get("id") == before, "ids", f"the item's id {before}", item.get("id"))
            self._done.append(item)
        elif kind in ("response.content_part.added", "response.content_part.done"):
            self._take_part(kind, (index, event.get("content_index")), event)
        else:
            name, _, what = kind.rpartition(".")
            if name in _PIECES and what in ("delta", "done"):
                self._take_piece(name, what, event)

    def _take_part(self, kind: str, place: tuple[Any, Any], event: Body) -> None:
        state = "added" if kind.endswith("added") else "done"
        before = self._parts.get(place)
        self._expect(before == ("added" if state == "done" else None), "items", "one start and end of each part", event)
        self._parts[place] = state

    def _take_piece(self, name: str, what: str, event: Body) -> None:
        index = event.get("output_index")
        is_open = index == len(self._added) - 1 == len(self._done)
        self._expect(is_open, "items", "pieces of the open item only", event)
        item_id = self._added[-1].get("id") if self._added else None
        self._expect(event.get("item_id") == item_id, "ids", f"item_id {item_id}", event.get("item_id"))
        key = (name, index, event.get("content_index", event.get("summary_index")))
        if what == "delta":
            self._pieces[key] = self._pieces.get(key, "") + text_of(event.get("delta"))
        else:
            whole, pieces = event.get(_PIECES[name]), self._pieces.get(key, "")
            self._expect(whole == pieces, "deltas", f"the text of the deltas: {pieces}", whole)
            self._pieces[key] = text_of(whole)

    def compare(self, output: list[Body]) -> None:
        """Compare the items with those of the final response."""
        fits = len(self._added) == len(self._done) or self._cut
        self._expect(fits, "items", "output_item.done for each item", f"{len(self._done)} of {len(self._added)}")
        are_done = all(state == "done" for state in self._parts.values())
        self._expect(are_done or self._cut, "items", "each part done", "one is not")
        ids, final = [item.get("id") for item in self._done], [item.get("id") for item in output]
        self._expect(ids == final or self._cut, "ids", f"the ids of the stream in the final response: {ids}", final)
        for number, item in enumerate(output):
            match item.get("type"):
                case "function_call":
                    self._compare("response.function_call_arguments", number, item.get("arguments"))
                case "message":
                    texts = [text_of(part.get("text")) for part in objects(item.get("content"))]
                    self._compare("response.output_text", number, "".join(texts))

    def _compare(self, name: str, number: int, whole: Any) -> None:
        told = [text for (kind, index, _), text in self._pieces.items() if (kind, index) == (name, number)]
        self._expect("".join(told) == whole or self._cut, "deltas", f"{_PIECES[name]} as streamed: {told}", whole)


def _take_item(answer: Answer, item: Body) -> None:
    answer.expect(isinstance(item.get("id"), str), "fields", "an id for each item", item)
    match item.get("type"):
        case "message":
            for part in objects(item.get("content")):
                answer.text += text_of(part.get("text"))
                answer.refusal += text_of(part.get("refusal"))
                if part.get("type") == "output_text":
                    answer.expect(isinstance(part.get("annotations"), list), "fields", "a list of annotations", part)
        case "reasoning":
            parts = [*objects(item.get("content")), *objects(item.get("summary"))]
            answer.reasoning += "".join(text_of(part.get("text")) for part in parts)
        case "function_call":
            answer.expect(isinstance(item.get("arguments"), str), "arguments", "arguments: a text", item)
            answer.take_call(item.get("call_id"), item.get("name"), item.get("arguments"))
        case "custom_tool_call":
            answer.take_call(item.get("call_id"), item.get("name"), item.get("input"), "custom")
        case kind:
            answer.expect(isinstance(kind, str), "fields", "an item with a type", item)
