"""A tag that gives an attribute twice: the value that is not used is named."""

import pytest

import callwright

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "plant",
            "parameters": {"type": "object", "properties": {"seed": {"type": "string"}, "bed": {"type": "string"}}},
        },
    }
]


@pytest.mark.parametrize("dialect", ["cohere_command5", "kimi_k3"])
def test_a_repeated_attribute_is_named(dialect: str) -> None:
    written = callwright.write([{"name": "plant", "arguments": {"bed": "north"}}], dialect=dialect, tools=TOOLS)
    name = "key" if dialect == "kimi_k3" else "name"
    assert f'{name}="bed"' in written
    output = written.replace(f'{name}="bed"', f'{name}="seed" {name}="bed"')
    turn = callwright.parse(output, dialect=dialect, tools=TOOLS)
    assert any("seed" in problem.text or "seed" in problem.detail for problem in turn.problems)
    assert not callwright.parse(written, dialect=dialect, tools=TOOLS).problems


@pytest.mark.parametrize(
    ("ids", "is_named"), [('id="0" id="7"', True), ('id="7" id="7" id="0"', True), ('id="0" id="0"', False)]
)
def test_a_second_id_leaves_the_call_whole(ids: str, is_named: bool) -> None:
    written = callwright.write(
        [{"name": "plant", "arguments": {"bed": "north"}}], dialect="cohere_command5", tools=TOOLS
    )
    turn = callwright.parse(written.replace('id="0"', ids), dialect="cohere_command5", tools=TOOLS)
    assert [(call.name, call.arguments, call.complete) for call in turn.calls] == [("plant", '{"bed":"north"}', True)]
    assert bool(turn.problems) == is_named
