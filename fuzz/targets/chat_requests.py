"""Bodies of `POST /v1/chat/completions`: one is refused in OpenAI's form, or what is sent to the model can be sent."""

from typing import Any

from callwright.errors import RequestError
from callwright.settings.bounds import Bounds
from callwright.wire.body import decoded
from callwright.wire.chat.request import read_request
from fuzz import asking, values
from tests.support.choices import Choices

__all__ = ["run"]

BOUNDS = Bounds()
MORE: dict[str, Any] = {
    "temperature": 0.5,
    "stop": ["a"],
    "n": 1,
    "stream": True,
    "parallel_tool_calls": False,
    "max_tokens": 1,
    "reasoning_effort": "low",
    "user": "x",
    "logprobs": True,
    "top_k": 3,
    "modalities": ["text"],
}
NAMES = ("get_weather", "send_mail", "run")


def run(draw: Choices) -> None:
    """See the module."""
    body = asking.body(draw, _request(draw))
    try:
        request = read_request(decoded(body, BOUNDS), mend=draw.once_in(2))
    except RequestError as error:
        asking.refused(error)
        return
    asking.upstream_bodies_hold(draw, request.conversation, request.fields)


def _request(draw: Choices) -> dict[str, Any]:
    request: dict[str, Any] = {"model": "m", "messages": [m for _ in range(3) for m in _messages(draw)]}
    request["messages"] = request["messages"] or [{"role": "user", "content": "Hello"}]
    legacy = draw.once_in(10)
    offered = [asking.tool(draw, name, shape="chat") for name in NAMES[: draw.number(3)]]
    if offered:
        request["functions" if legacy else "tools"] = (
            [tool.get("function", {}) for tool in offered] if legacy else offered
        )
        request["function_call" if legacy else "tool_choice"] = draw.one(
            (
                *("auto", "none", "required", {"name": "get_weather"}),
                {"type": "function", "function": {"name": "get_weather"}},
                {"type": "custom", "custom": {"name": "get_weather"}},
                {
                    "type": "allowed_tools",
                    "allowed_tools": {
                        "mode": "auto",
                        "tools": [{"type": "function", "function": {"name": "send_mail"}}],
                    },
                },
            )
        )
    if draw.once_in(4):
        schema = {"name": "answer", "schema": values.arguments(draw), "strict": draw.once_in(2)}
        request["response_format"] = draw.one(({"type": "json_schema", "json_schema": schema}, {"type": "json_object"}))
    for name, given in MORE.items():
        if draw.once_in(8):
            request[name] = given
    return request


def _messages(draw: Choices) -> list[dict[str, Any]]:
    match draw.number(5):
        case 0:
            return [{"role": "user", "content": values.string(draw)}]
        case 1:
            parts = [
                {"type": "text", "text": values.string(draw)},
                {"type": "image_url", "image_url": {"url": "data:,"}},
            ]
            return [{"role": "user", "content": parts[: 1 + draw.number(1)]}]
        case 2:
            return [{"role": draw.one(("system", "developer")), "content": values.string(draw)}]
        case 3:
            return [{"role": "assistant", "content": values.string(draw), "reasoning_content": values.string(draw)}]
    calls, outputs = [], []
    for number in range(1 + draw.number(2)):
        id_ = f"call_{number}"
        name = draw.one((*NAMES, "nobody"))
        arguments = draw.one((values.written(draw, values.value(draw)), "{}", "", "{", values.string(draw)))
        calls.append({"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}})
        if draw.once_in(5):
            calls[-1] = {"id": id_, "type": "custom", "custom": {"name": name, "input": values.string(draw)}}
        outputs.append({"role": "tool", "tool_call_id": id_, "content": values.string(draw)})
    if draw.once_in(6):
        old: Any = [{"role": "assistant", "content": None, "function_call": {"name": "run", "arguments": "{}"}}]
        return [*old, {"role": "function", "name": "run", "content": "1"}]
    return [{"role": "assistant", "content": draw.one((None, "", "Wait.")), "tool_calls": calls}, *outputs]
