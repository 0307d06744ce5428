"""What a row or an output holds that is small and stands for much, or is deep: read or named, and no more work."""

import json
from typing import Any

import pytest

import callwright
from callwright.bulk.files import BadLine, parts_of
from callwright.bulk.rows import Batch, Operation, Work
from callwright.settings.bounds import MAX_PARAMETERS
from tests.support.bulk import read_part

Json = dict[str, Any]
DEEP = 100_000
DEFS: Json = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(30)}
SCHEMAS: dict[str, Json] = {
    "parts": {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/d0"}},
        "$defs": {**DEFS, "d30": {"type": "string"}},
    },
    "patterns": {
        "type": "object",
        "properties": {"x": {"type": "string", "pattern": r"^((a{1,100}){1,100}){1,100}$"}},
    },
}
ARGUMENTS = '{"x": "a"}'
WRITTEN = f'<tool_call>\n{{"name": "f", "arguments": {ARGUMENTS}}}\n</tool_call>'


def offered(schema: Json, **more: Any) -> list[Json]:
    return [{"type": "function", "function": {"name": "f", "parameters": schema, **more}}]


def row(tools: list[Json], output: str = WRITTEN) -> Json:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": ARGUMENTS}}
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    return {"messages": messages, "output": output, "tools": tools}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_a_schema_that_stands_for_a_large_one_checks_nothing_and_that_is_named(schema: Json) -> None:
    """It would be worked on for ever."""
    turn = callwright.parse(WRITTEN, dialect="hermes", tools=offered(schema))
    assert [problem.kind for problem in turn.problems] == ["arguments_unchecked"]
    assert "expected" in turn.problems[0].detail
    assert turn.calls[0].arguments == ARGUMENTS


@pytest.mark.parametrize("operation", ["parse", "validate"])
def test_a_row_that_stands_for_more_than_it_is_costs_no_more_than_others(operation: Operation) -> None:
    done = Batch(Work(operation, dialect="hermes"))([row(offered(schema)) for schema in SCHEMAS.values()])
    assert [[problem["kind"] for problem in each["problems"]] for each in done] == [["arguments_unchecked"]] * 2
    names = [f"p{n}" for n in range(MAX_PARAMETERS + 1)]
    many = {"type": "object", "properties": {name: {} for name in names}}
    parameters = "".join(f"<parameter={name}>\n1\n</parameter>\n" for name in names)
    output = f"<tool_call>\n<function=f>\n{parameters}</function>\n</tool_call>"
    (long,) = Batch(Work("parse", dialect="qwen3_coder"))([row(offered(many), output)])
    assert "malformed_call" in [problem["kind"] for problem in long["problems"]]


def test_what_is_deep_is_read_or_named(tmp_path: Any) -> None:
    deep = "[" * DEEP + "]" * DEEP
    written = WRITTEN.replace('"a"', deep)
    turn = callwright.parse(written, dialect="hermes", tools=offered({"type": "object"}))
    assert turn.problems
    assert not turn.calls or turn.calls[0].arguments in written
    lines = tmp_path / "rows.jsonl"
    lines.write_text(f'{{"messages": {deep}}}\n{json.dumps(row([], written))}\n')
    (part,) = parts_of([lines], 10_000_000)
    bad, good = read_part(lines, part)
    assert isinstance(bad, BadLine)
    assert not isinstance(good, BadLine)
    (done,) = Batch(Work("parse", dialect="hermes"))([good])
    assert done.get("error") or done["problems"]
