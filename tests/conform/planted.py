"""Faults of a server, planted into right answers: for each check those that it has to find."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec.structs import replace

from callwright.conform.answer import DONE
from callwright.conform.check import Variant
from callwright.conform.checks.asks import CALL, REQUIRED, TEXT, TWO
from callwright.conform.checks.faults import DIALECTS, NATIVE, fault_checks
from callwright.doctor.client import Reply
from callwright.eval.wires import WireName

Events: TypeAlias = list[dict[str, Any] | str]
# A fault: the right answer to the request as it is, or a chat body whose right answer is sent instead.
Fault: TypeAlias = Callable[[WireName, Variant, Reply], Reply] | dict[str, Any]


def events_of(reply: Reply) -> Events:
    datas = [line[6:] for line in reply.body.decode().split("\n") if line.startswith("data: ")]
    return [data if data == DONE else json.loads(data) for data in datas]


def with_events(reply: Reply, events: Events) -> Reply:
    blocks = []
    for event in events:
        if isinstance(event, str):
            blocks.append(f"data: {event}\n\n")
        else:
            name = f"event: {event['type']}\n" if "type" in event else ""
            blocks.append(f"{name}data: {json.dumps(event)}\n\n")
    return replace(reply, body="".join(blocks).encode())


def walk(value: Any, change: Callable[[dict[str, Any]], None]) -> None:
    """Change each object in a value."""
    if isinstance(value, dict):
        change(value)
        value = list(value.values())
    for one in value if isinstance(value, list) else ():
        walk(one, change)


def objects(change: Callable[[dict[str, Any]], None]) -> Fault:
    """Change each object of an answer or of its events."""

    def fault(_: WireName, variant: Variant, reply: Reply) -> Reply:
        events = events_of(reply) if variant == "streamed" else [reply.json]
        for event in events:
            walk(event, change)
        return (
            with_events(reply, events) if variant == "streamed" else replace(reply, body=json.dumps(events[0]).encode())
        )

    return fault


def stream(change: Callable[[Events], Events | None]) -> Fault:
    """Change the list of events."""

    def fault(_: WireName, __: Variant, reply: Reply) -> Reply:
        events = events_of(reply)
        return with_events(reply, change(events) or events)

    return fault


def without(*keys: str) -> Fault:
    def change(one: dict[str, Any]) -> None:
        for key in keys:
            one.pop(key, None)

    return objects(change)


def having(**fields: Any) -> Fault:
    """Change fields that an object has."""
    return objects(lambda one: one.update({key: value for key, value in fields.items() if one.get(key)}))


def reply(status: int, body: Any, kind: str = "application/json") -> Fault:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return lambda _, __, ___: Reply(status, {"content-type": kind}, data)


def headers(**changed: str) -> Fault:
    named = {name.replace("_", "-"): value for name, value in changed.items()}
    return lambda _, __, right: replace(right, headers={**right.headers, **named})


def raw(change: Callable[[bytes], bytes]) -> Fault:
    return lambda _, __, right: replace(right, body=change(right.body))


def _first(events: Events, *kinds: str) -> dict[str, Any]:
    return next(one for one in events if isinstance(one, dict) and one.get("type") in kinds)


def _move_index(events: Events) -> None:
    for event in events:
        walk(event, lambda one: one.update({key: 7 for key in ("index", "output_index") if one.get(key) == 0}))


def _cut_delta(events: Events) -> None:
    for event in events:
        if isinstance(event, dict) and isinstance(event.get("delta"), str) and event["delta"]:
            event["delta"] = event["delta"][:-1] + "~"
        elif isinstance(event, dict) and event.get("type") == "content_block_delta":
            event["delta"] = {"type": "citations_delta", "citation": {}}


def _other_id(events: Events) -> None:
    chunks = [one for one in events if isinstance(one, dict)]
    last = chunks[-1].get("response", chunks[-1])
    last["id"] = "another"


def _repeat_ids(one: dict[str, Any]) -> None:
    for key in ("id", "call_id"):
        if str(one.get(key)).startswith(("call_", "toolu_")):
            one[key] = "call_same"


def _count_tokens(events: Events) -> None:
    counts = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    next(one for one in events if isinstance(one, dict))["usage"] = counts


def _cut_short(one: dict[str, Any]) -> None:
    """As if the limit of tokens was reached."""
    for key, value in (("finish_reason", "length"), ("stop_reason", "max_tokens")):
        if one.get(key):
            one[key] = value
    if one.get("object") == "response" and one.get("status") == "completed":
        one.update(status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    if one.get("type") == "response.completed":
        one["type"] = "response.incomplete"


def _odd_ids(one: dict[str, Any]) -> None:
    for key in ("id", "call_id"):
        if str(one.get(key)).startswith(("call_", "toolu_")):
            one[key] = "not an id"


def _list_arguments(one: dict[str, Any]) -> None:
    for key, value in (("arguments", "[1]"), ("input", [1]), ("partial_json", "[1]")):
        if one.get(key):
            one[key] = value


def _write_markup(one: dict[str, Any]) -> None:
    """Put markup before a text of the model."""
    for key in ("content", "text", "delta"):
        if isinstance(one.get(key), str) and one[key]:
            one[key] = "<tool_call>" + one[key]


def _write_token(one: dict[str, Any]) -> None:
    for key in ("content", "text", "delta"):
        if isinstance(one.get(key), str) and one[key]:
            one[key] += "<|channel|>"


def _repeat_key(wire: WireName, variant: Variant, right: Reply) -> Reply:
    """Give the city twice in the arguments of a call."""
    if wire == "messages" and variant == "whole":
        return replace(right, body=right.body.replace(b'"input":{', b'"input":{"city":"Bergen",'))

    def change(one: dict[str, Any]) -> None:
        for key in ("arguments", "partial_json", "delta"):
            if isinstance(one.get(key), str) and one[key].endswith("}"):
                one[key] = one[key][:-1] + ',"city":"Oslo"}'

    fault = objects(change)
    assert not isinstance(fault, dict)
    return fault(wire, variant, right)


def _set_index(one: dict[str, Any]) -> None:
    if "finish_reason" in one:
        one["index"] = 2


def _call_function(one: dict[str, Any]) -> None:
    if one.get("role") == "assistant":
        one["function_call"] = {"name": "get_weather", "arguments": "{}"}


def _texts_as_content(one: dict[str, Any]) -> None:
    if one.get("type") == "message":
        one["content"] = ["Hello."]


def _cached(one: dict[str, Any]) -> None:
    if "total_tokens" in one:
        one |= {name: {"cached_tokens": 1_000_000} for name in ("prompt_tokens_details", "input_tokens_details")}


def _rename(data: bytes) -> bytes:
    return data.replace(b"get_weather", b"get_tides").replace(b"get_time", b"get_tides")


_LOST: Sequence[Fault] = (
    reply(500, {"error": {"message": "no", "type": "server_error", "param": None, "code": None}}),
    reply(200, b"", "application/json"),
)
_MILD: Sequence[Fault] = (
    TEXT,
    reply(422, {"detail": [{"loc": ["body"], "msg": "no"}]}),
    reply(400, {"detail": "no"}),
    reply(400, b"<html>Bad request</html>", "text/html"),
    reply(500, {"error": {"message": "no", "type": "server_error", "param": None, "code": None}}),
    reply(
        400, {"type": "error", "error": {"message": "", "type": "invalid_request_error", "param": None, "code": None}}
    ),
)
FAULTS: Mapping[str, Sequence[Fault]] = {
    "answer.text": [CALL, *_LOST],
    "answer.fields": [
        without("object", "role"),
        without("id"),
        without("model"),
        objects(lambda one: one.update({"model": ""} if "model" in one else {})),
    ],
    "answer.markup": [objects(_write_markup), objects(_write_token)],
    "answer.refusal": [without("refusal")],
    "answer.logprobs": [without("logprobs")],
    "answer.finish": [
        having(finish_reason="done", stop_reason="done", status="done"),
        objects(_cut_short),
    ],
    "answer.usage": [
        without("usage"),
        having(total_tokens=1, input_tokens="7"),
        having(completion_tokens=-1, output_tokens=-1),
        having(completion_tokens=0, output_tokens=0),
    ],
    "answer.content_type": [headers(content_type="text/html"), headers(content_type="")],
    "answer.request_id": [headers(x_request_id="", request_id="")],
    "call.id": [objects(_odd_ids), objects(_repeat_ids)],
    "call.arguments": [
        objects(_list_arguments),
        having(arguments={"city": "Oslo"}, input="Oslo", partial_json='"Oslo"'),
        _repeat_key,
    ],
    "call.several": [objects(_repeat_ids)],
    "answer.new_id": [objects(lambda one: one.update({"id": "same"} if "model" in one else {})), *_LOST[:1]],
    "call.new_id": [objects(_repeat_ids), *_LOST[:1]],
    "stream.usage_off": [stream(_count_tokens)],
    "history.previous_response": [having(previous_response_id="resp_other"), having(input_tokens=1), *_LOST[:1]],
    "history.conversation": [having(conversation={"id": "conv_other"}), having(input_tokens=1), *_LOST[:1]],
    **{f"key.{name}": [reply(403, {"error": {"message": "no"}}), *_LOST[:1]] for name in ("bearer", "x_api_key")},
    **{
        f"key.{name}": [reply(400, {"detail": "no"}), reply(401, {"detail": "no"}), *_LOST[:1]]
        for name in ("wrong", "wrong_x_api_key", "none")
    },
    "stream.framing": [
        raw(lambda data: b"data: {broken\n\n" + data),
        raw(lambda data: data.replace(b"data: ", b"date: ", 1)),
        raw(lambda data: b'event: odd\ndata: ["a list"]\n\n' + data),
        raw(lambda data: data.replace(b'"', b'"\xff', 1)),
    ],
    "stream.start": [stream(lambda events: events[1:]), stream(lambda events: [events[-1]])],
    "stream.end": [
        stream(lambda events: events[:-1]),
        stream(lambda events: [*events, events[-1]]),
        stream(lambda events: [*events, events[0]]),
    ],
    "stream.items": [stream(lambda events: _move_index(events))],
    "stream.deltas": [stream(lambda events: _cut_delta(events))],
    "stream.ids": [stream(lambda events: _other_id(events))],
    "stream.sequence": [without("sequence_number"), stream(lambda events: [events[0], *events[2:]])],
    "tool_choice.auto": [raw(_rename), *_LOST[:1]],
    "tool_choice.none": [REQUIRED],
    "tool_choice.required": [TEXT, raw(_rename)],
    "tool_choice.named": [CALL, TEXT],
    "tool_choice.allowed": [CALL, TEXT],
    "parallel.off": [TWO],
    "strict.schema": [CALL],
    "tools.late": [CALL],
    "tools.gone": [CALL],
    "tools.no_parameters": [CALL],
    "tools.custom": [CALL],
    "structured.schema": [TEXT],
    **{
        f"history.{name}": _LOST
        for name in (
            *("result", "out_of_order", "empty_content", "text_and_call", "empty_result", "foreign_id", "two_users"),
            *("no_tools", "repeated_id", "no_call", "no_result", "image"),
        )
    },
    **{
        f"errors.{name}": _MILD
        for name in (
            *("bad_json", "no_model", "no_messages", "no_max_tokens", "wrong_type", "unknown_role", "tool_name"),
            *(
                "unknown_response",
                "tool_schema",
                "duplicate_tools",
                "strict_schema",
                "strict_format",
                "tool_choice_value",
            ),
            *("unknown_tool", "choice_without_tools"),
        )
    },
    **{check.name: [CALL, TEXT, reply(200, b"")] for check in fault_checks((NATIVE, *DIALECTS))},
    "faults.only_said": [CALL, reply(200, b"")],
    # A server of one model takes any name.
    "errors.unknown_model": _MILD[1:],
}


# Those of one API only.
OF_API: Mapping[WireName, Mapping[str, Sequence[Fault]]] = {
    "chat": {
        "answer.fields": [
            having(tool_calls={"id": "call_1"}),
            having(tool_calls=["get_weather"]),
            having(tool_calls="get_weather"),
            having(created=1_795_000_000_000),
            having(created=1),
            objects(_set_index),
            without("finish_reason"),
            objects(_call_function),
        ],
        "answer.usage": [objects(_cached)],
    },
    "responses": {
        "answer.fields": [having(output=["Hello."]), having(created_at=1_795_000_000_000)],
        "answer.usage": [objects(_cached)],
    },
    "messages": {"answer.fields": [objects(_texts_as_content)]},
}
