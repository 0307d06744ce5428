"""Outputs whose dialect is not named: `auto` reads what the dialect that wrote them reads, and is as loud about it."""

from collections.abc import Iterator

import pytest

from callwright import Turn, parse
from callwright.dialects.base import dialect_names
from tests.support import certainty

SHAPES = certainty.SHAPES[:2]
# Their calls have no mark of their own: JSON, or a name and JSON. Only a whole call of an offered tool is surely one.
UNMARKED = ("functionary_v32", "json", "llama3_json", "xlam")
NO_TOOL = "steer_ferry"
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_tide",
            "parameters": {"type": "object", "properties": {"port": {"type": "string"}}, "required": ["port"]},
        },
    }
]

every_dialect = pytest.mark.parametrize("dialect", dialect_names())


def same(one: Turn, other: Turn) -> bool:
    return (one.calls, one.content) == (other.calls, other.content)


@every_dialect
@pytest.mark.parametrize("offered", [True, False])
def test_a_whole_output_is_read_as_its_own_dialect_reads_it(dialect: str, offered: bool) -> None:
    for shape in SHAPES:
        tools = certainty.tools_of(shape) if offered else None
        output = certainty.write(shape, dialect)
        assert same(parse(output, tools=tools), parse(output, dialect=dialect, tools=tools))


@pytest.mark.parametrize("dialect", [name for name in dialect_names() if name not in UNMARKED])
def test_a_call_of_an_unknown_tool_is_named_as_its_own_dialect_names_it(dialect: str) -> None:
    shape = SHAPES[0]
    output = certainty.write(shape, dialect).replace(shape.calls[0][0], NO_TOOL)
    named, found = (parse(output, dialect=name, tools=certainty.tools_of(shape)) for name in (dialect, "auto"))
    assert same(found, named)
    assert "unknown_tool" in [problem.kind for problem in found.problems]


def cuts(dialect: str) -> Iterator[tuple[str, list[dict[str, object]] | None]]:
    for shape in SHAPES:
        output = certainty.write(shape, dialect)
        yield from ((output[:at], certainty.tools_of(shape)) for at in range(1, len(output), 11))
        if dialect not in UNMARKED:
            yield from ((output[:at], None) for at in range(1, len(output), 37))


@every_dialect
def test_where_a_dialect_speaks_of_a_call_so_does_auto(dialect: str) -> None:
    for output, tools in cuts(dialect):
        named, found = (parse(output, dialect=name, tools=tools) for name in (dialect, "auto"))
        assert found.problems or not named.problems or len(found.calls) >= len(named.calls), output


OUTPUTS = {
    "a name in other letters": '<tool_call>{"name":"getTide","arguments":{"port":"Kiel"}}',
    "an unknown tool, not closed": '<tool_call>\n{"name": "steer", "arguments": {"port": "Kiel"}}\n',
    "cut behind the name": '<tool_call>{"name":"get_tide"',
    "arguments of the wrong type": '<tool_call>{"name":"get_tide","arguments":{"port":["Kiel"]}}</tool_call>',
    "a tag in a sentence": "I write <tool_call> before each call.",
    "no call": "High water is at 4.",
    "a list of links": "See [the table](tides.html) and [f(x)].",
}


@pytest.mark.parametrize("output", OUTPUTS.values(), ids=OUTPUTS)
def test_hermes_is_read_as_hermes(output: str) -> None:
    found, named = parse(output, tools=TOOLS), parse(output, dialect="hermes", tools=TOOLS)
    assert same(found, named)
    assert found.problems == named.problems


@pytest.mark.parametrize(
    "output",
    [
        'Sure\n{"name": "get_tide", "parameters": {"port": "Kiel"}}; {"name": "get_tide", "parameters": {"port": "?"}}',
        'Sure\n{"a": 1}',
        "Call [the harbour (Kiel)] first.",
        "Action: call the harbour.",
    ],
)
def test_words_are_no_tools(output: str) -> None:
    assert {call.name for call in parse(output, tools=TOOLS).calls} <= {"get_tide"}
    assert not parse(output).calls


def test_a_marker_of_no_format_is_read_with_and_without_a_dialect() -> None:
    output = '[TOOL_REQUEST]{"name": "get_tide", "arguments": {"port": "Kiel"}}[END_TOOL_REQUEST]'
    for dialect in ("auto", "hermes"):
        assert [call.name for call in parse(output, dialect=dialect, tools=TOOLS).calls] == ["get_tide"]
