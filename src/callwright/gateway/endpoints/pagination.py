"""Lists in pages, as OpenAI's API gives them: `after`, `limit` and `order` in the query."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from callwright.errors import RequestError
from callwright.wire.responses.types import Item, ItemList

_DEFAULT: Final = 20
_MOST: Final = 100
# Fields that a message part always has in an answer, and that clients may omit.
_ALWAYS: Final[Mapping[object, Mapping[str, Any]]] = {
    "input_image": {"detail": "auto"},
    "output_text": {"annotations": [], "logprobs": []},
}
# Items whose `status` OpenAI's API always includes; items from a client are completed unless they have another.
_WITH_STATE: Final = frozenset(
    {
        *("function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output"),
        *("tool_search_call", "tool_search_output", "shell_call", "shell_call_output", "local_shell_call"),
        *("apply_patch_call", "apply_patch_call_output", "computer_call", "computer_call_output"),
        *("file_search_call", "web_search_call", "code_interpreter_call", "image_generation_call", "program_output"),
    }
)


def page(items: Sequence[Mapping[str, Any]], query: Mapping[str, str]) -> ItemList:
    """A page of items, which are given oldest first; the API shows the newest first. Raises `RequestError`."""
    limit = _limit(query.get("limit"))
    order = query.get("order", "desc")
    if order not in ("asc", "desc"):
        raise RequestError(
            f"Invalid value: '{order}'. Supported values are: 'asc' and 'desc'.", param="order", code="invalid_value"
        )
    ordered = list(items) if order == "asc" else list(reversed(items))
    after = query.get("after")
    if after is not None:
        place = next((number for number, item in enumerate(ordered) if item.get("id") == after), None)
        if place is None:
            raise RequestError(f"No item with id '{after}' found.", param="after", code="invalid_value")
        ordered = ordered[place + 1 :]
    data = [listed_item(item) for item in ordered[:limit]]
    return ItemList(
        data=data,
        first_id=data[0].get("id") if data else None,
        last_id=data[-1].get("id") if data else None,
        has_more=len(ordered) > limit,
    )


def listed_item(item: Mapping[str, Any]) -> Item:
    """An item of an input as the API shows it: with its state, a message with its type and its content as parts."""
    kind = item.get("type", "message")
    if kind in _WITH_STATE and item.get("status") is None:
        return cast(Item, {**item, "status": "completed"})
    if kind != "message":
        return cast(Item, item)
    content = item.get("content")
    if isinstance(content, str):
        content = [{"type": "output_text" if item.get("role") == "assistant" else "input_text", "text": content}]
    parts = [{**_ALWAYS.get(part.get("type"), {}), **part} for part in content or ()]
    given = {key: value for key, value in item.items() if value is not None}
    return cast(Item, {"type": "message", "status": "completed", **given, "content": parts})


def _limit(given: str | None) -> int:
    if given is None:
        return _DEFAULT
    if not given.isascii() or not given.isdigit() or not 1 <= int(given) <= _MOST:
        raise RequestError(
            f"Invalid 'limit': expected an integer from 1 to {_MOST}, but got '{given}' instead.",
            param="limit",
            code="invalid_value",
        )
    return int(given)
