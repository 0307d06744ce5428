"""Custom tools: the bare input out of whatever a model wrote, in every dialect, however the text is cut."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

import callwright
from callwright.grammar.grammar import Grammar
from tests.conftest import Served, scripted_models
from tests.support.http_client import CHAT, request
from tests.support.parsing import pieces
from tests.support.servers import ModelServer, completion

NOTE: dict[str, Any] = {"type": "custom", "name": "write_note", "description": "Writes a note."}
ORDER: dict[str, Any] = {
    "type": "custom",
    "name": "place_order",
    "format": {"type": "grammar", "syntax": "lark", "definition": 'start: line+\nline: /[a-z]+/ ": " /[0-9]+/ "\\n"\n'},
}
TOOLS = [NOTE, ORDER]
RESPONSES = "/v1/responses"
DIALECTS = ("harmony", "hermes", "json")


def cuts(text: str) -> Iterator[list[str]]:
    """The text whole, in single characters, and in random pieces."""
    yield [text]
    yield list(text)
    yield from (list(pieces(text, seed)) for seed in range(3))


def harmony(body: str, name: str) -> str:
    return f"<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{body}<|call|>"


def parsed(text: Any, dialect: str = "harmony", **how: Any) -> Any:
    return callwright.parse(text, dialect=dialect, tools=TOOLS, **how)


INPUTS = [
    "plain words",
    'quotes " and \\ backslashes \\n that are none',
    "lines\nand\ttabs\r\n",
    "ünïcode ☃ 😀",
    '{"input": "json in the input"}',
    "```python\nprint(1)\n```",
    " leading and trailing ",
    "<|end|> and </tool_call>",
    "",
]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("text", INPUTS)
def test_a_text_comes_out_as_the_model_meant_it(dialect: str, text: str) -> None:
    calls = [{"name": "write_note", "arguments": {"input": text}}]
    written = callwright.write(calls, dialect=dialect)
    for cut in cuts(written):
        (call,) = parsed(cut, dialect).calls
        assert (call.name, call.kind, call.arguments) == ("write_note", "custom", text)


BODIES = {
    "the bare text": ("buy milk", "buy milk"),
    "bare lines": ("buy\n  milk\n", "buy\n  milk\n"),
    "a JSON string": ('"buy \\"milk\\""', 'buy "milk"'),
    "spaces in the JSON": ('{ "input" : "a\\u00e4\\ud83d\\ude00b" }', "aä😀b"),
    "another name": ('{"text": "buy milk"}', "buy milk"),
    "code with braces": ("function f() { return 1 }", "function f() { return 1 }"),
}


@pytest.mark.parametrize(("body", "wanted"), BODIES.values(), ids=BODIES)
def test_other_forms_are_read_as_the_input_they_hold(body: str, wanted: str) -> None:
    for cut in cuts(harmony(body, "write_note")):
        (call,) = parsed(cut).calls
        assert call.arguments == wanted


RIGHT = "milk: 2\neggs: 12\n"
WRAPPED = {
    "as it is": (RIGHT, []),
    "fenced": (f"```\n{RIGHT}```", ["input_unwrapped"]),
    "fenced with a language": (f"```text\n{RIGHT}```\n", ["input_unwrapped"]),
    "JSON in a fence": (f"```json\n{json.dumps({'input': RIGHT})}\n```", ["input_unwrapped"]),
    "blank lines around": (f"\n\n{RIGHT}\n\n", ["input_unwrapped"]),
    "no line feed at the end": (RIGHT.rstrip(), ["input_unwrapped"]),
}


@pytest.mark.parametrize(("text", "problems"), WRAPPED.values(), ids=WRAPPED)
def test_what_is_put_around_an_input_is_taken_off_when_the_grammar_says_so(text: str, problems: list[str]) -> None:
    for body in (json.dumps({"input": text}), text):
        turn = parsed(harmony(body, "place_order"))
        assert turn.calls[0].arguments == RIGHT
        assert [problem.kind for problem in turn.problems] == problems


def test_json_in_json_is_taken_off_twice() -> None:
    turn = parsed(harmony(json.dumps({"input": json.dumps({"input": RIGHT})}), "place_order"))
    assert turn.calls[0].arguments == RIGHT


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("api", ["chat", "responses"])
def test_a_wrong_input_is_told_to_the_model_and_never_sent(
    serve: Served, model: ModelServer, api: str, stream: bool
) -> None:
    url = serve(*scripted_models(model.url, retries=2))
    wrong = harmony(json.dumps({"input": "milk: two\n"}), "place_order")
    model.plays(completion(wrong), completion(harmony(json.dumps({"input": RIGHT}), "place_order")))
    ask: dict[str, Any] = {"model": "raw-harmony-vllm", "stream": stream}
    if api == "chat":
        custom = {key: it for key, it in ORDER.items() if key != "type"}
        grammar = {key: it for key, it in custom["format"].items() if key != "type"}
        tool = {"type": "custom", "custom": {**custom, "format": {"type": "grammar", "grammar": grammar}}}
        reply = request(url + CHAT, {**ask, "messages": [{"role": "user", "content": "shop"}], "tools": [tool]})
    else:
        reply = request(url + RESPONSES, {**ask, "input": "shop", "tools": [ORDER]})
    assert reply.status == 200, reply.text
    assert "milk: two" not in reply.text
    assert json.dumps(RIGHT).strip('"') in reply.text
    assert "line 1, column 7" in model.asked[1].body["prompt"]


def test_an_input_that_never_fits_ends_as_an_error(serve: Served, model: ModelServer) -> None:
    url = serve(*scripted_models(model.url, retries=1))
    answers = [completion(harmony(json.dumps({"input": text}), "place_order")) for text in ("a", "b")]
    body = {"model": "raw-harmony-vllm", "input": "shop", "tools": [ORDER]}
    model.plays(*answers)
    reply = request(url + RESPONSES, body)
    assert reply.status == 502, reply.text
    assert reply.error["code"] == "upstream_unmet"
    assert reply.headers["x-should-retry"] == "false"
    model.plays(*answers)
    streamed = request(url + RESPONSES, {**body, "stream": True})
    last = json.loads(streamed.pieces[-1].split(b"data: ", 1)[1])
    assert last["type"] == "response.failed"
    assert last["response"]["error"]["code"] == "invalid_prompt"  # for other codes Codex asks again and again
    assert last["response"]["output"] == []


def test_an_input_that_does_not_fit_is_named_with_its_place() -> None:
    (problem,) = parsed(harmony(json.dumps({"input": "milk: 2\neggs: x\n"}), "place_order")).problems
    assert problem.kind == "invalid_input"
    assert "line 2, column 7" in problem.detail


def test_free_text_flows_while_it_is_written() -> None:
    parser = callwright.Parser("harmony", tools=TOOLS)
    parser.feed('<|channel|>commentary to=functions.write_note <|constrain|>json<|message|>{"input": "')
    sent = ["".join(texts(parser.feed(piece))) for piece in ("one ", "two", "\\n", "thr\\u00", "e9e")]
    assert sent == ["one ", "two", "\n", "thr", "ée"]


def texts(events: list[Any]) -> Iterator[str]:
    for event in events:
        if isinstance(event, callwright.ArgumentsDelta):
            yield event.text


def test_an_input_that_is_cut_is_not_complete() -> None:
    whole = harmony(json.dumps({"input": "a long note"}), "write_note")
    for size in range(
        len("<|channel|>commentary to=functions.write_note <|constrain|>json<|message|>"), len(whole) - 10
    ):
        turn = parsed(whole[:size], finish_reason="length")
        assert [call.complete for call in turn.calls] in ([False], []), whole[:size]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_model_is_told_the_grammar(dialect: str) -> None:
    prompt = callwright.render([{"role": "user", "content": "hi"}], dialect=dialect, tools=TOOLS)
    assert "Lark grammar" in prompt.text
    assert "[0-9]+" in prompt.text


def test_a_custom_call_is_written_as_openai_writes_it() -> None:
    message = parsed(harmony('{"input": "x"}', "write_note")).to_chat_message()
    assert message["tool_calls"] == [{"id": "call_0", "type": "custom", "custom": {"name": "write_note", "input": "x"}}]


def test_a_call_of_a_namespace_carries_both_names() -> None:
    tool = {"type": "function", "name": "look_up", "parameters": {"type": "object", "properties": {}}}
    tools = [{"type": "namespace", "name": "library", "tools": [tool]}]
    for written in ("library__look_up", "library.look_up", "look_up"):
        (call,) = callwright.parse(harmony("{}", written), dialect="harmony", tools=tools).calls
        assert (call.namespace, call.name) == ("library", "look_up"), written


def test_equal_grammars_are_equal() -> None:
    assert Grammar("regex", "[a-z]+") == Grammar("regex", "[a-z]+")
    assert hash(Grammar("regex", "[a-z]+")) == hash(Grammar("regex", "[a-z]+"))
    assert Grammar("regex", "[a-z]+") != Grammar("regex", "[0-9]+")
