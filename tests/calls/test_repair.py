"""Arguments against schemas: each repair by example, whole and in a stream; and what must not be done."""

import json
from collections.abc import Mapping
from typing import Any, get_args

import pytest

from callwright import ArgumentsDelta, CallEnded, CallStarted, Problem
from callwright.calls.aliases import ParameterAliases
from callwright.calls.fit import repair_and_validate, step_problems
from callwright.calls.repair import Repair, RepairRule
from callwright.calls.streaming_arguments import StreamingArguments
from callwright.calls.toolset import Toolset
from callwright.conversation import FunctionTool, NamedTool
from callwright.events import ProblemKind
from callwright.schema.resolve import branches, wanted_type
from callwright.tolerant_json.codec import encode
from callwright.tolerant_json.reader import read_json
from tests.support.parsing import merged, pieces, read

Schema = dict[str, Any]


def closed(required: str = "", **properties: Any) -> Schema:
    """The schema of an object with these keys and no others."""
    return {**open_(required, **properties), "additionalProperties": False}


def open_(required: str = "", **properties: Any) -> Schema:
    """The schema of an object with these keys and any others."""
    return {"type": "object", "properties": properties, "required": required.split()}


TEXT, WHOLE, NUMBER, FLAG = ({"type": kind} for kind in ("string", "integer", "number", "boolean"))
TEXTS = {"type": "array", "items": TEXT}
WHOLES = {"type": "array", "items": WHOLE}
POINT = closed("x y", x=NUMBER, y=NUMBER)
COMPASS = {"type": "string", "enum": ["north", "south_west", "South"]}
REFERENCES = {
    **closed("at", at={"$ref": "#/$defs/point"}, kind={"$ref": "#/definitions/kinds/compass"}),
    "$defs": {"point": {"$ref": "#/$defs/pair"}, "pair": POINT},
    "definitions": {"kinds": {"compass": COMPASS}},
}
TREE = {
    "type": "object",
    "properties": {"tree": {"$ref": "#/$defs/tree"}},
    "$defs": {"tree": closed("size", size=WHOLE, parts={"type": "array", "items": {"$ref": "#/$defs/tree"}})},
}
LOOP = {"type": "object", "properties": {"next": {"$ref": "#/properties/next"}, "count": WHOLE}}
SELF = {"type": "object", "properties": {"inner": {"$ref": "#"}, "count": WHOLE}, "additionalProperties": False}

Row = tuple[str, Schema, str, str, list[RepairRule]]
# Title, schema, what was written, what goes out, the steps.
ROWS: list[Row] = [
    # coercions
    ("a whole number", closed(n=WHOLE), '{"n": "5"}', '{"n": 5}', ["text_to_integer"]),
    ("a whole number with blanks", closed(n=WHOLE), '{"n": " -12 "}', '{"n": -12}', ["text_to_integer"]),
    ("a whole number with a point", closed(n=WHOLE), '{"n": "5.0"}', '{"n": 5}', ["text_to_integer"]),
    (
        "a large number",
        closed(n=WHOLE),
        '{"n": "123456789012345678901"}',
        '{"n": 123456789012345678901}',
        ["text_to_integer"],
    ),
    ("a number digit by digit", closed(n=NUMBER), '{"n": "1.50"}', '{"n": 1.50}', ["text_to_number"]),
    ("a number with an exponent", closed(n=NUMBER), '{"n": "-2E+3"}', '{"n": -2E+3}', ["text_to_number"]),
    ("null in a text", closed(n={"type": ["integer", "null"]}), '{"n": "nil"}', '{"n": null}', ["text_to_null"]),
    ("a hexadecimal", closed(n=WHOLE), '{"n": "0x10"}', '{"n": 16}', ["text_to_integer"]),
    ("a number in groups", closed(n=WHOLE), '{"n": "1_000"}', '{"n": 1000}', ["text_to_integer"]),
    ("zeros before a number", closed(n=WHOLE), '{"n": "07"}', '{"n": 7}', ["text_to_integer"]),
    ("quotes in a text", closed(n=WHOLE), '{"n": "\\"7\\""}', '{"n": 7}', ["text_to_integer"]),
    ("a number for a member", closed(n={"enum": ["7", 8]}), '{"n": 7}', '{"n": "7"}', ["enum_spelling"]),
    ("a text for a member", closed(n={"enum": ["7", 8]}), '{"n": "8"}', '{"n": 8}', ["enum_spelling"]),
    ("a whole number with a point", closed(n=WHOLE), '{"n": 5.0}', '{"n": 5}', []),
    ("a whole number where any is wanted", closed(n={"type": "number"}), '{"n": 5.0}', '{"n": 5}', []),
    ("a whole number with an exponent", closed(n=WHOLE), '{"n": 5e3}', '{"n": 5000}', []),
    (
        "the branch that a constant behind it chose",
        {"oneOf": [closed(k={"const": "n"}, v=WHOLE), closed(k={"const": "t"}, v=TEXT)]},
        '{"v": "7", "k": "n"}',
        '{"v": 7, "k": "n"}',
        ["text_to_integer"],
    ),
    ("a member in `allOf`", {"allOf": [{"properties": {"n": WHOLE}}]}, '{"n": "7"}', '{"n": 7}', ["text_to_integer"]),
    ("true in a text", closed(f=FLAG), '{"f": "true"}', '{"f": true}', ["text_to_boolean"]),
    ("False in a text", closed(f=FLAG), '{"f": " False "}', '{"f": false}', ["text_to_boolean"]),
    ("the digits of a number", closed(t=TEXT), '{"t": 1.10}', '{"t": "1.10"}', ["scalar_to_text"]),
    ("zeros before a number", closed(t=TEXT), '{"t": 01067}', '{"t": "01067"}', []),
    ("a boolean as a text", closed(t=TEXT), '{"t": true}', '{"t": "true"}', ["scalar_to_text"]),
    ("Python's boolean as a text", closed(t=TEXT), '{"t": True}', '{"t": "True"}', ["scalar_to_text"]),
    (
        "an object as a text",
        closed(t=TEXT, n=WHOLE),
        '{"t": {"a": [1, "b"]}}',
        '{"t": "{\\"a\\": [1, \\"b\\"]}"}',
        ["object_to_text"],
    ),
    ("a list in a text", closed(l=WHOLES), '{"l": "[1, 2]"}', '{"l": [1, 2]}', ["json_in_text"]),
    (
        "an object in a text",
        closed(p=POINT),
        '{"p": "{\\"x\\": 1, \\"y\\": 2}"}',
        '{"p": {"x": 1, "y": 2}}',
        ["json_in_text"],
    ),
    (
        "a tolerant object in a text",
        closed(p=POINT),
        "{\"p\": \"{'x': '1', y: 2,}\"}",
        '{"p": {"x": 1, "y": 2}}',
        ["json_in_text", "text_to_number"],
    ),
    (
        "an object in a text in a text",
        closed(p=POINT),
        json.dumps({"p": json.dumps(json.dumps({"x": 1, "y": 2}))}),
        '{"p": {"x": 1, "y": 2}}',
        ["json_in_text"],
    ),
    ("one value for a list", closed(l=TEXTS), '{"l": "bow"}', '{"l": ["bow"]}', ["value_to_list"]),
    (
        "one object for a list",
        closed(l={"type": "array", "items": POINT}),
        '{"l": {"x": 1, "y": 2}}',
        '{"l": [{"x": 1, "y": 2}]}',
        ["value_to_list"],
    ),
    (
        "one text for a list of numbers",
        closed(l=WHOLES),
        '{"l": "3"}',
        '{"l": [3]}',
        ["text_to_integer", "value_to_list"],
    ),
    ("a list of one for a text", closed(t=TEXT), '{"t": ["bow"]}', '{"t": "bow"}', ["item_of_list"]),
    ("a list of one for a number", closed(n=WHOLE), '{"n": [4]}', '{"n": 4}', ["item_of_list"]),
    (
        "a list of one for an object",
        closed(p=POINT),
        '{"p": [{"x": 1, "y": "2"}]}',
        '{"p": {"x": 1, "y": 2}}',
        ["item_of_list", "text_to_number"],
    ),
    ("the case of a member", closed(c=COMPASS), '{"c": "NORTH"}', '{"c": "north"}', ["enum_spelling"]),
    (
        "blanks and strokes of a member",
        closed(c=COMPASS),
        '{"c": "South-West "}',
        '{"c": "south_west"}',
        ["enum_spelling"],
    ),
    (
        "an enumeration without a type",
        closed(c={"enum": ["Bow", "Stern"]}),
        '{"c": "bow"}',
        '{"c": "Bow"}',
        ["enum_spelling"],
    ),
    (
        "null for what may be left out",
        closed("t", t=TEXT, n=WHOLE),
        '{"t": "a", "n": null}',
        '{"t": "a"}',
        ["null_left_out"],
    ),
    ("null at the begin", closed("t", t=TEXT, n=WHOLE), '{"n": None, "t": "a"}', '{ "t": "a"}', ["null_left_out"]),
    ("null alone", closed(n=WHOLE), '{"n": null}', "{}", ["null_left_out"]),
    (
        "numbers in a list",
        closed(l=WHOLES),
        '{"l": ["1", 2, "3"]}',
        '{"l": [1, 2, 3]}',
        ["text_to_integer", "text_to_integer"],
    ),
    (
        "deep in lists and objects",
        closed(a={"type": "array", "items": closed(b=closed(c=WHOLES))}),
        '{"a": [{"b": {"c": ["7"]}}]}',
        '{"a": [{"b": {"c": [7]}}]}',
        ["text_to_integer"],
    ),
    (
        "values of a map",
        closed(m={"type": "object", "additionalProperties": WHOLE}),
        '{"m": {"a": "1", "b": 2}}',
        '{"m": {"a": 1, "b": 2}}',
        ["text_to_integer"],
    ),
    # names
    (
        "an alias",
        closed("file_path", file_path=TEXT),
        '{"path": "a.py"}',
        '{"file_path":  "a.py"}'.replace("  ", " "),
        ["alias"],
    ),
    (
        "an alias of an optional name",
        closed("query", query=TEXT, max_results=WHOLE),
        '{"query": "tide", "limit": 3}',
        '{"query": "tide", "max_results": 3}',
        ["alias"],
    ),
    (
        "an alias in an open schema",
        open_("command", command=TEXT),
        '{"cmd": "ls", "x": 1}',
        '{"command": "ls", "x": 1}',
        ["alias"],
    ),
    (
        "an alias before a good name",
        closed("command", command=TEXT, timeout=WHOLE),
        '{"cmd": "ls", "timeout": "5"}',
        '{"command": "ls", "timeout": 5}',
        ["alias", "text_to_integer"],
    ),
    ("another spelling", closed("max_chars", max_chars=WHOLE), '{"maxChars": 9}', '{"max_chars": 9}', ["spelling"]),
    ("one letter", closed("message", message=TEXT), '{"mesage": "aye"}', '{"message": "aye"}', ["letter"]),
    ("two letters swapped", closed("colour", colour=TEXT), '{"coluor": "red"}', '{"colour": "red"}', ["letter"]),
    (
        "the same under two names",
        closed("path", path=TEXT),
        '{"path": "a", "file_path": "a"}',
        '{"path": "a"}',
        ["same_twice"],
    ),
    (
        "a name in an inner object",
        closed(p=closed("command", command=TEXT)),
        '{"p": {"cmd": "ls"}}',
        '{"p": {"command": "ls"}}',
        ["alias"],
    ),
    (
        "a name and null",
        closed("command", command=TEXT, timeout=WHOLE),
        '{"cmd": "ls", "timeout": null}',
        '{"command": "ls"}',
        ["alias", "null_left_out"],
    ),
    # wrappers
    (
        "a call in the arguments",
        closed("n", n=WHOLE),
        '{"name": "use", "arguments": {"n": 1}}',
        '{"n": 1}',
        ["unwrapped"],
    ),
    (
        "under `parameters`",
        closed("n", n=WHOLE),
        '{"parameters": {"n": "1"}}',
        '{"n": 1}',
        ["unwrapped", "text_to_integer"],
    ),
    ("under the tool's own name", closed("n", n=WHOLE), '{"use": {"n": 1}}', '{"n": 1}', ["unwrapped"]),
    (
        "two wrappers",
        closed("n", n=WHOLE),
        '{"arguments": {"tool": "use", "args": {"n": 1}}}',
        '{"n": 1}',
        ["unwrapped", "unwrapped"],
    ),
    (
        "arguments as a text in a wrapper",
        closed("n", n=WHOLE),
        '{"arguments": "{\\"n\\": 1}"}',
        '{"n": 1}',
        ["unwrapped", "json_in_text"],
    ),
    ("as in the schema", closed("n", n=WHOLE), '{"properties": {"n": 1}}', '{"n": 1}', ["unwrapped"]),
    ("the one parameter in a wrapper", closed("t", t=TEXT), '{"input": "ebb"}', '{"t": "ebb"}', ["value_to_parameter"]),
    ("a number in one", closed("n", n=WHOLE), '{"args": 12}', '{"n": 12}', ["value_to_parameter"]),
    ("arguments as a text", closed("n", n=WHOLE), '"{\\"n\\": 1}"', '{"n": 1}', ["json_in_text"]),
    ("arguments in a list", closed("n", n=WHOLE), '[{"n": 1}]', '{"n": 1}', ["item_of_list"]),
    ("an empty list for no arguments", closed(t=TEXT), "[]", "{}", ["null_left_out"]),
    (
        "arguments in a fence in a text",
        closed("n", n=WHOLE),
        '"```json\\n{\\"n\\": 1}\\n```"',
        '{"n": 1}',
        ["unwrapped"],
    ),
    ("the one parameter", closed("t", t=TEXT), '"high tide"', '{"t": "high tide"}', ["value_to_parameter"]),
    ("a number for the one parameter", closed("n", n=WHOLE), "12", '{"n": 12}', ["value_to_parameter"]),
    ("a boolean for it", closed("b", b={"type": "boolean"}), "true", '{"b": true}', ["value_to_parameter"]),
    (
        "a list for it",
        closed("l", l={"type": "array", "items": TEXT}),
        '["a", "b"]',
        '{"l": ["a", "b"]}',
        ["value_to_parameter"],
    ),
    # schemas
    (
        "references",
        REFERENCES,
        '{"at": {"x": "1", "y": 2}, "kind": "North"}',
        '{"at": {"x": 1, "y": 2}, "kind": "north"}',
        ["text_to_number", "enum_spelling"],
    ),
    (
        "a tree",
        TREE,
        '{"tree": {"size": "3", "parts": [{"size": "1"}]}}',
        '{"tree": {"size": 3, "parts": [{"size": 1}]}}',
        ["text_to_integer", "text_to_integer"],
    ),
    (
        "a schema in itself",
        SELF,
        '{"inner": {"inner": {"count": "2"}}}',
        '{"inner": {"inner": {"count": 2}}}',
        ["text_to_integer"],
    ),
    ("a reference to itself", LOOP, '{"next": "5", "count": "5"}', '{"next": "5", "count": 5}', ["text_to_integer"]),
    (
        "`allOf` around one",
        closed(n={"allOf": [WHOLE], "description": "How many."}),
        '{"n": "5"}',
        '{"n": 5}',
        ["text_to_integer"],
    ),
    (
        "`anyOf` with null",
        closed(n={"anyOf": [WHOLE, {"type": "null"}]}),
        '{"n": "5"}',
        '{"n": 5}',
        ["text_to_integer"],
    ),
    ("null where it may be", closed(n={"anyOf": [WHOLE, {"type": "null"}]}), '{"n": None}', '{"n": null}', []),
    ("a list of types", closed(n={"type": ["integer", "null"]}), '{"n": "5"}', '{"n": 5}', ["text_to_integer"]),
    ("`anyOf` of text and number", closed(n={"anyOf": [WHOLE, TEXT]}), '{"n": "5"}', '{"n": "5"}', []),
    (
        "`oneOf` of objects",
        closed(p={"oneOf": [POINT, closed("name", name=TEXT)]}),
        '{"p": {"x": 1, "y": "2"}}',
        '{"p": {"x": 1, "y": 2}}',
        ["text_to_number"],
    ),
    (
        # MiMo writes unions without a type as text (MiMo-Code#2335).
        "an object in a text for either of two objects",
        closed(v={"anyOf": [{"type": "object"}, {"type": "object", "properties": {"n": WHOLE}}]}),
        '{"v": "{\\"id\\": \\"x\\"}"}',
        '{"v": {"id": "x"}}',
        ["json_in_text"],
    ),
    (
        "a text for either of two kinds of number",
        closed(v={"anyOf": [closed("a", a=WHOLE), closed("a", a=NUMBER)]}),
        '{"v": {"a": "1"}}',
        '{"v": {"a": 1}}',
        ["text_to_integer"],
    ),
    (
        "a union in a union",
        closed(p={"anyOf": [{"anyOf": [FLAG, {"type": "null"}]}, POINT]}),
        '{"p": "True"}',
        '{"p": true}',
        ["text_to_boolean"],
    ),
    (
        "a dispatcher",
        closed("name arguments", name=TEXT, arguments={"type": "object"}),
        '{"name": "use", "arguments": {"n": "1"}}',
        '{"name": "use", "arguments": {"n": "1"}}',
        [],
    ),
    (
        "a dispatcher with faults",
        closed("tool input", tool=TEXT, input=POINT),
        '{"tool": 5, "input": "{\\"x\\": 1, \\"y\\": 2}"}',
        '{"tool": "5", "input": {"x": 1, "y": 2}}',
        ["scalar_to_text", "json_in_text"],
    ),
    ("any value", closed(v={}), '{"v": ["1", null, {"a": "2"}]}', '{"v": ["1", null, {"a": "2"}]}', []),
    ("no schema of items", closed(l={"type": "array"}), '{"l": "[1]"}', '{"l": [1]}', ["json_in_text"]),
]

each = pytest.mark.parametrize(
    ("schema", "written", "out", "rules"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)


@each
def test_arguments_are_made_to_fit(schema: Schema, written: str, out: str, rules: list[RepairRule]) -> None:
    node = read_json(written)
    assert node is not None
    fitted = repair_and_validate(node, "use", Toolset([FunctionTool("use", None, schema)]))
    assert (fitted.text, sorted(step.rule for step in fitted.steps)) == (out, sorted(rules))
    assert not fitted.faults


def streamed(schema: Mapping[str, Any], written: str) -> tuple[str, set[ProblemKind]]:
    """The arguments of a call in a stream and what was said about it; every cut says the same."""
    output = f'<tool_call>\n{{"name": "use", "arguments": {written}}}\n</tool_call>'
    offered = {"use": schema, "other": closed("n", n=WHOLE)}
    tools = [{"type": "function", "function": {"name": name, "parameters": offered[name]}} for name in offered]
    whole = read([output], dialect="hermes", tools=tools)
    for cut in (list(output), *(list(pieces(output, seed)) for seed in range(3))):
        assert merged(read(cut, dialect="hermes", tools=tools)) == merged(whole)
    assert [event.name for event in whole if isinstance(event, CallStarted)] == ["use"]
    assert [event.complete for event in whole if isinstance(event, CallEnded)] == [True]
    arguments = "".join(event.text for event in whole if isinstance(event, ArgumentsDelta))
    return arguments, {event.kind for event in whole if isinstance(event, Problem)}


@each
def test_arguments_are_made_to_fit_in_a_stream(schema: Schema, written: str, out: str, rules: list[RepairRule]) -> None:
    arguments, problems = streamed(schema, written)
    assert json.loads(arguments) == json.loads(out)
    assert arguments.replace(" ", "") == out.replace(" ", "")
    place = "$" if {"unwrapped", "value_to_parameter"} & {*rules} or not written.startswith("{") else "$.x"
    expected = {problem.kind for problem in step_problems(Repair(rule, place) for rule in rules)}
    assert problems - {"json_repaired"} == expected


def test_each_rule_has_an_example() -> None:
    shown = {rule for row in ROWS for rule in row[4]}
    assert shown == {rule for rules in get_args(RepairRule) for rule in get_args(rules)}


# --- what must not be done ---

# Title, schema, arguments that go out as they are, with the problem that they do not fit.
REFUSED: list[tuple[str, Schema, str]] = [
    ("a required one is missing", closed("n", n={**WHOLE, "default": 5}), "{}"),
    ("a constant is missing", closed("k", k={"const": "a"}), "{}"),
    ("the one member is missing", closed("k", k={"enum": ["a"]}), "{}"),
    ("null for a required one", closed("n", n={**WHOLE, "default": 5}), '{"n": null}'),
    ("null in a list", closed(l=WHOLES), '{"l": [1, null]}'),
    ("a fraction is not rounded", closed(n=WHOLE), '{"n": 5.5}'),
    ("a fraction in a text", closed(n=WHOLE), '{"n": "5.5"}'),
    ("nothing is clamped", closed(n={**WHOLE, "maximum": 10}), '{"n": 11}'),
    ("nothing is cut", closed(t={**TEXT, "maxLength": 3}), '{"t": "abcd"}'),
    ("a pattern is not helped", closed(t={**TEXT, "pattern": "^[a-z]+$"}), '{"t": "ABC"}'),
    ("another member", closed(c=COMPASS), '{"c": "nort"}'),
    ("two members with one fold", closed(c={**TEXT, "enum": ["a-b", "a_b"]}), '{"c": "A B"}'),
    ("a number with groups", closed(n=WHOLE), '{"n": "1,250"}'),
    ("an amount", closed(n=NUMBER), '{"n": "$12"}'),
    ("about", closed(n=WHOLE), '{"n": "about 40"}'),
    ("a fraction in words", closed(n=NUMBER), '{"n": "1/2"}'),
    ("a number in words", closed(n=WHOLE), '{"n": "five"}'),
    ("half a hexadecimal", closed(n=WHOLE), '{"n": "0x"}'),
    ("no text for a number", closed(n=WHOLE), '{"n": ""}'),
    ("not a number", closed(n=NUMBER), '{"n": "NaN"}'),
    ("yes", closed(f=FLAG), '{"f": "yes"}'),
    ("on", closed(f=FLAG), '{"f": "on"}'),
    ("one for true", closed(f=FLAG), '{"f": 1}'),
    ("one in a text for true", closed(f=FLAG), '{"f": "1"}'),
    ("true for a number", closed(n=WHOLE), '{"n": true}'),
    ("no splitting", closed(l={**TEXTS, "minItems": 2}), '{"l": "a, b"}'),
    ("no dates", closed(t={**TEXT, "format": "date"}), '{"t": "1 May 2026"}'),
    ("an unknown key of a closed schema", closed(t=TEXT), '{"t": "a", "dry_run": true}'),
    ("a bad item", closed(l=WHOLES), '{"l": [1, "b", 3]}'),
    ("a bad value of an optional one", closed(n=WHOLE), '{"n": "lots"}'),
    ("a list of two for a text", closed(t=TEXT), '{"t": ["a", "b"]}'),
    ("a piece of a schema for a text", closed(t=TEXT), '{"t": {"type": "string", "description": "A name."}}'),
    ("null for a text", closed("t", t=TEXT), '{"t": null}'),
    ("equal branches", closed(v={"anyOf": [WHOLE, FLAG, closed(a=WHOLE)]}), '{"v": {"a": "x"}}'),
    (
        "equal objects",
        closed(v={"anyOf": [closed("a", a={"enum": ["Low"]}), closed("a", a={"enum": ["LOW"]})]}),
        '{"v": {"a": "low"}}',
    ),
    ("a new name with another value", closed("path", path=TEXT), '{"path": "a", "file_path": "b"}'),
    ("the other way round", closed("path", path=TEXT), '{"file_path": "b", "path": "a"}'),
    ("two names for one", closed("path", path=TEXT), '{"file": "a", "filename": "b"}'),
    ("one name for two", closed("", path=TEXT, filename=TEXT), '{"file": "a"}'),
    ("one letter of a short name", closed("mode", mode=TEXT), '{"mod": "a"}'),
    ("one letter of an optional name", closed(message=TEXT), '{"mesage": "a"}'),
    ("two letters", closed("message", message=TEXT), '{"masage": "a"}'),
    ("a call of another tool", closed("n", n=WHOLE), '{"name": "other", "arguments": {"n": 1}}'),
    ("a wrapper beside a parameter", closed("n", n=WHOLE), '{"arguments": {"n": 1}, "n": 1}'),
    ("a text in a wrapper for one of two", closed("t", t=TEXT, u=TEXT), '{"input": "ebb"}'),
    ("notation in a wrapper", closed("t", t=TEXT), '{"input": "use(t=1)"}'),
    ("a word for an object", closed(p=POINT), '{"p": "here"}'),
    ("a list for an object", closed(p=POINT), '{"p": [1, 2]}'),
]


@pytest.mark.parametrize(("schema", "written"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_nothing_is_invented(schema: Schema, written: str) -> None:
    node = read_json(written)
    assert node is not None
    other = FunctionTool("other", None, closed("n", n=WHOLE))
    fitted = repair_and_validate(node, "use", Toolset([FunctionTool("use", None, schema), other]))
    assert (fitted.text, fitted.steps) == (written, [])
    assert fitted.faults
    arguments, problems = streamed(schema, written)
    assert (arguments, problems) == (written, {"invalid_arguments"})


# Title, schema, valid arguments that could be taken for faults.
LEFT_ALONE: list[tuple[str, Schema, str]] = [
    ("JSON where a text is wanted", closed(t=TEXT), '{"t": "{\\"a\\": [1]}"}'),
    ("digits where a text is wanted", closed(t=TEXT), '{"t": "5"}'),
    ("blanks in a text", closed(t=TEXT), '{"t": "  a \\n"}'),
    ("an unknown key of an open schema", open_(t=TEXT), '{"t": "a", "dry_run": true}'),
    ("an alias with another value in an open schema", open_("path", path=TEXT), '{"path": "a", "file_path": "b"}'),
    ("a key of a pattern", {**closed(path=TEXT), "patternProperties": {"^f": TEXT}}, '{"file_path": "b"}'),
    ("null for a nullable one", closed(t={"type": ["string", "null"]}), '{"t": null}'),
    ("null for any", closed(t={}), '{"t": null}'),
    ("a member", closed(c=COMPASS), '{"c": "South"}'),
    ("wrapper keys as parameters", closed(arguments=TEXT), '{"arguments": "{}"}'),
    ("a parameter of the tool's name", closed(use=POINT), '{"use": {"x": 1, "y": 2}}'),
    (
        "the words of calls",
        closed(function=TEXT, parameters={"type": "object"}),
        '{"function": "use", "parameters": {}}',
    ),
    ("a wrapper's key where nothing is required", open_(t=TEXT), '{"input": "ebb"}'),
    ("odd blanks", closed(n=WHOLE, l=WHOLES), '{ "n" :1 ,\n "l":[ 1,2 ] }'),
    ("an escape where none is needed", closed(t=TEXT), '{"t": "\\u0061\\/b"}'),
    ("a name with an escape", closed(a=WHOLE), '{"\\u0061": 1}'),
    ("no schema at all", {}, '{"a": "1", "b": null}'),
    ("`anyOf` at the root", {"anyOf": [closed("a", a=WHOLE), closed("b", b=TEXT)]}, '{"b": "5"}'),
    ("a list of pairs", closed(l={"type": "array", "prefixItems": [WHOLE, TEXT]}), '{"l": [1, "a"]}'),
    ("the first of two branches", closed(v={"anyOf": [TEXT, WHOLE]}), '{"v": "5"}'),
    ("a number in a branch", closed(v={"anyOf": [TEXT, WHOLE]}), '{"v": 5}'),
]


@pytest.mark.parametrize(("schema", "written"), [row[1:] for row in LEFT_ALONE], ids=[row[0] for row in LEFT_ALONE])
def test_what_fits_goes_out_byte_for_byte(schema: Schema, written: str) -> None:
    node = read_json(written)
    assert node is not None
    fitted = repair_and_validate(node, "use", Toolset([FunctionTool("use", None, schema)]))
    assert (fitted.text, fitted.steps, fitted.faults) == (written, [], [])
    assert streamed(schema, written) == (written, set())


def test_users_name_their_own_groups() -> None:
    tool = FunctionTool("use", None, closed("berth", berth=TEXT))
    node = read_json('{"dock": "7"}')
    assert node is not None
    assert repair_and_validate(node, "use", Toolset([tool])).faults
    fitted = repair_and_validate(
        node, "use", Toolset([tool], hints=ParameterAliases(aliases=(frozenset(("berth", "dock")),)))
    )
    assert (fitted.text, fitted.steps) == ('{"berth": "7"}', [Repair("alias", "$.dock")])


def leading_back(*others: Schema) -> Schema:
    """The schema of a value that may hold itself in one of two ways, or be one of the others."""
    one, other = (open_("k", k={"$ref": "#/$defs/node"}, **{name: TEXT}) for name in ("left", "right"))
    return {**closed("x", x={"$ref": "#/$defs/node"}), "$defs": {"node": {"anyOf": [one, other, *others]}}}


@pytest.mark.parametrize("key", ["k", "K"])
@pytest.mark.parametrize("others", [(), (WHOLE,)], ids=["two", "three"])
def test_ways_that_double_with_each_level_of_a_value_are_not_all_gone(others: tuple[Schema, ...], key: str) -> None:
    tools = Toolset([FunctionTool("use", None, leading_back(*others))])
    for levels in (3, 60):
        node = read_json('{"x":' + f'{{"{key}":' * levels + '"one"' + "}" * (levels + 1))
        assert node is not None
        assert repair_and_validate(node, "use", tools).faults


def test_a_union_that_leads_to_itself_is_gone_once() -> None:
    schema = leading_back({"$ref": "#/$defs/node"}, WHOLE)
    assert [wanted_type(branch) for branch in branches(schema["$defs"]["node"], schema)] == [
        "object",
        "object",
        "integer",
    ]


AROUND = (
    "```json\n%s\n```",
    "These are the arguments: %s",
    "<tool_call>%s</tool_call>",
    "use%s",
    "Arguments:\n```\n%s\n```",
)


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("strict", [None, True])
@pytest.mark.parametrize("names", [("note",), ("note", "title", "tag")], ids=["one parameter", "three parameters"])
def test_the_object_in_a_text_is_the_arguments(around: str, strict: bool | None, names: tuple[str, ...]) -> None:
    tools = Toolset([FunctionTool("use", None, closed(names[0], **dict.fromkeys(names, TEXT)), strict=strict)])
    text = around % '{"note": "high tide"}'
    for cut in ([text], list(text)):
        live = StreamingArguments("use", tools)
        sent = "".join([*map(live.feed, cut), live.finish(cut=False)])
        assert (json.loads(sent), live.complete) == ({"note": "high tide"}, True)
        assert "arguments_unwrapped" in {problem.kind for problem in live.problems}


IN_DOUBT = (
    'use(note="high tide")',
    "note: high tide",
    "Arguments: high tide",
    '<parameter name="note">high tide</parameter>',
    '[TOOL_CALLS]use[ARGS]note="high tide"',
    'note": "high tide"}',
    '{"note": "high tide"} and {"note": "low tide"}'.replace("{", "x{", 1),
    "echo '{\"note\": 1}' > tide",
    "```\nhigh tide\n```",
)


@pytest.mark.parametrize("text", IN_DOUBT)
@pytest.mark.parametrize("strict", [None, True])
def test_a_text_that_may_hold_arguments_is_not_the_only_parameter(text: str, strict: bool | None) -> None:
    tools = Toolset([FunctionTool("use", None, closed("note", note=TEXT), strict=strict)])
    for given in (text, encode(text).decode()):
        live = StreamingArguments("use", tools)
        sent = "".join([*map(live.feed, given), live.finish(cut=False)])
        assert sent == given


def test_plain_text_is_the_only_parameter_but_where_more_is_demanded() -> None:
    plain = FunctionTool("use", None, closed("note", note=TEXT))
    strict = FunctionTool("use", None, closed("note", note=TEXT), strict=True)
    for tools, out in (
        (Toolset([plain]), '{"note": "high tide"}'),
        (Toolset([strict]), "high tide"),
        (Toolset([plain], "required"), "high tide"),
        (Toolset([plain], NamedTool("use")), "high tide"),
    ):
        live = StreamingArguments("use", tools)
        assert "".join([*map(live.feed, "high tide"), live.finish(cut=False)]) == out


@pytest.mark.parametrize(("others", "strict"), [({}, None), ({}, True), ({"n": WHOLE}, True)])
def test_an_object_for_a_text_is_in_doubt_where_it_may_hold_the_arguments(
    others: dict[str, Schema], strict: bool | None
) -> None:
    tools = Toolset([FunctionTool("use", None, closed("t", t=TEXT, **others), strict=strict)])
    written = '{"t": {"value": "high tide"}}'
    for cut in ([written], list(written)):
        live = StreamingArguments("use", tools)
        assert "".join([*map(live.feed, cut), live.finish(cut=False)]) == written
        assert not live.complete
