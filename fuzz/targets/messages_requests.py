"""Bodies of `POST /v1/messages`, with blocks of all kinds: one is refused in Anthropic's form, or what is sent to the
model can be sent.
"""

from typing import Any

from callwright.errors import RequestError
from callwright.settings.bounds import Bounds
from callwright.tolerant_json.codec import encode
from callwright.wire.anthropic.errors import anthropic_error, anthropic_status
from callwright.wire.anthropic.request import decode_request, read_request
from callwright.wire.anthropic.tools import read_servers
from callwright.wire.body import decoded
from callwright.wire.sealed import sealed
from fuzz import asking, values
from tests.support.choices import Choices

__all__ = ["run"]

BOUNDS = Bounds()
MORE: dict[str, Any] = {
    "system": [{"type": "text", "text": "x-anthropic-billing-header: a"}, {"type": "text", "text": "Be brief."}],
    "stop_sequences": ["</block>"],
    "temperature": 0.5,
    "top_k": 3,
    "stream": True,
    "thinking": {"type": "adaptive", "display": "omitted"},
    "output_config": {"effort": "max"},
    "metadata": {"user_id": "u"},
    "context_management": {
        "edits": [
            {"type": "clear_tool_uses_20250919", "trigger": {"type": "tool_uses", "value": 0}},
            {"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 1}},
        ]
    },
    "mcp_servers": [{"type": "url", "name": "docs", "url": "https://example.com/mcp"}],
    "thread": {"type": "create"},
    "field_of_tomorrow": {"a": [1]},
}
NAMES = ("get_weather", "send_mail", "run")
TYPED: tuple[dict[str, Any], ...] = (
    {"type": "bash_20250124", "name": "bash"},
    {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
    {"type": "web_search_20250305", "name": "web_search"},
    {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
    {"type": "mcp_toolset", "mcp_server_name": "docs"},
)


def run(draw: Choices) -> None:
    """See the module."""
    body = asking.body(draw, _request(draw))
    try:
        given = decoded(body, BOUNDS)
        request = decode_request(given, counts=draw.once_in(8))
        assert isinstance(given, dict)
        read_servers(request.mcp_servers, request.tools)
        parsed = read_request(request, given, {}, draw.one(("", "fine-grained-tool-streaming-2025-05-14")))
    except RequestError as error:
        assert 400 <= anthropic_status(error) < 500
        told = anthropic_error(error)
        assert told.error.message
        encode(told)
        return
    asking.upstream_bodies_hold(draw, parsed.asked.conversation, parsed.asked.fields)


def _request(draw: Choices) -> dict[str, Any]:
    messages = [message for _ in range(1 + draw.number(3)) for message in _messages(draw)]
    request: dict[str, Any] = {"model": "m", "max_tokens": draw.one((100, 0)), "messages": messages}
    tools = [_tool(draw, name) for name in NAMES[: draw.number(3)]]
    if draw.once_in(4):
        tools.append(draw.one(TYPED))
    if tools:
        request["tools"] = tools
        named = {"type": "tool", "name": draw.one(NAMES), "disable_parallel_tool_use": True}
        request["tool_choice"] = draw.one(({"type": "auto"}, {"type": "any"}, {"type": "none"}, named))
    if draw.once_in(6):
        request["output_config"] = {"format": {"type": "json_schema", "schema": values.arguments(draw)}}
    for name, given in MORE.items():
        if draw.once_in(8):
            request[name] = given
    return request


def _tool(draw: Choices, name: str) -> dict[str, Any]:
    tool: dict[str, Any] = {"name": name, "description": values.string(draw), "input_schema": values.arguments(draw)}
    for field in ("strict", "defer_loading", "eager_input_streaming"):
        if draw.once_in(4):
            tool[field] = draw.one((True, False, None))
    if draw.once_in(6):
        tool["input_examples"] = [{"city": values.string(draw)}]
    return tool


def _messages(draw: Choices) -> list[dict[str, Any]]:
    text = values.string(draw)
    if draw.once_in(2):
        blocks = [_block(draw) for _ in range(draw.number(3))]
        role = draw.one(("user", "user", "assistant", "system"))
        return [{"role": role, "content": text if draw.once_in(3) else blocks}]
    id_ = draw.one(("a", "b"))
    given = draw.one(({"city": text}, {"__unparsedToolInput": {"raw": text, "len": 1}}, {}))
    use = {"type": "tool_use", "id": id_, "name": draw.one((*NAMES, "nobody")), "input": given}
    thought = {"type": "thinking", "thinking": "", "signature": draw.one(("", text, sealed(text)))}
    found = {"type": "tool_reference", "tool_name": draw.one(NAMES)}
    content = draw.one((text, [found], [{"type": "text", "text": text}], None))
    result = {"type": "tool_result", "tool_use_id": draw.one(("a", "b")), "content": content, "is_error": True}
    return [
        {"role": "assistant", "content": [thought, {"type": "text", "text": text}, use]},
        {"role": "user", "content": [result, {"type": "text", "text": text}]},
    ]


def _block(draw: Choices) -> dict[str, Any]:
    text = values.string(draw)
    reference = {"type": "tool_reference", "name": draw.one(NAMES)}
    return draw.one(
        (
            {"type": "text", "text": text},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
            {"type": "document", "source": {"type": "text", "data": text}, "title": text},
            {"type": "search_result", "title": text, "source": "x", "content": [{"type": "text", "text": text}]},
            {"type": "tool_result", "tool_use_id": "a", "content": text},
            {"type": "tool_addition", "tool": reference},
            {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": _tool(draw, "late")}},
            {"type": "tool_removal", "tool": reference},
            {"type": "server_tool_use", "id": "s", "name": "tool_search_tool_bm25", "input": {"query": text}},
            {"type": "tool_search_tool_result", "tool_use_id": "s", "content": {"tool_references": [reference]}},
            {"type": "mcp_tool_use", "id": "m", "name": "ask", "server_name": "docs", "input": {}},
            {"type": "mcp_tool_result", "tool_use_id": "m", "is_error": False, "content": text},
            {"type": "redacted_thinking", "data": text},
            {"type": "compaction", "content": text},
            {"type": "block_of_tomorrow", "x": 1},
        )
    )
