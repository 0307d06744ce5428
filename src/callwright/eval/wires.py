"""Asks the server directly over one of three APIs, without repairs: a client would get the same answer.

Each wire converts the body of a chat request into its own request, and its answer into a turn. A body with anything
that the API cannot express (`Wire.lacks`) is not asked over it.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Any, Final, Literal, TypeAlias, get_args

from msgspec import Struct

from callwright.conversation import Call
from callwright.errors import UpstreamError
from callwright.eval.ask import Answered
from callwright.events import Usage
from callwright.reading.collect import Turn
from callwright.tolerant_json.codec import NotJsonError, decode, encode
from callwright.upstreams.http import HttpUpstream

WireName: TypeAlias = Literal["chat", "responses", "messages"]
WIRES: Final[tuple[WireName, ...]] = get_args(WireName)
_MAX_TOKENS: Final = 4_096  # the Messages API wants a limit
# A gateway's error if its model did not make the required call after all retries: counts as an answer without a call.
_UNMET: Final = "upstream_unmet"
Body: TypeAlias = dict[str, Any]


class WireAsker:
    """Asks a server at a base URL; an `Asker`. `headers` go with each request, `fields` into each chat body."""

    def __init__(
        self,
        url: str,
        model: str,
        wire: WireName,
        headers: Mapping[str, str] | None = None,
        fields: Mapping[str, Any] | None = None,
    ) -> None:
        self._server = HttpUpstream(url, {"accept": "application/json", **(headers or {})})
        self._model = model
        self._wire = _WIRES[wire]
        self._fields = fields or {}

    def lacks(self, body: Body) -> str:
        """Name the part of a chat body that this wire cannot express; empty if it can express all of it."""
        return self._wire.lacks(body)

    async def ask(self, body: Body, label: str) -> Answered:
        answered, _ = await self.ask_for_written(body, label)
        return answered

    async def ask_for_written(self, body: Body, label: str) -> tuple[Answered, "Written | None"]:
        """Return the answer and the model's raw output; the output only if a chat server was asked for `logprobs` and
        sends them. Raises as `ask`.
        """
        reader = _Whole()
        sent = self._wire.request({"model": self._model, **self._fields, **body})
        begun_s = time.monotonic()
        turn, usage, written = Turn(None, None, (), "stop"), None, None
        try:
            async with aclosing(self._server.events(self._wire.path, sent, reader)) as batches:
                async for batch in batches:
                    for answer in batch:
                        turn, usage = self._wire.turn(answer)
                        written = _read_tokens(answer)
        except UpstreamError as error:
            if error.code != _UNMET:
                raise
        return Answered(turn, time.monotonic() - begun_s, usage=usage), written

    async def close(self) -> None:
        await self._server.close()


def wire_request(wire: WireName, body: Body) -> tuple[str, Body]:
    """The path of an API below the base URL, and its request for the body of a chat request."""
    return _WIRES[wire].path, _WIRES[wire].request(body)


class Written(Struct, frozen=True):
    """The raw output of a model, including control tokens, and how it ended."""

    text: str
    ended: Literal["stop", "length"]


class _Whole:
    """Returns the whole answer unchanged; an `EventReader`."""

    kind: Any = dict[str, Any]
    has_stopped = True
    tell = None

    def marked_over(self) -> None:
        """See `EventReader`."""

    def read(self, event: Body, deltas: list[Body]) -> None:
        deltas.append(event)


class _Wire(Struct, frozen=True):
    path: str
    request: Callable[[Body], Body]
    turn: Callable[[Body], tuple[Turn, Usage | None]]
    lacks: Callable[[Body], str]


def _nothing(_: Body) -> str:
    return ""


def _turn(content: list[str], calls: list[Call], usage: object, names: tuple[str, str]) -> tuple[Turn, Usage | None]:
    counts = object_of(usage)
    told = [counts.get(name) for name in names]
    counted = Usage(*(number if type(number) is int else 0 for number in told)) if any(told) else None
    return Turn("".join(content) or None, None, tuple(calls), "tool_calls" if calls else "stop"), counted


def object_of(value: object) -> Body:
    """An object; empty for any other value."""
    return value if isinstance(value, dict) else {}


def objects(value: object) -> list[Body]:
    """The objects of a list; empty for any other value."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def text_of(value: object) -> str:
    """A text; empty for any other value."""
    return value if isinstance(value, str) else ""


# --- Chat Completions ---


def _chat_turn(answer: Body) -> tuple[Turn, Usage | None]:
    message = object_of(next(iter(objects(answer.get("choices"))), {}).get("message"))
    calls: list[Call] = []
    for call in objects(message.get("tool_calls")):
        id_ = text_of(call.get("id"))
        if call.get("type") == "custom":
            made = object_of(call.get("custom"))
            calls.append(Call(text_of(made.get("name")), text_of(made.get("input")), id_, "custom"))
        else:
            made = object_of(call.get("function"))
            calls.append(Call(text_of(made.get("name")), _json_text(made.get("arguments")), id_))
    content = [text_of(message.get("content"))]
    return _turn(content, calls, answer.get("usage"), ("prompt_tokens", "completion_tokens"))


def _read_tokens(answer: Body) -> Written | None:
    """The tokens of a chat answer as one text: of each its bytes, else its text."""
    choice = next(iter(objects(answer.get("choices"))), {})
    told = object_of(choice.get("logprobs")).get("content")
    if not isinstance(told, list):
        return None
    pieces = b"".join(map(_bytes, objects(told)))
    ended: Literal["stop", "length"] = "length" if choice.get("finish_reason") == "length" else "stop"
    return Written(pieces.decode(errors="replace"), ended)


def _bytes(token: Body) -> bytes:
    given = token.get("bytes")
    if isinstance(given, list) and all(type(one) is int and 0 <= one < 256 for one in given):
        return bytes(given)
    return text_of(token.get("token")).encode(errors="replace")


def _json_text(arguments: object) -> str:
    return arguments if isinstance(arguments, str) else encode(arguments).decode()


# --- Responses ---


def _responses_request(body: Body) -> Body:
    given = {
        "model": body["model"],
        "input": [item for message in body["messages"] for item in _items(message)],
        "tools": [_flat(tool) for tool in body.get("tools") or ()] or None,
        "tool_choice": _flat_choice(body.get("tool_choice")),
        "parallel_tool_calls": body.get("parallel_tool_calls"),
        "text": _text_format(body.get("response_format")),
        "store": False,
    }
    rest = {name: value for name, value in body.items() if name in ("temperature", "top_p")}
    return rest | {name: value for name, value in given.items() if value is not None}


def _items(message: Mapping[str, Any]) -> list[Body]:
    if message["role"] == "tool":
        return [{"type": "function_call_output", "call_id": message["tool_call_id"], "output": message["content"]}]
    said = [{"role": message["role"], "content": message["content"]}] if message.get("content") else []
    return said + [_item(call) for call in message.get("tool_calls") or ()]


def _item(call: Mapping[str, Any]) -> Body:
    if call["type"] == "custom":
        return {"type": "custom_tool_call", "call_id": call["id"], **call["custom"]}
    return {"type": "function_call", "call_id": call["id"], **call["function"]}


def _flat(tool: Mapping[str, Any]) -> Body:
    inner = dict(tool[tool["type"]])
    if object_of(inner.get("format")).get("type") == "grammar":
        inner["format"] = {"type": "grammar", **inner["format"]["grammar"]}
    return {"type": tool["type"], **inner}


def _flat_choice(choice: Any) -> Any:
    if not isinstance(choice, dict):
        return choice
    if choice["type"] == "allowed_tools":
        allowed = choice["allowed_tools"]
        return {"type": "allowed_tools", "mode": allowed["mode"], "tools": [_flat(tool) for tool in allowed["tools"]]}
    return _flat(choice)


def _text_format(given: Any) -> Body | None:
    if given is None:
        return None
    return {"format": {"type": given["type"], **given.get(given["type"], {})}}


def _responses_turn(answer: Body) -> tuple[Turn, Usage | None]:
    content: list[str] = []
    calls: list[Call] = []
    for item in objects(answer.get("output")):
        match item.get("type"):
            case "message":
                content += [text_of(part.get("text")) for part in objects(item.get("content"))]
            case "function_call":
                calls.append(
                    Call(text_of(item.get("name")), text_of(item.get("arguments")), text_of(item.get("call_id")))
                )
            case "custom_tool_call":
                name, input_ = text_of(item.get("name")), text_of(item.get("input"))
                calls.append(Call(name, input_, text_of(item.get("call_id")), "custom"))
    return _turn(content, calls, answer.get("usage"), ("input_tokens", "output_tokens"))


# --- Messages ---


def _messages_lacks(body: Body) -> str:
    choice = body.get("tool_choice")
    if isinstance(choice, dict) and choice.get("type") == "allowed_tools":
        return "allowed_tools"
    if any(tool["type"] == "custom" for tool in body.get("tools") or ()):
        return "custom tools"
    return "response_format" if body.get("response_format") else ""


def _messages_request(body: Body) -> Body:
    messages: list[Body] = []
    for message in body["messages"]:
        role, blocks = ("user" if message["role"] in ("tool", "user") else "assistant"), _blocks(message)
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
        elif blocks:
            messages.append({"role": role, "content": blocks})
    given = {
        "model": body["model"],
        "max_tokens": body.get("max_tokens") or _MAX_TOKENS,
        "messages": messages,
        "tools": [_described(tool["function"]) for tool in body.get("tools") or ()] or None,
        "tool_choice": _blocks_choice(body.get("tool_choice")),
        "temperature": body.get("temperature"),
    }
    return {name: value for name, value in given.items() if value is not None}


def _blocks(message: Mapping[str, Any]) -> list[Body]:
    if message["role"] == "tool":
        return [{"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}]
    said: list[Body] = [{"type": "text", "text": message["content"]}] if message.get("content") else []
    for call in message.get("tool_calls") or ():
        made = call["function"]
        try:
            given = decode(made["arguments"] or "{}", dict[str, Any])
        except NotJsonError:  # the API takes objects only; the tool result explains the error
            given = {}
        said.append({"type": "tool_use", "id": call["id"], "name": made["name"], "input": given})
    return said


def _described(tool: Mapping[str, Any]) -> Body:
    about = {"description": tool["description"]} if tool.get("description") else {}
    return {"name": tool["name"], "input_schema": tool.get("parameters") or {"type": "object"}, **about}


def _blocks_choice(choice: Any) -> Body | None:
    if isinstance(choice, dict):
        return {"type": "tool", "name": choice["function"]["name"]}
    return {"required": {"type": "any"}, "none": {"type": "none"}, "auto": {"type": "auto"}}.get(choice)


def _messages_turn(answer: Body) -> tuple[Turn, Usage | None]:
    blocks = objects(answer.get("content"))
    content = [text_of(block.get("text")) for block in blocks if block.get("type") == "text"]
    calls = [
        Call(text_of(block.get("name")), encode(block.get("input")).decode(), text_of(block.get("id")))
        for block in blocks
        if block.get("type") == "tool_use"
    ]
    return _turn(content, calls, answer.get("usage"), ("input_tokens", "output_tokens"))


_WIRES: Final[Mapping[WireName, _Wire]] = {
    "chat": _Wire("/chat/completions", lambda body: body, _chat_turn, _nothing),
    "responses": _Wire("/responses", _responses_request, _responses_turn, _nothing),
    "messages": _Wire("/messages", _messages_request, _messages_turn, _messages_lacks),
}
