"""The library towards its caller: mistakes raise `RequestError` that says what was wrong, whatever the dialect."""

import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any, Final

import pytest

import callwright
from callwright import Parser, RequestError
from callwright.dialects.base import dialect_names, get_dialect, read_options
from callwright.openai_format.messages import read_conversation
from tests.support.outputs import ARGUMENTS, QUESTION, TOOLS, WRITTEN

IMAGE = {"type": "image_url", "image_url": {"url": "x"}}
ANY: Any = None
CALL: Any = {"name": "get_weather", "arguments": {"city": "Paris"}}
NAMED = {"type": "function", "function": {"name": "get_wether"}}
every_dialect = pytest.mark.parametrize("dialect", callwright.dialects())


def fed(*texts: Any) -> Parser:
    parser = Parser("json")
    for text in texts:
        parser.feed(text)
    return parser


def finished() -> Parser:
    parser = fed("Hi")
    parser.finish()
    return parser


def write(*calls: Any) -> str:
    return callwright.write(calls, dialect="hermes")


# What is called, the param of its error, and words of the message.
MISTAKES: dict[str, tuple[Callable[[], object], str | None, tuple[str, ...]]] = {
    "no dialect": (lambda: callwright.parse("Hi", dialect=ANY), "dialect", ("a string", "null")),
    "a dialect that is a list": (lambda: callwright.render([QUESTION], dialect=["json"]), "dialect", ("array",)),  # type: ignore[arg-type]
    "a dialect that is unknown": (lambda: write_in("jsn"), "dialect", ("'jsn'", "Did you mean 'json'?")),
    "an output that is none": (lambda: callwright.parse(ANY, dialect="json"), "output", ("null",)),
    "an output that is bytes": (lambda: callwright.parse(b"Hi", dialect="json"), "output", ("a string", "bytes")),  # type: ignore[arg-type]
    "a piece that is bytes": (lambda: fed(b"Hi"), "text", ("a string", "bytes")),
    "a piece that is none": (lambda: fed(None), "text", ("a string", "null")),
    "a piece behind the end": (lambda: finished().feed("Hi"), None, ("feed()", "finish()", "another")),
    "a second end": (lambda: finished().finish(), None, ("finish()", "another")),
    "a start that is none": (lambda: Parser("json", start="nope"), "start", ("'nope'", "'reasoning'", "'message'")),
    "a check that is none": (lambda: Parser("json", check="strict"), "check", ("'strict'", "'verbatim'")),  # type: ignore[arg-type]
    "an end that is none": (
        lambda: callwright.parse("Hi", dialect="json", finish_reason="eos"),  # type: ignore[arg-type]
        "finish_reason",
        ("'eos'", "'stop'", "'length'"),
    ),
    "a choice that nobody offers": (
        lambda: Parser("json", tools=TOOLS, tool_choice=NAMED),
        "tool_choice",
        ("no tool is called 'get_wether'", "Did you mean 'get_weather'?"),
    ),
    "a choice of a prompt that nobody offers": (
        lambda: callwright.render([QUESTION], dialect="harmony", tools=TOOLS, tool_choice=NAMED),
        "tool_choice",
        ("no tool is called 'get_wether'", "Did you mean 'get_weather'?"),
    ),
    "a choice without tools": (
        lambda: callwright.parse("Hi", dialect="json", tool_choice=NAMED),
        "tool_choice",
        ("'tool_choice' is only allowed when 'tools' are specified",),
    ),
    "tools that are none": (lambda: Parser("json", tools=5), "tools", ("an array", "an integer")),  # type: ignore[arg-type]
    "messages that are none": (lambda: callwright.render(ANY, dialect="json"), "messages", ("an array",)),
    "an option that is none": (lambda: callwright.render([QUESTION], dialect="json", efort="low"), "efort", ("efort",)),
    "calls that are one": (lambda: callwright.write(CALL, dialect="json"), "calls", ("an array", "an object")),
    "a call that is a name": (lambda: write("get_weather"), "calls[0]", ("an object", "a string")),
    "a call without a name": (lambda: write(CALL, {"arguments": {}}), "calls[1].name", ("Missing",)),
    "a call whose name is a number": (lambda: write({"name": 5}), "calls[0].name", ("a string", "an integer")),
    "a tool call without a name": (lambda: write({"function": {}}), "calls[0].function.name", ("Missing",)),
    "a tool call that is a name": (lambda: write({"function": "f"}), "calls[0].function", ("an object",)),
    "arguments that are no JSON": (lambda: write({**CALL, "arguments": {"x": object()}}), "calls[0]", ("JSON",)),
    "a schema that is none": (lambda: callwright.strict_problems(ANY), "schema", ("an object", "null")),
    "a schema that is a text": (lambda: callwright.strict_problems("{}"), "schema", ("an object", "a string")),  # type: ignore[arg-type]
    "a tool that is none": (lambda: callwright.typescript(ANY), "tools[0]", ("an object", "null")),
}


def write_in(dialect: str) -> str:
    return callwright.write([CALL], dialect=dialect)


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_of_the_caller_is_told(case: str) -> None:
    mistake, param, words = MISTAKES[case]
    with pytest.raises(RequestError) as raised:
        mistake()
    assert raised.value.param == param
    assert not [word for word in words if word not in raised.value.message], raised.value.message


@every_dialect
def test_calls_are_written_alike_in_either_shape(dialect: str) -> None:
    shapes: list[dict[str, Any]] = [
        CALL,
        {**CALL, "arguments": '{"city":"Paris"}'},
        {"id": "call_1", "type": "function", "function": {**CALL, "arguments": '{"city":"Paris"}'}},
        {"function": CALL},
    ]
    written = {callwright.write([shape], dialect=dialect) for shape in shapes}
    assert len(written) == 1
    turn = callwright.parse(written.pop(), dialect=dialect, tools=TOOLS)
    assert [(call.name, call.arguments) for call in turn.calls] == [("get_weather", '{"city":"Paris"}')]


def test_what_a_turn_gives_back_can_be_written_again() -> None:
    turn = callwright.parse(WRITTEN["hermes"]["call"], dialect="hermes", tools=TOOLS)
    (call,) = turn.to_chat_message()["tool_calls"]
    assert f'{{"name": "get_weather", "arguments": {ARGUMENTS}}}' in callwright.write([call], dialect="hermes")


@every_dialect
def test_a_prompt_that_holds_text_only_refuses_an_image(dialect: str) -> None:
    content = [{"type": "text", "text": "What is this?"}, IMAGE]
    with pytest.raises(RequestError) as raised:
        callwright.render([QUESTION, {"role": "user", "content": content}], dialect=dialect)
    assert "'image_url' at messages[1].content[1]" in raised.value.message
    assert raised.value.code == "unsupported_value"
    assert raised.value.param == "messages[1].content[1]"


@every_dialect
def test_messages_for_a_chat_endpoint_keep_an_image(dialect: str) -> None:
    conversation = read_conversation([{"role": "user", "content": [IMAGE]}], None, None)
    (message,) = get_dialect(dialect).messages(conversation, read_options(dialect, {}))[-1:]
    assert message["content"] == [IMAGE]


HALF: Final = {"type": "object", "properties": {"a\ud800": {"enum": ["\ud83d"]}}, "required": ["a\ud800"]}


def test_half_a_surrogate_pair_in_a_schema_fails_nothing() -> None:
    assert callwright.loads('{"A": 1', HALF) == {"A": 1}
    assert callwright.strict_problems({**HALF, "additionalProperties": False})
    tool = {"type": "function", "function": {"name": "ping", "parameters": HALF}}
    turn = callwright.parse(
        '<tool_call>{"name": "ping", "arguments": {"a": 1}}</tool_call>', dialect="hermes", tools=[tool]
    )
    assert [problem.kind for problem in turn.problems] == ["invalid_arguments"]


DEEP = [{"type": "function", "function": {"name": "f", "parameters": {"properties": {"x": {"type": "array"}}}}}]


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_of_arguments_that_are_nested_too_deeply_nothing_is_lost(size: int) -> None:
    arguments = '{"x": ' + "[" * 200 + "]" * 200 + "}"
    output = f'<tool_call>{{"name": "f", "arguments": {arguments}}}</tool_call>'
    pieces = [output[at : at + size] for at in range(0, len(output), size)]
    turn = callwright.parse(pieces, dialect="hermes", tools=DEEP)
    assert [call.arguments for call in turn.calls] == [arguments]
    assert "non_json_arguments" in {problem.kind for problem in turn.problems}


def test_a_schema_that_holds_itself_is_refused() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    schema["properties"]["x"] = schema
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    with pytest.raises(callwright.RequestError, match="nested"):
        callwright.parse("x", dialect="hermes", tools=tools)


def test_errors_of_a_server_travel_between_processes() -> None:
    error = callwright.UpstreamError("no", fault="status", upstream="a", status=503, said="no, never")
    found = pickle.loads(pickle.dumps(error))
    assert (str(found), vars(found)) == (str(error), vars(error))


@pytest.mark.parametrize("first", ["callwright.dialects()", "import callwright.dialects.base", "callwright.dialects"])
@pytest.mark.processes
def test_the_package_of_dialects_and_the_function_are_one(first: str) -> None:
    program = (
        f"import callwright\n{first}\nimport callwright.dialects.hermes as h\nprint(len(callwright.dialects()), h)"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.startswith(str(len(callwright.dialects()))), done.stderr


@pytest.mark.parametrize("output", [b"x", {"a": 1}, None])
def test_an_output_that_is_no_text_is_refused(output: Any) -> None:
    with pytest.raises(callwright.RequestError, match="output"):
        callwright.parse(output, dialect="hermes")


@pytest.mark.parametrize("dialect", [callwright, callwright.ResponseTemplate, 5])
def test_a_dialect_that_is_none_is_refused(dialect: Any) -> None:
    with pytest.raises(callwright.RequestError, match="dialect"):
        callwright.parse("x", dialect=dialect)


@pytest.mark.parametrize("dialect", dialect_names())
def test_arguments_that_are_no_object_are_not_lost_when_they_are_written(dialect: str) -> None:
    assert "KEEP" in callwright.write([{"name": "note", "arguments": '{"text": "KEEP",}'}], dialect=dialect)
    for refused in ('["KEEP"]', "KEEP", '{"text": "KEEP"', '{"text": "KEEP", "n": }'):
        with pytest.raises(RequestError, match="KEEP") as error:
            callwright.write([{"name": "note", "arguments": refused}], dialect=dialect)
        assert error.value.param == "calls[0].arguments"
