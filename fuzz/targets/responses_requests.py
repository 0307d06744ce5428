"""Bodies of `POST /v1/responses`, with items of all kinds, behind a history or not: one is refused in OpenAI's form, or
what is sent to the model can be sent.
"""

from typing import Any

from callwright.errors import RequestError
from callwright.settings.bounds import Bounds
from callwright.wire.body import decoded
from callwright.wire.responses.request import decode_request, read_request
from fuzz import asking, values
from tests.support.choices import Choices

__all__ = ["run"]

BOUNDS = Bounds()
MORE: dict[str, Any] = {
    "instructions": "Be brief.",
    "store": False,
    "parallel_tool_calls": False,
    "max_output_tokens": 16,
    "reasoning": {"effort": "low"},
    "include": ["reasoning.encrypted_content"],
    "metadata": {"a": "b"},
    "truncation": "auto",
    "temperature": 0.5,
    "top_k": 3,
    "max_tool_calls": 1,
}
NAMES = ("get_weather", "send_mail", "run")
BUILT_IN: tuple[dict[str, Any], ...] = (
    *(
        {"type": kind}
        for kind in ("web_search", "local_shell", "shell", "apply_patch", "tool_search", "image_generation")
    ),
    {"type": "mcp", "server_label": "docs", "server_url": "https://example.com/mcp", "require_approval": "never"},
    {"type": "file_search", "vector_store_ids": ["v"]},
    {"type": "code_interpreter", "container": {"type": "auto"}},
)


def run(draw: Choices) -> None:
    """See the module."""
    body = asking.body(draw, _request(draw))
    try:
        given = decoded(body, BOUNDS)
        request = decode_request(given)
        assert isinstance(given, dict)
        history = draw.several(2, lambda: _item(draw)) if draw.once_in(4) else []
        asked = read_request(request, given, history, mend=draw.once_in(2))
    except RequestError as error:
        asking.refused(error)
        return
    asking.upstream_bodies_hold(draw, asked.conversation, asked.fields)


def _request(draw: Choices) -> dict[str, Any]:
    items = [item for _ in range(1 + draw.number(4)) for item in _items(draw)]
    request: dict[str, Any] = {"model": "m", "input": items if not draw.once_in(8) else values.string(draw)}
    tools: list[Any] = [asking.tool(draw, name, shape="responses") for name in NAMES[: draw.number(3)]]
    if draw.once_in(4):
        tools.append(draw.one(BUILT_IN))
    if draw.once_in(5):
        tools = [{"type": "namespace", "name": draw.one(("crm", "get", "a__b")), "description": "x", "tools": tools}]
    if tools:
        request["tools"] = tools
        request["tool_choice"] = draw.one(
            (
                *("auto", "none", "required", {"type": "function", "name": "get_weather"}),
                *({"type": "custom", "name": "run"}, {"type": "mcp", "server_label": "docs"}, {"type": "web_search"}),
                {"type": "function", "namespace": "crm", "name": "run"},
                {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "send_mail"}]},
            )
        )
    if draw.once_in(5):
        schema = {"type": "json_schema", "name": "answer", "schema": values.arguments(draw), "strict": draw.once_in(2)}
        request["text"] = {"format": draw.one((schema, {"type": "json_object"}, {"type": "text"})), "verbosity": "low"}
    for name, given in MORE.items():
        if draw.once_in(8):
            request[name] = given
    return request


def _items(draw: Choices) -> list[dict[str, Any]]:
    if not draw.once_in(3):
        return [_item(draw)]
    name = draw.one((*NAMES, "nobody"))
    arguments = draw.one((values.written(draw, values.value(draw)), "{}", "", "{", values.string(draw)))
    kind, given = draw.one(
        (("function_call", "arguments"), ("function_call", "arguments"), ("custom_tool_call", "input"))
    )
    call = {"type": kind, "call_id": "c1", "name": name, given: arguments}
    if draw.once_in(4):
        call["namespace"] = "crm"
    return [call, {"type": f"{kind}_output", "call_id": "c1", "output": values.string(draw)}]


def _item(draw: Choices) -> dict[str, Any]:
    text = values.string(draw)
    role = draw.one(("user", "assistant", "system", "developer"))
    parts = [{"type": "output_text" if role == "assistant" else "input_text", "text": text}]
    action = {"type": "exec", "command": ["ls"], "env": {}}
    return draw.one(
        (
            {"role": role, "content": text},
            {"type": "message", "role": role, "content": parts},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": text}]},
            {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": text}], "id": "rs_1"},
            {"type": "reasoning", "summary": [], "encrypted_content": text},
            {"type": "message", "role": "user", "content": [*parts, {"type": "input_image", "image_url": "data:,"}]},
            {"type": "local_shell_call", "call_id": "s", "id": "l1", "status": "completed", "action": action},
            {"type": "local_shell_call_output", "id": "l1", "call_id": "s", "output": text},
            {"type": "shell_call", "call_id": "s2", "action": {"commands": ["ls"]}},
            {"type": "shell_call_output", "call_id": "s2", "output": [{"stdout": text, "stderr": "", "outcome": {}}]},
            {"type": "apply_patch_call", "call_id": "p", "operation": {"type": "delete_file", "path": "a"}},
            {"type": "mcp_list_tools", "server_label": "docs", "tools": [{"name": "ask", "input_schema": {}}]},
            {"type": "mcp_call", "server_label": "docs", "name": "ask", "arguments": "{}", "output": text, "id": "m1"},
            {"type": "tool_search_call", "call_id": "t", "arguments": {}, "execution": "client"},
            {"type": "tool_search_output", "call_id": "t", "tools": [{"type": "function", "name": "late"}]},
            {"type": "compaction", "encrypted_content": text},
            {"type": "item_reference", "id": "msg_1"},
            {"type": "additional_tools", "tools": [{"type": "function", "name": "late"}]},
            {"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": text}},
        )
    )
