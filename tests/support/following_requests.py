"""Requests that follow each other in one conversation, in the shapes of clients that work with tools."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from callwright.conversation import Conversation
from callwright.settings.bounds import Bounds
from callwright.tolerant_json.codec import encode
from callwright.wire.anthropic.request import decode_request as decode_messages
from callwright.wire.anthropic.request import read_request as read_messages
from callwright.wire.body import decoded
from callwright.wire.chat.request import read_request as read_chat
from callwright.wire.responses.request import decode_request as decode_responses
from callwright.wire.responses.request import read_request as read_responses
from callwright.wire.sealed import sealed

__all__ = ["SHAPES", "conversations"]

Body = Mapping[str, Any]
_SCHEMA: Final = {"type": "object", "properties": {"path": {"type": "string"}, "query": {"type": "string"}}}
_RULES: Final = "You work in the folder of a user. Look before you change. Say little."
_NOTES: Final = "Notes of today: the tests are slow, the tea is cold."


def _blocks(*blocks: Body, role: str = "user") -> Body:
    return {"role": role, "content": list(blocks)}


def _text(words: str) -> Body:
    return {"type": "text", "text": words}


def _thought(words: str) -> Body:
    return {"type": "thinking", "thinking": words, "signature": sealed(words)}


def _use(id_: str, name: str, **given: str) -> Body:
    return {"type": "tool_use", "id": id_, "name": name, "input": given}


def _result(id_: str, content: Any) -> Body:
    return {"type": "tool_result", "tool_use_id": id_, "content": content}


def _messages() -> list[Body]:
    """A coding agent on Anthropic's API: a tool is found in the middle, results come out of order, the system speaks
    behind the user, once as a list and later as text.
    """

    def tool(name: str, **more: Any) -> Body:
        return {"name": name, "description": f"Does {name}.", "input_schema": _SCHEMA, **more}

    found, never = tool("mcp__paper__news", defer_loading=True), tool("Never", defer_loading=True)
    early = [tool("Bash"), tool("Read"), tool("Search"), never]
    late = [tool("Bash"), found, tool("Read"), tool("Search"), never]
    billing = _text("x-anthropic-billing-header: a=1;")
    asked = _blocks(_text(_NOTES), _text("Read a.txt, and look for news."))
    turns = [asked, _blocks(_text("Deferred: mcp__paper__news."), role="system")]
    requests = [(list(turns), early)]
    turns[1] = {"role": "system", "content": "Deferred: mcp__paper__news."}
    calls = (_use("a", "Read", path="a.txt"), _use("b", "Search", query="news"))
    turns += [
        _blocks(_thought("Two at once."), _text("I look."), *calls, role="assistant"),
        _blocks(_result("b", [{"type": "tool_reference", "tool_name": found["name"]}]), _result("a", "hello")),
    ]
    requests.append((list(turns), late))
    turns += [
        _blocks(_thought("Now the news."), _use("c", "mcp__paper__news", query="tea"), role="assistant"),
        _blocks(_result("c", "none"), _text("A list of things to do is empty.")),
        {"role": "system", "content": "A file was changed: b.txt."},
    ]
    requests.append((list(turns), late))
    turns += [
        _blocks(_thought("That is all."), _text("There are no news."), role="assistant"),
        _blocks(_text("And now?")),
    ]
    requests.append((list(turns), late))
    body = {"model": "m", "max_tokens": 100, "system": [billing, _text(_RULES)]}
    return [{**body, "messages": messages, "tools": tools} for messages, tools in requests]


def _responses() -> list[Body]:
    """A coding agent on the Responses API: tools that a search of the client has found, and those that come with an
    item.
    """

    def tool(name: str, **more: Any) -> Body:
        return {"type": "function", "name": name, "description": f"Does {name}.", "parameters": _SCHEMA, **more}

    search = {"type": "tool_search", "execution": "client"}
    items: list[Body] = [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": _NOTES}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Look for news."}]},
    ]
    requests = [list(items)]
    items += [
        {"type": "reasoning", "summary": [], "encrypted_content": sealed("I search.")},
        {"type": "tool_search_call", "call_id": "a", "arguments": {"query": "news"}, "execution": "client"},
        {"type": "tool_search_output", "call_id": "a", "tools": [tool("news", defer_loading=True)]},
    ]
    requests.append(list(items))
    items += [
        {"type": "function_call", "call_id": "b", "name": "news", "arguments": '{"query": "tea"}'},
        {"type": "function_call_output", "call_id": "b", "output": "none"},
        {"type": "additional_tools", "tools": [tool("mail")]},
    ]
    requests.append(list(items))
    body = {"model": "m", "instructions": _RULES, "tools": [tool("shell_command"), search]}
    return [{**body, "input": each} for each in requests]


def _chat() -> list[Body]:
    """A client of Chat Completions, in a loop of calls."""

    def call(id_: str, arguments: str) -> Body:
        return {"id": id_, "type": "function", "function": {"name": "read", "arguments": arguments}}

    tools = [{"type": "function", "function": {"name": "read", "description": "Reads.", "parameters": _SCHEMA}}]
    messages: list[Body] = [{"role": "system", "content": _RULES}, {"role": "user", "content": "Read a.txt and b.txt."}]
    requests = [list(messages)]
    for number, arguments in enumerate(('{"path": "a.txt"}', '{"path":"b.txt"}')):
        id_ = f"call_{number}"
        said = {"content": None, "reasoning_content": f"Thought {number}.", "tool_calls": [call(id_, arguments)]}
        messages += [{"role": "assistant", **said}, {"role": "tool", "tool_call_id": id_, "content": f"text {number}"}]
        requests.append(list(messages))
    return [{"model": "m", "messages": each, "tools": tools} for each in requests]


SHAPES: Final[Mapping[str, Sequence[Body]]] = {"messages": _messages(), "responses": _responses(), "chat": _chat()}


def conversations(shape: str) -> list[Conversation]:
    """What each request of a shape asks a model."""
    found: list[Conversation] = []
    for body in SHAPES[shape]:
        given: Any = decoded(encode(body), Bounds())
        match shape:
            case "messages":
                found.append(read_messages(decode_messages(given), given, {}).asked.conversation)
            case "responses":
                found.append(read_responses(decode_responses(given), given, []).conversation)
            case _:
                found.append(read_chat(given).conversation)
    return found
