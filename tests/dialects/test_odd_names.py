"""Names of parameters that schemas allow and no identifier is."""

import json

import pytest

import callwright
from callwright.dialects.base import dialect_names

NAMES = ("a>b", "c d", "x.y", "größe", "-n")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dialect", dialect_names())
def test_an_odd_name_of_a_parameter_reads_back(dialect: str, name: str) -> None:
    parameters = {"type": "object", "properties": {"plain": {"type": "string"}, name: {"type": "string"}}}
    tools = [{"type": "function", "function": {"name": "keep", "parameters": parameters}}]
    given = {"plain": "one", name: "two"}
    text = callwright.write([{"name": "keep", "arguments": given}], dialect=dialect)
    for output in (text, list(text)):
        turn = callwright.parse(output, dialect=dialect, tools=tools)
        (call,) = turn.calls
        assert (call.name, json.loads(call.arguments), call.complete) == ("keep", given, True)
