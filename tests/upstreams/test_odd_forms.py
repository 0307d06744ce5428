"""Odd forms of answers: read where the meaning is plain, refused by name otherwise, and what is left out is told."""

import json
import logging
from typing import Any

import pytest
from msgspec import Struct

from tests.support.http_client import CHAT, Live, ask, assembled, request
from tests.support.outputs import ARGUMENTS, QUESTION, TOOLS
from tests.support.servers import Answer, ModelServer, calling, chat, chunk, said, sse, whole

both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
NAME = "get_weather"
PARIS = (NAME, {"city": "Paris"})
ROME = (NAME, {"city": "Rome"})
ROME_ARGUMENTS = '{"city": "Rome"}'
WAVES = "Hi \N{WAVING HAND SIGN}!"
# A tool whose name begins like another's.
GET = {"type": "function", "function": {"name": "get", "parameters": {"type": "object", "properties": {}}}}


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


def pieces(*names: str | None, **fields: Any) -> Answer:
    """A call whose name comes like that, then its arguments in two pieces."""
    heads = [call(name, "", **({"index": 0} | fields)) for name in names]
    return chat(*heads, call(None, ARGUMENTS[:5], index=0), call(None, ARGUMENTS[5:], index=0), finish="tool_calls")


def halves(event: str) -> Answer:
    """A stream in which the character in an event is cut between the halves of its surrogate pair. `event` is JSON with
    `%s` where the text goes on.
    """
    texts = ["Hi \\ud83d", "\\udc4b!"]
    events = [event % text for text in texts]
    return Answer(sse(*events, chunk({}, "stop"), "[DONE]"))


def whole_calls(**fields: Any) -> Answer:
    """A whole answer with two calls, for both of which `fields` hold."""
    entries = [call(NAME, arguments, **fields)["tool_calls"][0] for arguments in (ARGUMENTS, ROME_ARGUMENTS)]
    return whole({"choices": [{"index": 0, "message": {"tool_calls": entries}, "finish_reason": "tool_calls"}]})


CALLS: dict[str, tuple[Answer, list[tuple[str, Any]]]] = {
    "a name in pieces": (pieces("get_", "weather", id="a"), [PARIS]),
    "a name in three pieces, the first of which is a tool": (pieces("get", "_wea", "ther"), [PARIS]),
    "a name in pieces without a tool": (pieces("look_", "up"), [("look_up", {"city": "Paris"})]),
    "a name that grows": (pieces("get_", "get_weather"), [PARIS]),
    "the whole name in every piece": (pieces(NAME, NAME, NAME), [PARIS]),
    "the name of no tool in every piece": (pieces("look", "look"), [("look", {"city": "Paris"})]),
    "an empty name behind the name": (pieces(NAME, "", None), [PARIS]),
    "an empty name before the name": (pieces("", NAME), [PARIS]),
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
    "arguments as an object": (chat(call(NAME, {"city": "Paris"}, index=0)), [PARIS]),
    "an empty piece of a call behind the next one": (
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
    "none, where an empty object does not fit": NoArguments(SOMETHING, "", "", "non_json_arguments"),
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


class Text(Struct, frozen=True):
    """An answer, and what is read of it."""

    answer: Answer
    content: str | None = "Hi"
    reasoning: str | None = None
    finish_reason: str = "stop"


def parts(*given: Any) -> Answer:
    return chat({"content": list(given)})


def finishing(reason: Any) -> Answer:
    return said("Hi", finish=reason)


def with_usage(**usage: Any) -> Answer:
    return Answer(sse(chunk({"content": "Hi"}), chunk({}, "stop"), {"choices": [], "usage": usage}, "[DONE]"))


TEXTS: dict[str, Text] = {
    "a byte order mark": Text(Answer((b"\xef\xbb\xbf", *said("Hi").steps))),
    "carriage returns": Text(
        Answer(tuple(step.replace(b"\n", b"\r") for step in said("Hi").steps if isinstance(step, bytes)))
    ),
    "data of several lines": Text(
        Answer(
            tuple(
                b"".join(b"data: %b\n" % line.encode() for line in json.dumps(event, indent=2).splitlines()) + b"\n"
                for event in (chunk({"content": "Hi"}), chunk({}, "stop"))
            )
        )
    ),
    "comments and other fields": Text(Answer((b"retry: 5\nid: 1\n: hi\n\n", *said("Hi").steps))),
    "events without an empty line between": Text(
        Answer(tuple(step.replace(b"\n\n", b"\n") for step in said("H", "i").steps if isinstance(step, bytes)))
    ),
    "a character cut in two": Text(halves('{"choices":[{"index":0,"delta":{"content":"%s"}}]}'), WAVES),
    "a character cut in two in reasoning": Text(
        halves('{"choices":[{"index":0,"delta":{"reasoning_content":"%s"}}]}'), None, WAVES
    ),
    "half a character": Text(
        Answer(sse('{"choices":[{"index":0,"delta":{"content":"Hi\\ud83d"}}]}', chunk({}, "stop"), "[DONE]")),
        "Hi\ufffd",
    ),
    "half a character in the middle": Text(
        Answer(sse('{"choices":[{"index":0,"delta":{"content":"H\\ud83di"}}]}', chunk({}, "stop"), "[DONE]")),
        "H\ufffdi",
    ),
    "the other half of a character": Text(
        Answer(sse('{"choices":[{"index":0,"delta":{"content":"\\udc4bHi"}}]}', chunk({}, "stop"), "[DONE]")),
        "\ufffdHi",
    ),
    "content in parts": Text(parts({"type": "text", "text": "H"}, {"type": "text", "text": "i"})),
    "content in parts without types": Text(parts({"text": "Hi"})),
    "content in no parts": Text(chat({"content": []}, {"content": "Hi"})),
    "reasoning in parts": Text(
        parts({"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, {"type": "text", "text": "Hi"}),
        "Hi",
        "Hm.",
    ),
    "a chunk without choices": Text(Answer((*sse({"id": "x"}, {"choices": None}, {"choices": []}), *said("Hi").steps))),
    "a delta null": Text(Answer((*sse({"choices": [{"index": 0, "delta": None}]}), *said("Hi").steps))),
    "an empty finish_reason before the last": Text(
        Answer(sse(chunk({"content": "Hi"}, ""), chunk({}, "stop"), "[DONE]"))
    ),
    **{f"finish_reason {reason}": Text(finishing(reason)) for reason in ("eos", "end_turn", "STOP", "<|eot_id|>")},
    **{f"finish_reason {r}": Text(finishing(r), finish_reason="length") for r in ("max_tokens", "MAX_TOKENS")},
    **{f"finish_reason {r}": Text(finishing(r), finish_reason="content_filter") for r in ("SAFETY", "sensitive")},
}


@both
@pytest.mark.parametrize("odd", TEXTS)
def test_texts(gateway: str, model: ModelServer, odd: str, stream: bool, caplog: pytest.LogCaptureFixture) -> None:
    model.plays(TEXTS[odd].answer)
    got = ask(gateway, body(), stream=stream)
    read = Text(TEXTS[odd].answer, got.message["content"], got.message.get("reasoning"), got.finish_reason)
    assert read == TEXTS[odd]
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@both
@pytest.mark.parametrize(
    ("event", "way"),
    [
        ('{"choices":[{"index":0,"text":"%s","finish_reason":null}]}', "raw-hermes-openai"),
        ('{"index":0,"content":"%s","stop":false}', "raw-hermes-llamacpp"),
    ],
    ids=["completions", "llama.cpp"],
)
def test_a_character_cut_in_two_in_a_completion(
    gateway: str, model: ModelServer, event: str, way: str, stream: bool
) -> None:
    texts = ["Hi \\ud83d", "\\udc4b!"]
    end = {"choices": [{"index": 0, "text": "", "finish_reason": "stop"}], "content": "", "stop": True}
    model.plays(Answer(sse(*(event % text for text in texts), end)))
    assert ask(gateway, body(way), stream=stream).message["content"] == WAVES


class Told(Struct, frozen=True):
    """An answer of which something is left out or read as something else, and how the log names it."""

    answer: Answer
    told: str
    content: str = "Hi"
    usage: tuple[int, int] | None = None


TOLD: dict[str, Told] = {
    "a further choice": Told(
        Answer(
            sse(
                chunk({"content": "Hi"}),
                {"choices": [{"index": 1, "delta": {"content": "No"}}]},
                chunk({}, "stop"),
                {"choices": [{"index": 1, "delta": {}, "finish_reason": "length"}]},
                "[DONE]",
            )
        ),
        "a further answer, which is left out; its index: 1",
    ),
    "an unknown finish_reason": Told(finishing("tired"), "a finish_reason that nobody knows, read as 'stop': 'tired'"),
    "a message that repeats its deltas": Told(
        ended_by({"content": "Hi"}, {"content": "H"}, {"content": "i"}),
        "a message behind its pieces, read only where they said nothing; it has: 'content'",
    ),
    "negative counts": Told(
        with_usage(prompt_tokens=-3, completion_tokens=2), "a token count that is none, read as 0: -3", usage=(0, 2)
    ),
    "counts that are no whole numbers": Told(
        with_usage(prompt_tokens=3, completion_tokens=2.5), "a token count that is none, read as 0: 2.5", usage=(3, 0)
    ),
}


@both
@pytest.mark.parametrize("odd", TOLD)
def test_what_is_left_out_is_told(
    gateway: str, model: ModelServer, odd: str, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    expected = TOLD[odd]
    model.plays(expected.answer)
    got = ask(gateway, body(), stream=stream)
    assert got.message["content"] == expected.content
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == [
        f"{model.url} sent {expected.told}"
    ]
    if expected.usage:
        assert got.usage is not None
        assert (got.usage["prompt_tokens"], got.usage["completion_tokens"]) == expected.usage


@both
@pytest.mark.parametrize(
    ("counts", "read"),
    [
        ({"prompt_tokens": None, "completion_tokens": None}, (0, 0)),
        ({"prompt_tokens": 3.0, "completion_tokens": 2, "prompt_tokens_details": None}, (3, 2)),
    ],
    ids=["null", "floats"],
)
def test_token_counts(
    gateway: str, model: ModelServer, counts: dict[str, Any], read: tuple[int, int], stream: bool
) -> None:
    model.plays(with_usage(**counts))
    usage = ask(gateway, body(), stream=stream).usage
    assert usage is not None
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == read


REFUSED: dict[str, tuple[Answer, str]] = {
    "content that is no text": (
        parts({"type": "image_url", "image_url": {"url": "https://x.test"}}),
        "sent content of a type that is no text: 'image_url'",
    ),
    "an answer that was given up": (finishing("abort"), "gave up its answer (finish_reason 'abort')"),
    "a network error": (finishing("network_error"), "gave up its answer (finish_reason 'network_error')"),
    "an error by its type": (
        Answer((b'event: error\ndata: {"message": "It broke."}\n\n',)),
        "reports an error: It broke.",
    ),
    "an error by its type that is no JSON": (
        Answer((b"event: error\ndata: it broke\n\n",)),
        "reports an error: it broke.",
    ),
    "an error by its object": (
        Answer(sse({"object": "error", "message": "CUDA is out", "code": 500})),
        "reports an error: CUDA is out.",
    ),
    "an error of many levels": (
        Answer(sse('{"error":' + "[" * 500 + "]" * 500 + "}")),
        "reports an error: …",
    ),
    "an error that is no message": (
        Answer(sse({"error": {"loc": 5, "msg": {"a": 1}}})),
        "reports an error: {'loc': 5",
    ),
    "a whole answer without a finish_reason": (
        whole({"choices": [{"index": 0, "message": {"content": "Hi"}}]}),
        "answered without saying why its model stopped (no `finish_reason`).",
    ),
    "a whole answer without choices": (
        whole({"choices": None}),
        "answered without saying why its model stopped (no `finish_reason`).",
    ),
}


@both
@pytest.mark.parametrize("odd", REFUSED)
def test_what_has_no_plain_meaning_is_refused_by_name(gateway: str, model: ModelServer, odd: str, stream: bool) -> None:
    answer, told = REFUSED[odd]
    model.plays(answer)
    reply = request(gateway + CHAT, body(stream=stream))
    error = reply.events[-1]["error"] if stream and reply.status == 200 else reply.error
    assert reply.status in ((200, 502) if stream else (502,))
    assert f"The upstream at {model.url} {told}" in error["message"]


@pytest.mark.parametrize(
    ("said_", "handed_on"),
    [
        *(("7", "7"), (" 7 ", "7"), ("1.5", "2"), ("0", "0"), ("86400", "86400")),
        ("Fri, 31 Dec 2027 23:59:59 GMT", "Fri, 31 Dec 2027 23:59:59 GMT"),
        *((wrong, None) for wrong in ("-5", "86401", "99999999999999", "soon", "", "NaN", "1e9", "7, 8", "١")),
    ],
)
def test_only_a_wait_that_is_one_is_handed_on(
    gateway: str, model: ModelServer, said_: str, handed_on: str | None
) -> None:
    model.plays(whole({"error": {"message": "Slow down."}}, 429, retry_after=said_))
    assert request(gateway + CHAT, body()).headers.get("retry-after") == handed_on
