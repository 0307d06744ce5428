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
