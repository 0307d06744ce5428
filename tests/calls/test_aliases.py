"""What users know about the words of their models: names that mean the same, and whose arguments a bare object is."""

from typing import Any

import pytest

import callwright
from callwright.gateway.config.config import InferenceConfig, ModelConfig
from tests.conftest import Served
from tests.support.http_client import ask
from tests.support.outputs import QUESTION
from tests.support.servers import ModelServer, call_deltas, chat, said


def tool(name: str, *required: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {key: {"type": "string"} for key in required}, "required": list(required)}
    return {"type": "function", "function": {"name": name, "parameters": schema}}


both_ways = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
STOCK = tool("count_stock", "warehouse", "article")
OPEN, CLOSE = tool("open_valve", "valve"), tool("close_valve", "valve")


def asked(gateway: str, way: str, *tools: dict[str, Any]) -> list[tuple[str, Any]]:
    return ask(gateway, {"model": way, "messages": [QUESTION], "tools": list(tools)}, stream=False).calls


@pytest.mark.parametrize("known", [True, False], ids=["with the group", "without"])
def test_a_group_of_names_renames_a_parameter(serve: Served, model: ModelServer, known: bool) -> None:
    groups = [["depot", "warehouse"]] if known else []
    gateway = serve(ModelConfig(name="m", upstream=model.url, model="m", aliases=groups, retries=0))
    model.plays(chat(*call_deltas("count_stock", '{"depot": "north", "article": "rope"}'), finish="tool_calls"))
    ((name, arguments),) = asked(gateway, "m", STOCK)
    assert name == "count_stock"
    assert arguments == {"warehouse" if known else "depot": "north", "article": "rope"}


def test_a_name_that_the_tool_declares_is_never_taken_for_another(serve: Served, model: ModelServer) -> None:
    gateway = serve(ModelConfig(name="m", upstream=model.url, model="m", aliases=[["depot", "warehouse"]], retries=0))
    model.plays(chat(*call_deltas("move", '{"depot": "a", "warehouse": "b"}'), finish="tool_calls"))
    assert asked(gateway, "m", tool("move", "depot", "warehouse")) == [("move", {"depot": "a", "warehouse": "b"})]


@pytest.mark.parametrize("known", [True, False], ids=["with the rule", "without"])
def test_a_rule_settles_whose_arguments_an_object_is(serve: Served, model: ModelServer, known: bool) -> None:
    rules = [InferenceConfig(tool="close_valve", keys=["valve"])] if known else []
    gateway = serve(
        ModelConfig(name="m", upstream=model.url, model="m", mode="prompt", dialect="json", infer=rules, retries=0)
    )
    model.plays(said('{"valve": "B7"}'))
    assert asked(gateway, "m", OPEN, CLOSE) == ([("close_valve", {"valve": "B7"})] if known else [])


def test_a_rule_for_a_tool_that_does_not_take_them_counts_for_nothing(serve: Served, model: ModelServer) -> None:
    rules = [InferenceConfig(tool="count_stock", keys=["valve"])]
    gateway = serve(
        ModelConfig(name="m", upstream=model.url, model="m", mode="prompt", dialect="json", infer=rules, retries=0)
    )
    model.plays(said('{"valve": "B7"}'))
    assert asked(gateway, "m", OPEN, CLOSE, STOCK) == []


OPEN_SCHEMAS = {
    "any value": (
        {"properties": {"file_path": {"type": "object"}}, "additionalProperties": True},
        '{"x": 0, "path": 1}',
    ),
    "texts": (
        {"properties": {"text": {"type": "integer"}}, "additionalProperties": {"type": "string"}},
        '{"x": "a", "content": "hi"}',
    ),
    "two of one group": (
        {"properties": {"limit": {"type": "integer"}}, "additionalProperties": True},
        '{"limit": 5, "count": 5}',
    ),
    "null": (
        {"properties": {"path": {"type": "boolean"}}, "additionalProperties": True},
        '{"file_path": null, "q": "x"}',
    ),
    "free form": ({"properties": {}, "additionalProperties": True}, '{"arguments": {"a": 1}}'),
    "a value that the parameter does not take": ({"properties": {"path": {"type": "object"}}}, '{"file": 1}'),
}


@pytest.mark.parametrize(("schema", "written"), OPEN_SCHEMAS.values(), ids=list(OPEN_SCHEMAS))
def test_what_a_schema_takes_as_it_is_stays(schema: dict[str, Any], written: str) -> None:
    given = {"type": "function", "function": {"name": "keep", "parameters": {"type": "object", **schema}}}
    output = f'<tool_call>\n{{"name": "keep", "arguments": {written}}}\n</tool_call>'
    for pieces in ([output], output):
        turn = callwright.parse(pieces, dialect="hermes", tools=[given])
        assert [call.arguments for call in turn.calls] == [written]
        assert not turn.problems


@both_ways
def test_data_in_the_text_of_a_server_with_tools_of_its_own_is_no_call(
    serve: Served, model: ModelServer, stream: bool
) -> None:
    gateway = serve(ModelConfig(name="m", upstream=model.url, model="m"))
    model.plays(said('{"warehouse": "north", ', '"article": "rope"}'))
    answer = ask(gateway, {"model": "m", "messages": [QUESTION], "tools": [STOCK]}, stream=stream)
    assert (answer.calls, answer.message["content"]) == ([], '{"warehouse": "north", "article": "rope"}')


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ('{"a": "x</think>y"}', {"type": "object"}, {"a": "x</think>y"}),
        ("{'a': 'x</think>y'}", None, {"a": "x</think>y"}),
        ("Hm, {x}.</think>\n{'a': 1}", None, {"a": 1}),
        ('"[1]"', {"type": "string"}, "[1]"),
    ],
)
def test_a_thought_ends_beside_values_only(text: str, schema: dict[str, Any] | None, value: object) -> None:
    assert callwright.loads(text, schema=schema) == value


@pytest.mark.parametrize("blank", [" ", "\n", "\xa0", "\u3000", "\f"])
def test_any_blank_behind_a_torn_string_reads_the_same_in_every_cut(blank: str) -> None:
    given = tool("keep", "limit")
    arguments = f'{{"limit": "{{"name":"f","arguments":{{}}}}{blank}"}}'
    output = f'<tool_call>{{"name": "keep", "arguments": {arguments}}}</tool_call>'
    whole = callwright.parse(output, dialect="hermes", tools=[given])
    assert callwright.parse(iter(output), dialect="hermes", tools=[given]).calls == whole.calls
