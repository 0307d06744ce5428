"""White space in constrained JSON is bounded, whatever the server is told: a model may write blanks for ever."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest
from llguidance import LLMatcher

from callwright.constraints.compile import compiled, constraint_key
from callwright.constraints.gbnf_writer import gbnf
from callwright.constraints.json_schema import calls_schema
from callwright.constraints.schema_subset import SPACING, projected
from callwright.constraints.structural_tag import structural_tag
from callwright.constraints.tree import Json
from callwright.conversation import FunctionTool
from tests.support.constraint_cases import SHAPED, constraint
from tests.support.grammar_engines import Llguidance, xgrammar_judge

SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "a": {"type": "integer"},
        "b": {"type": "array", "items": {"type": "string"}},
        "c": {},
        "d": {"type": "object", "additionalProperties": {"type": "number"}},
    },
    "required": ["a"],
    "additionalProperties": False,
}
TIGHT: Final = (
    '{"a":1}',
    '{"a": 1, "b": ["x", "y"]}',
    '{"a":1,"c":{"e": [1, 2]}}',
    '{"a": 1, "d": {"e": 2.5}}',
    '{"a": 1, "b": ["   "]}',
)
LOOSE: Final = (
    '{"a":  1}',
    '{"a":\n\n1}',
    '{"a": 1,   "b": ["x"]}',
    '{"a": 1, "b": ["x",  "y"]}',
    '{"a": 1, "c": {"e":    [1]}}',
    '{"a": 1, "c": [1,  2]}',
    '{"a": 1, "d": {"e":\t\t2.5}}',
    '{    "a": 1}',
)


def test_llguidance_takes_a_blank_between_two_parts_and_not_two() -> None:
    held = Llguidance(LLMatcher.grammar_from_json_schema({**projected(SCHEMA, "llguidance"), **SPACING}))
    assert [text for text in TIGHT if not held.accepts(text)] == []
    assert [text for text in LOOSE if held.accepts(text)] == []


def test_so_do_xgrammar_and_gbnf() -> None:
    judge = xgrammar_judge()
    for grammar in (json.dumps(structural_tag(Json(SCHEMA))), gbnf(Json(SCHEMA)).grammar):
        accepts = judge(grammar)
        assert [text for text in TIGHT if not accepts(text)] == []
        assert [text for text in LOOSE if accepts(text)] == []


@pytest.mark.parametrize("parallel", [False, True])
def test_a_schema_of_calls_says_it_to_servers_with_llguidance(parallel: bool) -> None:
    schema = calls_schema([FunctionTool("f", parameters=SCHEMA)], parallel=parallel)
    held = Llguidance(LLMatcher.grammar_from_json_schema(schema))
    around = '{"tool_calls": [{"name": "f", "arguments": %s}]}' if parallel else '{"name": "f", "arguments": %s}'
    assert [text for text in TIGHT if not held.accepts(around % text)] == []
    assert [text for text in LOOSE if held.accepts(around % text)] == []


def _schemas(value: Any) -> Iterator[Mapping[str, Any]]:
    """Every place of a tag that is held to a schema."""
    if isinstance(value, dict):
        if value.get("type") == "json_schema":
            yield value
            return
        for inner in value.values():
            yield from _schemas(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _schemas(inner)


@pytest.mark.parametrize("name", SHAPED)
def test_every_schema_in_a_tag_has_its_bound(name: str) -> None:
    given = constraint(name)
    found = compiled(given, "xgrammar", constraint_key(given))
    assert found is not None
    assert [place for place in _schemas(json.loads(found.text)) if place["max_whitespace_cnt"] != 1] == []
