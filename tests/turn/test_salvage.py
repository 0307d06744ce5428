"""What a server's own parser could not read is read here: calls and text instead of its error."""

import json
from typing import Any

import pytest

from callwright.gateway.config.config import ModelConfig
from tests.conftest import Served
from tests.support.http_client import CHAT, ask, request
from tests.support.outputs import QUESTION, TOOLS
from tests.support.servers import Answer, ModelServer, chunk, said, sse, whole

PARIS = {"city": "Paris"}
PEG = "The model produced output that does not match the expected peg-native format"
MAIL = {"to": "a@b.c", "text": "say \"hi\" it's 5 o'clock"}
NAMED = {"type": "function", "function": {"name": "get_weather"}}


def ollama(raw: str) -> Answer:
    message = f"error parsing tool call: raw='{raw}', err=invalid character 'W' looking for beginning of value"
    return whole({"error": {"message": message, "type": "api_error", "param": None, "code": None}}, 500)


def streamed(*texts: str, message: str = PEG, **delta: str) -> Answer:
    """llama.cpp: the text comes, then the error."""
    error = {"error": {"code": 500, "message": message, "type": "server_error"}}
    return Answer(sse(*(chunk({"content": text}) for text in texts), *([chunk(delta)] if delta else []), error))


def again(answer: Answer, stream: bool) -> list[Answer]:
    """The answers of a server: one that fails on a whole answer is asked for a stream, which keeps the text."""
    return [answer] if stream or "choices" in answer.text else [answer, answer]


def block(arguments: str) -> str:
    return f'<tool_call>\n{{"name": "get_weather", "arguments": {arguments}}}\n</tool_call>'


CALLS: dict[str, tuple[Answer, list[tuple[str, Any]]]] = {
    "Ollama, broken arguments": (ollama('{"city": "Paris",}'), [("get_weather", PARIS)]),
    "Ollama, words before them": (ollama('We need the weather. {"city": "Paris"}'), [("get_weather", PARIS)]),
    "Ollama, a whole call": (ollama('{"name": "get_weather", "arguments": {city: "Paris"}}'), [("get_weather", PARIS)]),
    "Ollama, long ones": (
        ollama(json.dumps({**MAIL, "text": "long " * 400})[:-1] + ",}"),
        [("send_mail", {**MAIL, "text": "long " * 400})],
    ),
    "Ollama, quotes in them": (ollama(json.dumps(MAIL) + "}"), [("send_mail", MAIL)]),
    "llama.cpp": (streamed('<tool_call>\n{"name"', block('{"city": "Paris",}')[19:]), [("get_weather", PARIS)]),
    "llama.cpp, a text and a call": (streamed("One moment.\n", block(json.dumps(PARIS))), [("get_weather", PARIS)]),
    "llama.cpp, the rest of the text": (
        streamed(message=f"Failed to parse input at pos 0: {block(json.dumps(PARIS))}"),
        [("get_weather", PARIS)],
    ),
    "llama.cpp, the rest of a text that has come": (
        streamed(block(json.dumps(PARIS)), message="Failed to parse input at pos 12: {}}\n</tool_call>"),
        [("get_weather", PARIS)],
    ),
    "llama.cpp, with status 500": (
        whole({"error": {"code": 500, "message": f"Failed to parse input at pos 3: {block(json.dumps(PARIS))}"}}, 500),
        [("get_weather", PARIS)],
    ),
    "vLLM, as content": (
        said("<tool_call>\n", '{"name": "get_weather", "arguments": {"city": "Paris"}}\n'),
        [("get_weather", PARIS)],
    ),
}


def asked(gateway: str, stream: bool, **fields: Any) -> Any:
    return ask(gateway, {"model": "native", "messages": [QUESTION], "tools": TOOLS, **fields}, stream=stream)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("choice", ["auto", "required"])
@pytest.mark.parametrize("failure", CALLS)
def test_a_call_that_the_server_could_not_read_is_made(
    gateway: str, model: ModelServer, failure: str, choice: str, stream: bool
) -> None:
    answer, calls = CALLS[failure]
    model.plays(*again(answer, stream))
    got = asked(gateway, stream, tool_choice=choice)
    assert got.calls == calls
    assert got.finish_reason == "tool_calls"


@pytest.mark.parametrize("failure", [name for name in CALLS if "vLLM" not in name])
def test_it_is_named(gateway: str, model: ModelServer, failure: str) -> None:
    model.plays(*again(CALLS[failure][0], False))
    reply = request(gateway + CHAT, {"model": "native", "messages": [QUESTION], "tools": TOOLS})
    assert reply.status == 200
    assert reply.problems["call_unread"] == 1


@pytest.mark.parametrize("stream", [False, True])
def test_a_named_choice_says_whose_arguments_they_are(gateway: str, model: ModelServer, stream: bool) -> None:
    model.plays(*again(ollama('{"city": "Paris"}}'), stream))
    assert asked(gateway, stream, tool_choice=NAMED).calls == [("get_weather", PARIS)]


TEXTS: dict[str, tuple[Answer, str]] = {
    "Ollama": (ollama("I would say that it is sunny."), "I would say that it is sunny."),
    "llama.cpp": (streamed("It is ", "sunny."), "It is sunny."),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("failure", TEXTS)
def test_a_text_that_is_no_call_is_the_answer(gateway: str, model: ModelServer, failure: str, stream: bool) -> None:
    answer, text = TEXTS[failure]
    model.plays(*again(answer, stream))
    got = asked(gateway, stream)
    assert got.message["content"] == text
    assert got.finish_reason == "stop"


@pytest.mark.parametrize("stream", [False, True])
def test_where_a_call_is_demanded_the_model_is_asked_again(serve: Served, model: ModelServer, stream: bool) -> None:
    gateway = serve(ModelConfig(name="native", upstream=model.url, retries=1))
    answers = [ollama("I would say that it is sunny."), CALLS["Ollama, broken arguments"][0]]
    model.plays(*(each for answer in answers for each in again(answer, stream)))
    assert asked(gateway, stream, tool_choice="required").calls == [("get_weather", PARIS)]
    assert [sent.body["stream"] for sent in model.asked] == ([True] * 2 if stream else [False, True] * 2)


@pytest.mark.parametrize("failure", ["no text", "another reason"])
def test_an_error_without_the_text_stays_an_error(gateway: str, model: ModelServer, failure: str) -> None:
    model.plays(streamed() if failure == "no text" else streamed("It is", message="Compute error."))
    reply = request(gateway + CHAT, {"model": "native", "messages": [QUESTION], "tools": TOOLS})
    assert reply.status == 502
