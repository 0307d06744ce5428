"""Schemas as far as engines can enforce them: never narrower, in Lark, GBNF and structural tags alike."""

import json
from typing import Any

import pytest
from llguidance import LLMatcher

import callwright
from callwright.constraints.gbnf_writer import gbnf
from callwright.constraints.json_schema import calls_schema
from callwright.constraints.lark import lark
from callwright.constraints.schema_subset import Engine, limits_of, projected
from callwright.constraints.tree import Json
from callwright.conversation import FunctionTool
from callwright.schema import validate
from tests.support.grammar_engines import Llguidance

ENGINES: tuple[Engine, ...] = ("llguidance", "xgrammar", "llamacpp")
TEXT = {"type": "string"}


def of(schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    """An object with one parameter, `v`."""
    return {"type": "object", "properties": {"v": schema}, "required": ["v"], "additionalProperties": False, **more}


NODE = {
    "type": "object",
    "properties": {"next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
    "required": ["next"],
    "additionalProperties": False,
}
A = {"type": "object", "properties": {"a": TEXT}, "required": ["a"]}
B = {"type": "object", "properties": {"b": {"type": "integer"}}}
# A schema, values that fit it, values that no engine may let through.
CASES: dict[str, tuple[dict[str, Any], list[Any], list[Any]]] = {
    "text": (of(TEXT), [{"v": ""}, {"v": 'a "b" \\ \n é 東'}], [{"v": 1}, {}, {"w": "x"}]),
    "lengths": (of({"type": "string", "minLength": 2, "maxLength": 3}), [{"v": "ab"}, {"v": '""\n'}], []),
    "huge lengths": (of({"type": "string", "minLength": 3000, "maxLength": 9000}), [{"v": "a" * 3000}], []),
    "pattern": (of({"type": "string", "pattern": "^[a-z]+$"}), [{"v": "ab"}], [{"v": 1}]),
    "lookaround": (of({"type": "string", "pattern": "(?=a)ab"}), [{"v": "ab"}], [{"v": 1}]),
    "format": (of({"type": "string", "format": "date"}), [{"v": "2026-01-15"}], []),
    "unknown format": (of({"type": "string", "format": "color"}), [{"v": "red"}], []),
    "integer": (of({"type": "integer"}), [{"v": 0}, {"v": -12}, {"v": 10**20}], [{"v": "1"}, {"v": 1.5}, {"v": None}]),
    "bounds": (of({"type": "integer", "minimum": 0, "exclusiveMaximum": 10}), [{"v": 0}, {"v": 9}], [{"v": -1}]),
    "odd bounds": (of({"type": "integer", "minimum": 9, "maximum": 1}), [], [{"v": "x"}]),
    "one integer": (of({"type": "integer", "minimum": 3, "maximum": 3}), [{"v": 3}], [{"v": 2}, {"v": 4}, {"v": 33}]),
    "bounds between integers": (
        of({"type": "integer", "minimum": -1.5, "exclusiveMaximum": 1.5}),
        [{"v": -1}, {"v": 0}, {"v": 1}],
        [{"v": -2}, {"v": 2}],
    ),
    "no integer between": (of({"type": "integer", "exclusiveMinimum": 2, "exclusiveMaximum": 3}), [], [{"v": "x"}]),
    "one number": (of({"type": "number", "minimum": 7, "maximum": 7}), [{"v": 7}], [{"v": 6.5}, {"v": 8}]),
    "no number between": (of({"type": "number", "minimum": 7, "exclusiveMaximum": 7}), [], [{"v": "x"}]),
    "huge bounds": (of({"type": "integer", "maximum": 2**70}), [{"v": 7}], [{"v": "x"}]),
    "number": (of({"type": "number", "multipleOf": 0.5}), [{"v": 1.5}, {"v": -2}, {"v": 1e-7}], [{"v": "1"}]),
    "boolean": (of({"type": "boolean"}), [{"v": True}], [{"v": "true"}, {"v": 1}]),
    "enum": (of({"enum": ["a", 1, None]}), [{"v": "a"}, {"v": 1}, {"v": None}], [{"v": "b"}]),
    "enum of objects": (of({"enum": ["a", {"k": [1, 2]}]}), [{"v": "a"}, {"v": {"k": [1, 2]}}], []),
    "const": (of({"const": 'a"b'}), [{"v": 'a"b'}], [{"v": "ab"}]),
    "types": (of({"type": ["string", "null"]}), [{"v": "x"}, {"v": None}], [{"v": 1}]),
    "oneOf": (of({"oneOf": [TEXT, {"type": "integer"}]}), [{"v": "x"}, {"v": 1}], [{"v": True}]),
    "allOf of one": (of({"allOf": [TEXT]}), [{"v": "x"}], [{"v": 1}]),
    "allOf of objects": (of({"allOf": [A, B]}), [{"v": {"a": "x", "b": 1}}], [{"v": {"b": 1}}]),
    "allOf of others": (of({"allOf": [TEXT, {"not": {"const": "b"}}]}), [{"v": "x"}], []),
    "anyOf beside": (of({**A, "anyOf": [{"required": ["b"]}, {"required": ["a"]}]}), [{"v": {"a": "x"}}], [{"v": {}}]),
    "items": (of({"type": "array", "items": TEXT}), [{"v": []}, {"v": ["x", "y"]}], [{"v": [1]}, {"v": "x"}]),
    "counted": (
        of({"type": "array", "items": TEXT, "minItems": 1, "maxItems": 3, "uniqueItems": True}),
        [{"v": ["x"]}, {"v": ["x", "y", "z"]}],
        [{"v": []}, {"v": list("wxyz")}],
    ),
    "tuple": (of({"type": "array", "prefixItems": [TEXT], "items": False}), [{"v": ["x"]}], [{"v": "x"}]),
    "anything": (of({}), [{"v": 1}, {"v": [{"a": None}]}, {"v": "x"}], [{}]),
    "open": ({"type": "object", "properties": {"v": TEXT}}, [{}, {"v": "x"}, {"v": "x", "w": [1]}, {"w": 1}], [[], 1]),
    "map": ({"type": "object", "additionalProperties": {"type": "integer"}}, [{}, {"a": 1, "b": 2}], [{"a": "x"}]),
    "patterns of names": ({"type": "object", "patternProperties": {"^x": TEXT}}, [{"xa": "b"}], [1]),
    "undeclared but required": ({"type": "object", "required": ["w"]}, [{"w": 1}], [{}]),
    "optional": (
        {"type": "object", "properties": dict.fromkeys("abc", TEXT), "required": ["b"], "additionalProperties": False},
        [{"b": ""}, {"a": "", "b": ""}, {"b": "", "c": ""}, {"a": "", "b": "", "c": ""}],
        [{}, {"a": "", "c": ""}, {"c": ""}],
    ),
    "all optional": (
        {"type": "object", "properties": dict.fromkeys("abc", TEXT), "additionalProperties": False},
        [{}, {"b": ""}, {"a": "", "c": ""}],
        [{"d": ""}],
    ),
    "recursion": (
        of({"$ref": "#/$defs/node"}, **{"$defs": {"node": NODE}}),
        [{"v": {"next": None}}, {"v": {"next": {"next": None}}}],
        [{"v": None}, {"v": {"next": 1}}],
    ),
    "recursion to the root": (
        {"type": "object", "properties": {"more": {"$ref": "#"}}, "additionalProperties": False},
        [{}, {"more": {"more": {}}}],
        [{"more": 1}],
    ),
    "foreign reference": (of({"$ref": "http://example.com/x"}), [{"v": 1}], [{}]),
    "broken": (of({"type": "strin", "enum": []}), [{"v": 1}], [{}]),
    "a name like a keyword": (
        of({**of(TEXT), "properties": {"v": TEXT, "$ref": TEXT}}),
        [{"v": {"v": ""}}],
        [{"v": {}}],
    ),
    "a root that is a union": ({"type": "object", "anyOf": [A, B]}, [{"a": "x"}, {"b": 1}], [1, "x"]),
    "deep": (
        of(json.loads('{"type":"object","required":["a"],"properties":{"a":' * 60 + "{}" + "}}" * 60)),
        [{"v": json.loads('{"a":' * 60 + "1" + "}" * 60)}],
        [{"v": 1}],
    ),
}


def texts(value: Any) -> list[str]:
    """How models write it."""
    return [json.dumps(value, ensure_ascii=False), json.dumps(value, ensure_ascii=False, separators=(",", ":"))]


@pytest.mark.parametrize("name", CASES)
def test_lark_lets_through_what_fits_and_not_what_does_not(name: str) -> None:
    schema, fitting, wrong = CASES[name]
    accepts = Llguidance(lark(Json(schema))).accepts
    assert all(accepts(text) for value in fitting for text in texts(value))
    assert not any(accepts(text) for value in wrong for text in texts(value))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", CASES)
def test_no_projection_is_narrower_than_its_schema(name: str, engine: Engine) -> None:
    schema, fitting, _ = CASES[name]
    projection = projected(schema, engine)
    for value in fitting:
        assert validate.is_valid(projection, value), (value, projection)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", CASES)
def test_the_engines_get_no_keyword_that_they_do_not_take(name: str, engine: Engine) -> None:
    told = json.dumps(projected(CASES[name][0], engine))
    for keyword in ("oneOf", "allOf", "not", "uniqueItems", "prefixItems", "patternProperties", "const", "multipleOf"):
        assert f'"{keyword}":' not in told
    if engine == "xgrammar":
        assert "Length" not in told and "pattern" not in told and "color" not in told  # noqa: PT018


@pytest.mark.parametrize("name", CASES)
def test_gbnf_has_a_rule_for_each_name_that_it_uses(name: str) -> None:
    lines = gbnf(Json(CASES[name][0])).grammar.splitlines()
    rules = dict(line.split(" ::= ", 1) for line in lines)
    assert all(rules.values()), rules


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["date", "date-time", "time"])
def test_dates_and_times_are_held_by_every_engine(name: str, engine: Engine) -> None:
    schema = of({"type": "string", "format": name})
    told = projected(schema, engine, limits_of([schema], 400))["properties"]["v"]
    moment = {"date": "2026-01-15", "date-time": "2026-01-15T10:00:00Z", "time": "10:00:00.5-02:00"}[name]
    assert validate.is_valid(told, moment)
    assert not validate.is_valid(told, "soon")


def test_a_strict_schema_with_null_for_optional_may_leave_null_out_of_the_enum() -> None:
    schema = of({"type": ["string", "null"], "enum": ["a", "b"]})
    assert Llguidance(lark(Json(schema))).accepts('{"v":null}')


CALLS = [
    FunctionTool("one", None, of(TEXT)),
    FunctionTool("two", None, of({"$ref": "#/$defs/node"}, **{"$defs": {"node": NODE}})),
    FunctionTool("three", None, {"type": "object", "properties": {"more": {"$ref": "#"}}}),
]


@pytest.mark.parametrize("parallel", [False, True])
def test_the_calls_of_an_answer_are_one_schema(parallel: bool) -> None:
    schema = calls_schema(CALLS, parallel=parallel)
    assert schema["type"] == "object" if parallel else "anyOf" in schema
    good = {"name": "two", "arguments": {"v": {"next": {"next": None}}}}
    for value, fits in ((good, True), ({**good, "name": "one"}, False), ({**good, "name": "four"}, False)):
        whole = {"tool_calls": [value, value]} if parallel else value
        assert validate.is_valid(schema, whole) is fits
        assert Llguidance(_lark(schema)).accepts(json.dumps(whole)) is fits


@pytest.mark.parametrize(
    "text", ['{"name": "one", "arguments": {"v": "x"}}', '{"tool_calls": [{"name": "one", "arguments": {"v": "x"}}]}']
)
def test_the_dialect_for_any_model_reads_them(text: str) -> None:
    turn = callwright.parse(text, dialect="json", tools=[tool.as_openai() for tool in CALLS], tool_choice="required")
    assert [(call.name, call.arguments) for call in turn.calls] == [("one", '{"v": "x"}')]


def _lark(schema: dict[str, Any]) -> str:
    spaced = {**schema, "x-guidance": {"whitespace_flexible": False, "item_separator": ", ?", "key_separator": ": ?"}}
    grammar = f"%llguidance {{}}\nstart: %json {json.dumps(spaced)}\n"
    assert not LLMatcher.validate_grammar(grammar)
    return grammar
