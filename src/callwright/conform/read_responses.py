"""Answers of the Responses API: https://developers.openai.com/api/reference/resources/responses."""

from typing import Any, Final

from callwright.conform.answer import DONE, LIST, NAME, OBJECTS, TEXT, TIME, Answer, Body, Event, form
from callwright.eval.wires import object_of, objects, text_of

_ENDS: Final = ("response.completed", "response.incomplete", "response.failed")
_COUNTS: Final = ("input_tokens", "output_tokens")
_DETAILS: Final = ("input_tokens_details", "output_tokens_details")
_STATUS: Final = {"enum": ["completed", "incomplete", "failed", "in_progress", "queued", "cancelled"]}
_RESPONSE: Final = form(
    {
        "object": {"const": "response"},
        "id": NAME,
        "created_at": TIME,
        "model": NAME,
        "status": _STATUS,
        "output": OBJECTS,
        "tools": LIST,
        "parallel_tool_calls": {"type": "boolean"},
        **{name: {} for name in ("error", "incomplete_details", "instructions", "metadata", "tool_choice")},
    }
)
_ITEM: Final = {"id": NAME, "type": NAME}
_ITEMS: Final = {
    "message": form({**_ITEM, "role": {"const": "assistant"}, "content": OBJECTS}),
    "reasoning": form({**_ITEM, "summary": OBJECTS}),
    "function_call": form({**_ITEM, "call_id": NAME, "name": NAME, "arguments": TEXT}),
    "custom_tool_call": form({**_ITEM, "call_id": NAME, "name": NAME, "input": TEXT}),
}
_PART: Final = form({"text": TEXT, "annotations": LIST})
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
    answer.is_readable = isinstance(body.get("output"), list)
    answer.check(_RESPONSE, body)
    for item in objects(body.get("output")):
        _take_item(answer, item)
    status = body.get("status")
    if status == "failed":
        answer.error = body.get("error")
        answer.expect(isinstance(answer.error, dict), "fields", "an error if it failed", answer.error)
        return
    answer.finish = "length" if status == "incomplete" else "tool_calls" if answer.calls else "stop"
    answer.take_counts(body.get("usage"), _COUNTS, _DETAILS)


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
    answer.is_readable |= bool(first)
    items = _Items(answer)
    for value in told:
        items.take(value)
    items.compare(objects(last.get("output")))


class _Items:
    """The output items of a stream by their indices: added, in pieces, done. Several may be open at a time: their
    index distinguishes them.
    """

    def __init__(self, answer: Answer) -> None:
        self._expect = answer.expect
        self._cut = False
        self._added: dict[int, Body] = {}
        self._done: dict[int, Body] = {}
        self._pieces: dict[tuple[str, int, int], str] = {}
        self._parts: dict[tuple[int, int], str] = {}

    def take(self, event: Body) -> None:
        """Read an event."""
        kind, index = text_of(event.get("type")), _number(event, "output_index")
        item = object_of(event.get("item"))
        if kind in ("response.failed", "response.incomplete"):
            self._cut = True
        elif kind == "response.output_item.added":
            self._expect(index == len(self._added), "items", f"index {len(self._added)} for the next item", event)
            self._added[index] = item
        elif kind == "response.output_item.done":
            self._expect_open(index, event)
            before = self._added.get(index, {}).get("id")
            self._expect(item.get("id") == before, "ids", f"the item's id {before}", item.get("id"))
            self._done[index] = item
        elif kind in ("response.content_part.added", "response.content_part.done"):
            self._take_part(kind, (index, _number(event, "content_index")), event)
        else:
            name, _, what = kind.rpartition(".")
            if name in _PIECES and what in ("delta", "done"):
                self._take_piece(name, what, event)

    def _expect_open(self, index: int, event: Body) -> None:
        is_open = index in self._added and index not in self._done
        self._expect(is_open, "items", "an item that is added, and not done", event)

    def _take_part(self, kind: str, place: tuple[int, int], event: Body) -> None:
        state = "added" if kind.endswith("added") else "done"
        before = self._parts.get(place)
        self._expect(before == ("added" if state == "done" else None), "items", "one start and end of each part", event)
        self._parts[place] = state

    def _take_piece(self, name: str, what: str, event: Body) -> None:
        index = _number(event, "output_index")
        self._expect_open(index, event)
        item_id = self._added.get(index, {}).get("id")
        self._expect(event.get("item_id") == item_id, "ids", f"item_id {item_id}", event.get("item_id"))
        key = (name, index, _number(event, "content_index" if "content_index" in event else "summary_index"))
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
        ids, final = [self._done[index].get("id") for index in sorted(self._done)], [item.get("id") for item in output]
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


def _number(event: Body, name: str) -> int:
    """An index; -1 if the field is not a number."""
    value = event.get(name)
    return value if type(value) is int else -1


def _take_item(answer: Answer, item: Body) -> None:
    kind = text_of(item.get("type"))
    answer.check(_ITEMS.get(kind, form(_ITEM)), item, "$.output[…]")
    match kind:
        case "message":
            for part in objects(item.get("content")):
                answer.text += text_of(part.get("text"))
                answer.refusal += text_of(part.get("refusal"))
                if part.get("type") == "output_text":
                    answer.check(_PART, part, "$.output[…].content[…]")
        case "reasoning":
            parts = [*objects(item.get("content")), *objects(item.get("summary"))]
            answer.reasoning += "".join(text_of(part.get("text")) for part in parts)
        case "function_call":
            answer.take_call(item.get("call_id"), item.get("name"), item.get("arguments"))
        case "custom_tool_call":
            answer.take_call(item.get("call_id"), item.get("name"), item.get("input"), "custom")
