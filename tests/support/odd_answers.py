"""What odd servers answer: pieces of calls, calls in two forms, messages where deltas are expected."""

from typing import Any

from tests.support.outputs import ARGUMENTS, QUESTION, TOOLS
from tests.support.servers import Answer, chunk, sse, whole

NAME = "get_weather"
ROME_ARGUMENTS = '{"city": "Rome"}'


def body(way: str = "native", **fields: Any) -> dict[str, Any]:
    return {"model": way, "messages": [QUESTION], "tools": TOOLS, **fields}


def call(name: str | None, arguments: Any = None, **fields: Any) -> dict[str, Any]:
    """A delta with one piece of a call; `index` is left out unless it is given."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {"tool_calls": [{**fields, "function": function}]}


WHOLE = {"id": "a", "type": "function", "function": {"name": NAME, "arguments": ARGUMENTS}}


def ended_by(message: dict[str, Any], *deltas: dict[str, Any]) -> Answer:
    """A stream whose last event has a whole message in place of a delta."""
    last = {"choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}]}
    return Answer(sse(*map(chunk, deltas), last, "[DONE]"))


def whole_calls(**fields: Any) -> Answer:
    """A whole answer with two calls, for both of which `fields` hold."""
    entries = [call(NAME, arguments, **fields)["tool_calls"][0] for arguments in (ARGUMENTS, ROME_ARGUMENTS)]
    return whole({"choices": [{"index": 0, "message": {"tool_calls": entries}, "finish_reason": "tool_calls"}]})


def beside(message: dict[str, Any], delta: dict[str, Any]) -> Answer:
    """An answer whose only choice has a whole message and a delta."""
    return whole({"choices": [{"index": 0, "delta": delta, "message": message, "finish_reason": "stop"}]})


def in_both_forms(*arguments: str, old: str = NAME) -> list[dict[str, Any]]:
    """Pieces of a call, each under `tool_calls` and as the old `function_call`."""
    return [
        {**call(NAME, piece, index=0, id="a"), "function_call": {"name": old, "arguments": piece}}
        for piece in arguments
    ]
