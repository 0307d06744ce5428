"""Replay a stored response as the events of a stream, with each text in a single delta.

Deterministic: the same response always has the same events.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

Item: TypeAlias = Mapping[str, Any]
Replayed: TypeAlias = dict[str, Any]  # an event without its number
# Items with streamed text: its events, and the field with the final text.
_CALLS: Final[Mapping[str, tuple[str, str]]] = {
    "function_call": ("response.function_call_arguments", "arguments"),
    "custom_tool_call": ("response.custom_tool_call_input", "input"),
    "mcp_call": ("response.mcp_call_arguments", "arguments"),
}
_NOT_YET: Final[Item] = {
    "status": "in_progress",
    "output": [],
    "usage": None,
    "completed_at": None,
    "error": None,
    "incomplete_details": None,
}
# Cancellation has no event: a cancelled response ends as a failed one, and differs by its status.
_ENDS: Final = {"cancelled": "failed"}


def replayed_begin(body: Item) -> list[Replayed]:
    """The events that start the stream, for a response without its output."""
    begun = {**body, **_NOT_YET}
    return [{"type": "response.created", "response": begun}, {"type": "response.in_progress", "response": begun}]


def replayed_rest(
    body: Item, output: Sequence[Item], flavour: Literal["openai", "open_responses"] = "openai"
) -> Iterator[Replayed]:
    """The remaining events of a finished response: its items, and its end."""
    reasoning = "response.reasoning" if flavour == "open_responses" else "response.reasoning_text"
    status = str(body["status"])
    for index, item in enumerate(output):
        ends = item.get("status") != "incomplete" or (status == "incomplete" and item["type"] not in _CALLS)
        yield from _item(item, index, reasoning, ends=ends)
    yield {"type": f"response.{_ENDS.get(status, status)}", "response": {**body, "output": list(output)}}


def _item(item: Item, index: int, reasoning: str, *, ends: bool) -> Iterator[Replayed]:
    kind = item["type"]
    at = {"item_id": item.get("id"), "output_index": index}
    begun = {key: value for key, value in item.items() if key not in ("phase", "encrypted_content")}
    if kind == "message":
        yield _added(index, {**begun, "content": [], "status": "in_progress"})
        for number, part in enumerate(item["content"]):
            yield from _part(part, {**at, "content_index": number}, ends=ends)
    elif kind == "reasoning":
        empty: Replayed = {field: [] for field in ("summary", "content") if field in item}
        yield _added(index, {**begun, **empty, "status": "in_progress"})
        for number, part in enumerate(item.get("summary") or ()):
            yield from _summary(part, {**at, "summary_index": number}, ends=ends)
        for number, part in enumerate(item.get("content") or ()):
            yield from _flow(part, {**at, "content_index": number}, reasoning, "text", ends=ends)
    elif kind in _CALLS:
        yield from _call(item, begun, index, at, ends=ends)
    else:
        yield _added(index, {**item, "tools": []} if kind == "mcp_list_tools" else item)
        if kind == "mcp_list_tools":
            yield from ({"type": f"response.{kind}.{step}", **at} for step in ("in_progress", "completed"))
    if ends:
        yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _added(index: int, item: Item) -> Replayed:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def _call(item: Item, begun: Item, index: int, at: Item, *, ends: bool) -> Iterator[Replayed]:
    event, field = _CALLS[item["type"]]
    is_mcp = item["type"] == "mcp_call"
    yield _added(
        index, {**begun, field: "", "status": "in_progress", **({"output": None, "error": None} if is_mcp else {})}
    )
    if is_mcp:
        yield {"type": "response.mcp_call.in_progress", **at}
    if item[field]:
        yield {"type": f"{event}.delta", **at, "delta": item[field]}
    if ends:
        name = {"name": item["name"]} if item["type"] == "function_call" else {}
        yield {"type": f"{event}.done", **at, **name, field: item[field]}
        if is_mcp:
            yield {"type": f"response.mcp_call.{'failed' if item.get('error') else 'completed'}", **at}


def _part(part: Item, at: Item, *, ends: bool) -> Iterator[Replayed]:
    if part["type"] == "refusal":
        yield from _flow(part, at, "response.refusal", "refusal", ends=ends)
        return
    empty = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
    said = {"logprobs": part.get("logprobs") or []}
    yield {"type": "response.content_part.added", **at, "part": empty}
    if part["text"] or said["logprobs"]:
        yield {"type": "response.output_text.delta", **at, "delta": part["text"], **said}
    for number, annotation in enumerate(part.get("annotations") or ()):
        kind = "response.output_text.annotation.added"
        yield {"type": kind, **at, "annotation_index": number, "annotation": annotation}
    if ends:
        yield {"type": "response.output_text.done", **at, "text": part["text"], **said}
        yield {"type": "response.content_part.done", **at, "part": part}


def _flow(part: Item, at: Item, event: str, field: str, *, ends: bool) -> Iterator[Replayed]:
    yield {"type": "response.content_part.added", **at, "part": {**part, field: ""}}
    if part[field]:
        yield {"type": f"{event}.delta", **at, "delta": part[field]}
    if ends:
        yield {"type": f"{event}.done", **at, field: part[field]}
        yield {"type": "response.content_part.done", **at, "part": part}


def _summary(part: Item, at: Item, *, ends: bool) -> Iterator[Replayed]:
    event = "response.reasoning_summary"
    yield {"type": f"{event}_part.added", **at, "part": {**part, "text": ""}}
    if part["text"]:
        yield {"type": f"{event}_text.delta", **at, "delta": part["text"]}
    if ends:
        yield {"type": f"{event}_text.done", **at, "text": part["text"]}
        yield {"type": f"{event}_part.done", **at, "part": part}
