"""Values whose type the schema leaves open, or that have another type than it wants."""

import json
from typing import Any

import pytest

import callwright
from callwright.dialects.base import dialect_names

VALUES = ['{"a": 1}', "[1, 2]", '{"level": 3}', "{a: 1"]
OPEN: list[dict[str, Any]] = [
    {"anyOf": [{"type": "integer"}, {"type": "string"}]},
    {"type": ["string", "null"]},
    {"type": ["string", "object"]},
]


def tool(level: dict[str, Any]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {"level": level}}
    return {"type": "function", "function": {"name": "set_level", "parameters": parameters}}


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("name", dialect_names())
def test_a_structure_in_place_of_a_number_does_not_fit_and_is_in_no_doubt(name: str, value: str) -> None:
    written = callwright.write([{"name": "set_level", "arguments": {"level": value}}], dialect=name)
    turn = callwright.parse(written, dialect=name, tools=[tool({"type": "integer"})])
    assert [problem.kind for problem in turn.problems] == ["invalid_arguments"]
    assert all(call.complete and json.loads(call.arguments) == {"level": value} for call in turn.calls)


@pytest.mark.parametrize("schema", OPEN, ids=str)
@pytest.mark.parametrize("name", ["deepseek_v32", "deepseek_v4", "deepseek_v41", "hermes", "kimi_k3"])
def test_a_text_stays_one_where_the_format_tells_the_type_and_the_schema_allows_it(
    name: str, schema: dict[str, Any]
) -> None:
    for value in ("12", "null", '{"a": 1}', "slow"):
        written = callwright.write([{"name": "set_level", "arguments": {"level": value}}], dialect=name)
        turn = callwright.parse(written, dialect=name, tools=[tool(schema)])
        assert [json.loads(call.arguments) for call in turn.calls] == [{"level": value}]
        assert not turn.problems


@pytest.mark.parametrize(("kind", "size"), [("circle", 5), ("label", "5")])
@pytest.mark.parametrize("name", dialect_names())
def test_a_constant_that_streamed_chooses_the_type_of_what_follows(name: str, kind: str, size: Any) -> None:
    branches = [
        {"properties": {"kind": {"const": one}, "size": {"type": of}}, "required": ["kind", "size"]}
        for one, of in (("circle", "integer"), ("label", "string"))
    ]
    drawn = {"type": "function", "function": {"name": "draw", "parameters": {"type": "object", "anyOf": branches}}}
    arguments = {"kind": kind, "size": size}
    written = callwright.write([{"name": "draw", "arguments": arguments}], tools=[drawn], dialect=name)
    parser = callwright.Parser(name, tools=[drawn])
    events = [event for piece in written for event in parser.feed(piece)] + list(parser.finish())
    said = "".join([event.text for event in events if isinstance(event, callwright.ArgumentsDelta)])
    assert json.loads(said) == arguments
    assert not [event for event in events if isinstance(event, callwright.Problem)]
