"""Odd forms of calls: put together where it is plain what belongs together, and nothing is made up where it is not."""

import json
from typing import Any

import pytest
from msgspec import Struct

from tests.conftest import Served, scripted_models
from tests.support.http_client import CHAT, Live, ask, assembled, request
from tests.support.messages_client import message_of, named_events
from tests.support.odd_answers import (
    NAME,
    ROME_ARGUMENTS,
    WHOLE,
    beside,
    body,
    call,
    ended_by,
    in_both_forms,
    whole_calls,
)
from tests.support.outputs import ARGUMENTS, TOOLS
from tests.support.servers import Answer, ModelServer, calling, chat, chunk, said, sse, whole

both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
PARIS = (NAME, {"city": "Paris"})
ROME = (NAME, {"city": "Rome"})
OSLO_ARGUMENTS = '{"city": "} {Oslo"}'
# A tool whose name begins like another's.
GET = {"type": "function", "function": {"name": "get", "parameters": {"type": "object", "properties": {}}}}


def pieces(*names: str | None, **fields: Any) -> Answer:
    """A call whose name comes like that, then its arguments in two pieces."""
    heads = [call(name, "", **({"index": 0} | fields)) for name in names]
    return chat(*heads, call(None, ARGUMENTS[:5], index=0), call(None, ARGUMENTS[5:], index=0), finish="tool_calls")


CALLS: dict[str, tuple[Answer, list[tuple[str, Any]]]] = {
    "a name in pieces": (pieces("get_", "weather", id="a"), [PARIS]),
    "a name in three pieces, the first of which is a tool": (pieces("get", "_wea", "ther"), [PARIS]),
    "a name in pieces without a tool": (pieces("look_", "up"), [("look_up", {"city": "Paris"})]),
    "a name that grows": (pieces("get_", "get_weather"), [PARIS]),
    "the whole name in every piece": (pieces(NAME, NAME, NAME), [PARIS]),
    "the name of no tool in every piece": (pieces("look", "look"), [("look", {"city": "Paris"})]),
    "an empty name behind the name": (pieces(NAME, "", None), [PARIS]),
    "an empty name before the name": (pieces("", NAME), [PARIS]),
    **{
        f"the name {name!r}": (chat(call(name, ARGUMENTS, index=0, id="a"), finish="tool_calls"), [PARIS])
        for name in (
            f"{NAME}</tool_call>",
            f"{NAME}<|message|>",
            f"{NAME}<|channel|>analysis",
            f"functions.{NAME}:3",
            f"{NAME}:12",
            f"<|tool_call_begin|>functions.{NAME}:0<|tool_call_argument_begin|>",
            f"</think>\n<function_call>{NAME}",
            f"[TOOL_CALLS]{NAME}[ARGS]",
            f"{NAME}<arg_key>city</arg_key>",
            f"{NAME}<|chan",
        )
    },
    "empty arguments before the arguments": (
        chat(call(NAME, "{}", index=0, id="a"), call(None, ARGUMENTS[:4], index=0), call(None, ARGUMENTS[4:], index=0)),
        [PARIS],
    ),
    "empty arguments of all kinds before the arguments": (
        chat(call(NAME, '""', index=0, id="a"), *[call(None, text, index=0) for text in ("null", "{}", ARGUMENTS)]),
        [PARIS],
    ),
    "all arguments so far in every piece": (
        chat(*[call(NAME if not at else None, ARGUMENTS[: at + 1], index=0, id="a") for at in range(len(ARGUMENTS))]),
        [PARIS],
    ),
    "the whole arguments twice": (chat(call(NAME, ARGUMENTS, index=0), call(None, ARGUMENTS, index=0)), [PARIS]),
    **{
        f"arguments in tags: {written}": (
            chat(call(NAME, written[:1], index=0, id="a"), *[call(None, piece, index=0) for piece in written[1:]]),
            [PARIS],
        )
        for written in (
            "<parameter=city>\nParis\n</parameter>",
            "<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>",
            "<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>",
            '<parameter name="city">Paris</parameter>',
        )
    },
    "a new id in every piece": (
        chat(call(NAME, "", index=0, id="a"), *[call(None, c, index=0, id=f"b{n}") for n, c in enumerate(ARGUMENTS)]),
        [PARIS],
    ),
    "the head of a second call under the index of the first": (
        chat(
            call(NAME, ARGUMENTS, index=0, id="a"),
            call(NAME, "", index=0, id="b"),
            call(None, ROME_ARGUMENTS[:4], index=1),
            call(None, ROME_ARGUMENTS[4:], index=1, id="b"),
        ),
        [PARIS, ROME],
    ),
    "a tool whose name begins another's": (pieces("get"), [("get", {"city": "Paris"})]),
    "a call id that is a number": (chat(call(NAME, ARGUMENTS, index=0, id=17)), [PARIS]),
    "a call id that is empty behind the first": (
        chat(call(NAME, "", index=0, id="a"), call(None, ARGUMENTS, index=0, id="")),
        [PARIS],
    ),
    "an index that is a text": (
        chat(
            call(NAME, "", index="0", id="a"),
            call(None, ARGUMENTS, index="0"),
            call(NAME, ROME_ARGUMENTS, index="1", id="b"),
        ),
        [PARIS, ROME],
    ),
    "an index as a text, then as a number": (
        chat(call(NAME, ARGUMENTS[:4], index="0"), call(None, ARGUMENTS[4:], index=0)),
        [PARIS],
    ),
    "an index in the first piece only": (
        chat(call(NAME, "", index=0, id="a"), call(None, ARGUMENTS[:4]), call(None, ARGUMENTS[4:])),
        [PARIS],
    ),
    "an index in the first piece only, the id in each": (
        chat(
            *(call(NAME, "", index=at, id=id_) for at, id_ in enumerate("ab")),
            call(None, ROME_ARGUMENTS, id="b"),
            call(None, ARGUMENTS, id="a"),
        ),
        [PARIS, ROME],
    ),
    "arguments before the name, without an index": (chat(call(None, ARGUMENTS), call(NAME)), [PARIS]),
    "another index for the same id, without a name": (
        chat(call(NAME, "", index=0, id="a"), call(None, ARGUMENTS, index=1, id="a")),
        [PARIS],
    ),
    "one id for two calls": (
        chat(call(NAME, ARGUMENTS, index=0, id="a"), call(NAME, ROME_ARGUMENTS, index=1, id="a")),
        [PARIS, ROME],
    ),
    "one id for two calls of a whole answer": (whole_calls(id="a"), [PARIS, ROME]),
    "one id and one index for two calls of a whole answer": (whole_calls(id="a", index=0), [PARIS, ROME]),
    "two calls of a whole answer without ids": (whole_calls(), [PARIS, ROME]),
    "whole calls under one index, without ids": (
        chat(call(NAME, ARGUMENTS, index=0), call(NAME, ROME_ARGUMENTS, index=0)),
        [PARIS, ROME],
    ),
    "the arguments of two calls, joined": (chat(call(NAME, ARGUMENTS + ROME_ARGUMENTS, index=0)), [PARIS, ROME]),
    "the arguments of three calls, joined and in pieces": (
        chat(
            call(NAME, "", index=0, id="a"),
            *(call(None, piece, index=0) for piece in f"{ARGUMENTS}\n{ROME_ARGUMENTS}{OSLO_ARGUMENTS}"),
        ),
        [PARIS, ROME, (NAME, {"city": "} {Oslo"})],
    ),
    "the arguments of two calls, joined in a second piece": (
        chat(
            call(NAME, ARGUMENTS[:6], index=0),
            call(None, ARGUMENTS[6:] + ROME_ARGUMENTS[:4], index=0),
            call(None, ROME_ARGUMENTS[4:], index=0),
        ),
        [PARIS, ROME],
    ),
    "two calls with one id and index, each with the name": (
        chat(call(NAME, ARGUMENTS, index=0, id="a"), call(NAME, ROME_ARGUMENTS, index=0, id="a")),
        [PARIS, ROME],
    ),
    "joined arguments before another call": (
        chat(call(NAME, ARGUMENTS + ROME_ARGUMENTS, index=0, id="a"), call("get", "{}", index=1, id="b")),
        [PARIS, ROME, ("get", {})],
    ),
    "arguments as an object": (chat(call(NAME, {"city": "Paris"}, index=0)), [PARIS]),
    "an empty piece of a call after the next one": (
        chat(
            call(NAME, ARGUMENTS, index=0, id="a"),
            call(NAME, ROME_ARGUMENTS, index=1, id="b"),
            call(None, "", index=0),
            call("", "", index=0, id="a"),
            call(NAME, "", index=0),
        ),
        [PARIS, ROME],
    ),
    "a message that repeats calls": (
        ended_by({"tool_calls": [WHOLE]}, {"tool_calls": [{"index": 0, **WHOLE}]}),
        [PARIS],
    ),
    "the id of a call that is over for one of another tool": (
        chat(
            call(NAME, ARGUMENTS, index=0, id="a"),
            call(NAME, ROME_ARGUMENTS, index=1, id="b"),
            call("get", "{}", index=0, id="a"),
        ),
        [PARIS, ROME, ("get", {})],
    ),
    "one index for all, pieces by their ids": (
        chat(
            *(call(NAME, "", index=0, id=id_) for id_ in "ab"),
            *(
                call(None, piece, index=0, id=id_)
                for at in (slice(6), slice(6, None))
                for id_, piece in (("a", ARGUMENTS[at]), ("b", ROME_ARGUMENTS[at]))
            ),
        ),
        [PARIS, ROME],
    ),
    "one index for all, pieces by their ids, each with the name": (
        chat(
            *(call(NAME, "", index=0, id=id_) for id_ in "ab"),
            call(NAME, ARGUMENTS, index=0, id="a"),
            call(NAME, ROME_ARGUMENTS, index=0, id="b"),
        ),
        [PARIS, ROME],
    ),
    "one index for all, an empty piece of the first behind the second": (
        chat(
            call(NAME, ARGUMENTS, index=0, id="a"),
            call(NAME, ROME_ARGUMENTS, index=0, id="b"),
            call(None, "", index=0, id="a"),
        ),
        [PARIS, ROME],
    ),
    "pieces that say nothing, at indexes of their own": (
        chat(
            call(None, index=3), call(NAME, ARGUMENTS, index=0, id="a"), call(None, "", index=1), {"tool_calls": [{}]}
        ),
        [PARIS],
    ),
    "a function_call that is another": (
        whole(
            {
                "choices": [
                    {
                        "message": {
                            "tool_calls": [WHOLE],
                            "function_call": {"name": NAME, "arguments": ROME_ARGUMENTS},
                        },
                        "finish_reason": "stop",
                    }
                ]
            }
        ),
        [PARIS, ROME],
    ),
    "pieces of both forms that are two calls": (
        chat(*in_both_forms(ARGUMENTS[:6], ARGUMENTS[6:], old="look")),
        [PARIS, ("look", {"city": "Paris"})],
    ),
    "a call without `function`": (
        whole(
            {
                "choices": [
                    {
                        "message": {"tool_calls": [{"id": "a", "name": NAME, "arguments": ARGUMENTS}]},
                        "finish_reason": "stop",
                    }
                ]
            }
        ),
        [PARIS],
    ),
    "pieces of a call without `function`": (
        chat(
            {"tool_calls": [{"index": 0, "id": "a", "type": "function", "name": NAME}]},
            *({"tool_calls": [{"index": 0, "arguments": piece}]} for piece in (ARGUMENTS[:6], ARGUMENTS[6:])),
        ),
        [PARIS],
    ),
    "a message beside an empty delta": (beside({"tool_calls": [WHOLE]}, {}), [PARIS]),
    "a message beside a delta with the role": (
        beside({"tool_calls": [WHOLE]}, {"role": "assistant", "content": ""}),
        [PARIS],
    ),
    "a message beside a delta with content": (beside({"tool_calls": [WHOLE]}, {"content": "Hi"}), [PARIS]),
    "a message with the calls, behind content": (ended_by({"tool_calls": [WHOLE]}, {"content": "Hi"}), [PARIS]),
    "a character cut in two in arguments": (
        Answer(
            sse(
                chunk(call(NAME, "", index=0)),
                *(
                    json.dumps(chunk(call(None, "{}", index=0))).replace('"{}"', f'"{text}"')
                    for text in ('{\\"city\\": \\"\\ud83d', '\\udc4b\\"}')
                ),
                chunk({}, "tool_calls"),
                "[DONE]",
            )
        ),
        [(NAME, {"city": "\N{WAVING HAND SIGN}"})],
    ),
}


@both
@pytest.mark.parametrize("odd", CALLS)
def test_calls(gateway: str, model: ModelServer, odd: str, stream: bool) -> None:
    answer, expected = CALLS[odd]
    model.plays(answer)
    got = ask(gateway, body(tools=[*TOOLS, GET]), stream=stream)
    assert got.calls == expected
    ids = [call["id"] for call in got.message["tool_calls"]]
    assert all(isinstance(id_, str) and id_ for id_ in ids)
    assert len(set(ids)) == len(ids)


def test_of_a_message_behind_its_deltas_what_they_did_not_say_is_read(gateway: str, model: ModelServer) -> None:
    message = {"content": "Hi", "reasoning_content": "Hm.", "tool_calls": [WHOLE]}
    said_by_deltas: dict[str, dict[str, Any]] = {
        "reasoning": {"reasoning_content": "Hm."},
        "content": {"content": "Hi"},
        "calls": {"tool_calls": [{"index": 0, **WHOLE}]},
        "role": {"role": "assistant", "content": ""},
    }
    for delta in said_by_deltas.values():
        model.plays(ended_by(message, delta))
        got = ask(gateway, body(), stream=True)
        assert (got.message["content"], got.message["reasoning"], got.calls) == ("Hi", "Hm.", [PARIS])


@both
@pytest.mark.parametrize("name", ["", None, "  "], ids=repr)
def test_a_call_without_a_name_never_leaves_and_is_named(
    gateway: str, model: ModelServer, name: str | None, stream: bool
) -> None:
    model.plays(chat(call(name, ARGUMENTS, index=0, id="a"), finish="tool_calls"))
    reply = request(gateway + CHAT, body(stream=stream))
    got = assembled(reply.events).message if stream else reply.json["choices"][0]["message"]
    assert not got.get("tool_calls")
    assert "malformed_call" in reply.problems


@both
@pytest.mark.parametrize("after", [ARGUMENTS, '{"city": "Ro', '{"town": 1}', " done"])
def test_what_follows_arguments_and_is_no_other_call_is_named(
    gateway: str, model: ModelServer, after: str, stream: bool
) -> None:
    model.plays(chat(call(NAME, ARGUMENTS, index=0, id="a"), call(None, after, index=0), finish="tool_calls"))
    reply = request(gateway + CHAT, body(stream=stream))
    message = assembled(reply.events).message if stream else reply.json["choices"][0]["message"]
    assert [each["function"]["arguments"] for each in message["tool_calls"]] == [ARGUMENTS]
    assert "arguments_trailing_text" in reply.problems


# LM Studio sends entries without a function (lmstudio-bug-tracker#830), vLLM a finish reason alone (vllm#44326).
LOST: dict[str, Answer] = {
    "an entry without a function": chat(
        {"tool_calls": [{"index": 0, "id": "", "type": "function"}]}, finish="tool_calls"
    ),
    "no entry": chat(finish="tool_calls"),
    "no entry after reasoning": chat({"reasoning_content": "I will call it."}, finish="tool_calls"),
}


@pytest.mark.parametrize("lost", LOST)
def test_an_answer_that_claims_calls_and_has_nothing_is_retried(serve: Served, model: ModelServer, lost: str) -> None:
    url = serve(*scripted_models(model.url, retries=1))
    model.plays(LOST[lost], said("It is sunny."))
    reply = request(url + CHAT, body(stream=False))
    assert reply.json["choices"][0]["message"]["content"] == "It is sunny."
    assert reply.problems == {"call_retried": 1}


@pytest.mark.parametrize("lost", LOST)
def test_a_stream_of_one_names_the_lost_call(gateway: str, model: ModelServer, lost: str) -> None:
    model.plays(LOST[lost])
    assert "malformed_call" in request(gateway + CHAT, body(stream=True)).problems


@both
def test_calls_before_the_end_mark_are_made_without_a_finish_reason(
    gateway: str, model: ModelServer, stream: bool
) -> None:
    # OCI, by way of LiteLLM (litellm#40040).
    model.plays(chat(call(NAME, ARGUMENTS, index=0, id="a"), finish=None))
    got = ask(gateway, body(), stream=stream)
    assert (got.calls, got.finish_reason) == ([PARIS], "tool_calls")


def test_a_call_that_is_cut_before_the_end_mark_is_incomplete_without_a_finish_reason(
    gateway: str, model: ModelServer
) -> None:
    model.plays(chat(call(NAME, ARGUMENTS[:-3], index=0, id="a"), finish=None))
    got = ask(gateway, body(), stream=True)
    assert got.finish_reason == "length"


@both
def test_a_name_that_may_hold_arguments_does_not_make_a_call_without_any(
    gateway: str, model: ModelServer, stream: bool
) -> None:
    ping = {"type": "function", "function": {"name": "ping", "parameters": OPTIONAL}}
    model.plays(*[chat(call("ping<arg_key>zone</arg_key>", "", index=0), finish="tool_calls")] * 4)
    reply = request(gateway + CHAT, body(tools=[ping], stream=stream))
    assert "incomplete_arguments" in reply.problems


class NoArguments(Struct, frozen=True):
    """A call without arguments, the schema of its tool, and what goes out of it."""

    schema: dict[str, Any]
    arguments: Any
    written: str
    problem: str | None = None
    name: str = "ping"
    finish: str = "tool_calls"


EMPTY: dict[str, Any] = {"type": "object", "properties": {}}
OPTIONAL: dict[str, Any] = {"type": "object", "properties": {"zone": {"type": "string"}}}
REQUIRED = {**OPTIONAL, "required": ["zone"]}
SOMETHING = {**OPTIONAL, "minProperties": 1}
BY_REFERENCE = {"type": "object", "$defs": {"zoned": REQUIRED}, "$ref": "#/$defs/zoned"}
BY_CONDITION = {**OPTIONAL, "if": {"maxProperties": 0}, "then": {"required": ["zone"]}}
NO_ARGUMENTS: dict[str, NoArguments] = {
    "an empty text": NoArguments(EMPTY, "", "{}"),
    "null": NoArguments(EMPTY, None, "{}"),
    "none, where all are optional": NoArguments(OPTIONAL, "", "{}"),
    "none, under another spelling of the name": NoArguments(EMPTY, "", "{}", "tool_name_repaired", name="Ping"),
    "null as text": NoArguments(EMPTY, "null", "{}", "argument_dropped"),
    "blanks": NoArguments(EMPTY, " ", " {}"),
    "none, where some are required": NoArguments(REQUIRED, "", "", "incomplete_arguments"),
    "none, where some are required, under another spelling": NoArguments(
        REQUIRED, "", "", "incomplete_arguments", name="functions.ping"
    ),
    "null as text, where some are required": NoArguments(REQUIRED, "null", "null", "invalid_arguments"),
    "none, where an empty object does not fit": NoArguments(SOMETHING, "", "", "incomplete_arguments"),
    "none, where some are required by reference": NoArguments(BY_REFERENCE, "", "", "incomplete_arguments"),
    "none, where some are required on a condition": NoArguments(BY_CONDITION, "", "", "incomplete_arguments"),
    "null as text, where an empty object does not fit": NoArguments(SOMETHING, "null", "null", "invalid_arguments"),
    "none, as a limit cut them off": NoArguments(EMPTY, "", "", "incomplete_arguments", finish="length"),
    "none, as a filter cut them off": NoArguments(EMPTY, "", "", "incomplete_arguments", finish="content_filter"),
    "none, of no tool": NoArguments(EMPTY, "", "", "unknown_tool", name="look"),
}


@both
@pytest.mark.parametrize("odd", NO_ARGUMENTS)
def test_a_call_without_arguments(gateway: str, model: ModelServer, odd: str, stream: bool) -> None:
    case = NO_ARGUMENTS[odd]
    answer = chat(call(case.name, case.arguments, index=0, id="a"), finish=case.finish)
    model.plays(answer, *[answer] * 3)
    tool = {"type": "function", "function": {"name": "ping", "parameters": case.schema}}
    reply = request(gateway + CHAT, body(tools=[tool], stream=stream))
    got = assembled(reply.events).message if stream else reply.json["choices"][0]["message"]
    assert [made["function"]["arguments"] for made in got["tool_calls"]] == [case.written]
    assert case.problem in (reply.problems or (None,))
    if case.written.endswith("{}"):
        assert len(model.asked) == 1


@both
@pytest.mark.parametrize("schema", [REQUIRED, SOMETHING, BY_REFERENCE, BY_CONDITION])
def test_a_call_that_lacks_its_arguments_is_incomplete_on_every_api(
    gateway: str, model: ModelServer, schema: dict[str, Any], stream: bool
) -> None:
    model.plays(*[chat(call("ping", "", index=0, id="a"), finish="tool_calls")] * 8)
    asked: dict[str, Any] = {"model": "native", "messages": [{"role": "user", "content": "Hi."}]}
    tools: list[dict[str, Any]] = [{"name": "ping", "input_schema": schema}]
    message = message_of(gateway, {**asked, "tools": tools}, stream=stream)
    assert (message["stop_reason"], len(message["content"])) == ("max_tokens", int(stream))
    tools = [{"type": "function", "name": "ping", "parameters": schema, "strict": False}]
    reply = request(gateway + "/v1/responses", {"model": "native", "input": "Hi.", "tools": tools, "stream": stream})
    response = named_events(reply)[-1][1]["response"] if stream else reply.json
    assert [(item["status"], item["arguments"]) for item in response["output"]] == [("incomplete", "")]


def test_calls_without_arguments_beside_others(gateway: str, model: ModelServer) -> None:
    ping = {"type": "function", "function": {"name": "ping", "parameters": EMPTY}}
    deltas = (call("ping", "", index=0, id="a"), call(NAME, ARGUMENTS, index=1, id="b"), call("ping", "", index=2))
    model.plays(chat(*deltas, finish="tool_calls"))
    got = ask(gateway, body(tools=[*TOOLS, ping]), stream=True)
    assert got.calls == [("ping", {}), PARIS, ("ping", {})]


def test_a_name_that_is_certain_goes_out_before_its_arguments(gateway: str, model: ModelServer) -> None:
    gate = model.gate()
    head, *rest = calling(NAME, ARGUMENTS).steps[1:]
    model.plays(Answer((head, gate, *rest)))
    with Live(gateway + CHAT, json.dumps(body(stream=True)).encode()) as live:
        events = live.events()
        while b'"name":"get_weather"' not in next(events):
            pass
        gate.open()
        assert any(b"city" in event for event in events)
