"""A tag that gives an attribute twice, or one that means nothing: what is not used is named."""

import re

import pytest

import callwright
from callwright.dialects.base import dialect_names
from tests.support.readings import missing_words

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


@pytest.mark.parametrize("dialect", dialect_names())
def test_an_attribute_that_no_format_has_is_named(dialect: str) -> None:
    written = callwright.write([{"name": "plant", "arguments": {"bed": "north", "n": 1}}], dialect=dialect, tools=TOOLS)
    for tag in re.finditer(r"<(?![/|｜])[^<>]*(?=>)|<\|open\|>\w+ [^<>]*(?=<\|sep\|>)", written):
        for odd in (' mark="zebra"', ' type="zebra"'):
            output = written[: tag.end()] + odd + written[tag.end() :]
            turn = callwright.parse(output, dialect=dialect, tools=TOOLS)
            assert turn.calls or turn.problems, output
            assert not missing_words(output, turn), output
