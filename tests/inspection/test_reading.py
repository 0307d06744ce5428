"""An output as the pages show it: each character with what became of it, each argument with its source, each problem
with its place. In every format, however the output comes.
"""

import json
import sys
from collections.abc import Iterable
from types import FrameType
from typing import Any

import pytest

import callwright
from callwright.conversation import AssistantTurn, Call, Message, TextPart
from callwright.dialects.base import dialect_names, get_dialect
from callwright.errors import RequestError
from callwright.events import FinishReason
from callwright.inspection.reading import Reading, read_output, read_replay
from callwright.inspection.source_pieces import argument_places
from callwright.turn.records import VERSION, Record, RecordedAttempt, RecordedTool
from callwright.turn.reread import replays
from tests.support.parsing import pieces

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "book_ferry",
            "parameters": {
                "type": "object",
                "properties": {
                    "harbour": {"type": "string"},
                    "cars": {"type": "integer"},
                    "deck": {"type": "string"},
                    "windows": {"type": "boolean"},
                },
                "required": ["harbour"],
            },
        },
    }
]
CALLS: tuple[dict[str, Any], ...] = (
    {"harbour": "Hirtshals quay", "cars": 5083, "deck": "upper", "windows": True},
    {"cars": 21, "harbour": "Molde"},
)
SAID, THOUGHT = "I will book both.", "Two ferries are asked for."
names = pytest.mark.parametrize("name", dialect_names())
BROKEN = {
    "quotes": (
        "hermes",
        "<tool_call>\n{'name': 'book_ferry', 'arguments': {'harbour': 'Molde', 'cars': 2}}\n</tool_call>",
    ),
    "text for a number": (
        "hermes",
        '<tool_call>{"name": "book_ferry", "arguments": {"harbour": "Molde", "cars": "2"}}</tool_call>',
    ),
    "cut": ("hermes", 'On it.<tool_call>{"name": "book_ferry", "arguments": {"harbour": "Mol'),
    "unknown": ("hermes", '<tool_call>{"name": "book_train", "arguments": {"harbour": "Molde"}}</tool_call>'),
    "missing": ("harmony", '<|channel|>commentary to=functions.book_ferry<|message|>{"cars": 2}<|call|>'),
    "no end": ("qwen3_coder", "<tool_call>\n<function=book_ferry>\n<parameter=harbour>\nMolde\n</parameter>"),
    "foreign": ("hermes", "<function=book_ferry><parameter=harbour>Molde</parameter></function>"),
    "nothing": ("hermes", ""),
    "only prose": ("json", "There is no ferry <on> that day, {sorry}."),
}


def written(name: str) -> str:
    calls = [Call("book_ferry", json.dumps(arguments)) for arguments in CALLS]
    return get_dialect(name).write(AssistantTurn(THOUGHT, Message("assistant", (TextPart(SAID),)), calls))


def read(output: Iterable[str], name: str, ended: FinishReason = "stop") -> Reading:
    """An output as a record holds it, which came in these pieces."""
    deltas: list[tuple[float, dict[str, Any]]] = [
        (number / 10, {"type": "TextDelta", "text": text}) for number, text in enumerate(output)
    ]
    deltas.append((9.0, {"type": "FinishDelta", "reason": ended}))
    attempt = RecordedAttempt("raw", "whole", dialect=name, start="assistant", deltas=deltas)
    tool: Any = TOOLS[0]["function"]
    given = RecordedTool("book_ferry", parameters=tool["parameters"])
    record = Record(VERSION, "", "", "m", "", "", [attempt], tools=[given])
    (again,) = replays(record, trace=True)
    assert again is not None
    return read_replay(again)


def source(reading: Reading, call: int, argument: str) -> str:
    return "".join(piece.text for piece in reading.pieces if (piece.call, piece.argument) == (call, argument))


@names
def test_each_argument_has_its_source(name: str) -> None:
    output = written(name)
    reading = read_output(output, dialect=name, tools=TOOLS)
    assert "".join(piece.text for piece in reading.pieces) == reading.output == output
    for number, arguments in enumerate(CALLS):
        assert json.loads(reading.calls[number].arguments) == arguments
        for argument, value in arguments.items():
            assert source(reading, number, argument).lower() == str(value).lower()
    assert not reading.problems


@names
def test_it_is_what_the_library_reads(name: str) -> None:
    output = written(name)
    reading = read_output(output, dialect=name, tools=TOOLS)
    turn = callwright.parse(output, dialect=name, tools=TOOLS)
    assert (reading.content, reading.reasoning, reading.finish_reason) == (
        turn.content,
        turn.reasoning,
        turn.finish_reason,
    )
    assert [(call.name, call.arguments) for call in reading.calls] == [
        (call.name, call.arguments) for call in turn.calls
    ]


@names
def test_the_pieces_are_the_same_however_it_comes(name: str) -> None:
    output = written(name)
    whole = read([output], name)
    for cut in (list(output), *(pieces(output, seed) for seed in range(3))):
        reading = read(cut, name)
        assert reading.pieces == whole.pieces
        assert reading.calls == whole.calls


@names
def test_steps_tell_it_as_a_client_gets_it(name: str) -> None:
    reading = read_output(written(name), dialect=name, tools=TOOLS)
    ends = [step.end for step in reading.steps]
    assert ends == sorted(ends)
    assert ends[-1] == len(reading.output)
    events = [event for step in reading.steps for event in step.events]
    for number, call in enumerate(reading.calls):
        told = [event["text"] for event in events if event["type"] == "ArgumentsDelta" and event["index"] == number]
        assert "".join(told) == call.arguments
    assert events[-1]["type"] == "Finished"


@names
def test_no_character_of_a_broken_output_is_left_out(name: str) -> None:
    output = written(name)
    for end in range(0, len(output), 11):
        reading = read_output(output[:end], dialect=name, tools=TOOLS, finish_reason="length")
        assert "".join(piece.text for piece in reading.pieces) == output[:end]
        assert all(0 <= problem.place <= end for problem in reading.problems)


@pytest.mark.parametrize("case", BROKEN)
def test_each_problem_has_a_place_where_it_arose(case: str) -> None:
    name, output = BROKEN[case]
    reading = read_output(output, dialect=name, tools=TOOLS)
    assert "".join(piece.text for piece in reading.pieces) == output
    shown = {number for piece in reading.pieces for number in piece.problems}
    assert shown == set(range(len(reading.problems)))
    for number, problem in enumerate(reading.problems):
        if problem.call is not None:
            assert number in reading.calls[problem.call].problems
            own = {piece.call for piece in reading.pieces if number in piece.problems}
            assert own <= {problem.call, None}


def test_values_of_a_call_that_was_mended_as_a_whole_are_found() -> None:
    reading = read_output(BROKEN["quotes"][1], dialect="hermes", tools=TOOLS)
    assert source(reading, 0, "harbour") == "Molde"
    assert source(reading, 0, "cars") == "2"


def test_a_coerced_argument_is_marked_where_it_stands() -> None:
    reading = read_output(BROKEN["text for a number"][1], dialect="hermes", tools=TOOLS)
    (problem,) = reading.problems
    assert problem.kind == "argument_coerced"
    (piece,) = [piece for piece in reading.pieces if piece.problems]
    assert (piece.text, piece.argument) == ("2", "cars")
    assert json.loads(reading.calls[0].written) == {"harbour": "Molde", "cars": "2"}
    assert json.loads(reading.calls[0].arguments) == {"harbour": "Molde", "cars": 2}


def test_auto_says_what_it_took_the_output_for() -> None:
    for name in ("hermes", "harmony", "qwen3_coder", "mistral_v11"):
        reading = read_output(written(name), dialect="auto", tools=TOOLS)
        assert reading.dialect == "auto"
        assert reading.found is not None
        assert len(reading.calls) == len(CALLS)


def test_what_a_server_has_read_itself_stands_where_it_came() -> None:
    deltas: list[tuple[float, dict[str, Any]]] = [
        (0.1, {"type": "ReasoningTextDelta", "text": THOUGHT}),
        (0.2, {"type": "TextDelta", "text": SAID}),
        (0.3, {"type": "ToolCallDelta", "index": 0, "id": "c1", "name": "book_ferry", "arguments": '{"harb'}),
        (0.4, {"type": "ToolCallDelta", "index": 0, "arguments": 'our": "Molde", "cars": "2"}'}),
        (0.5, {"type": "FinishDelta", "reason": "stop"}),
    ]
    tool: Any = TOOLS[0]["function"]
    given = RecordedTool("book_ferry", parameters=tool["parameters"])
    record = Record(VERSION, "", "", "m", "", "", [RecordedAttempt("native", "whole", deltas=deltas)], tools=[given])
    (again,) = replays(record, trace=True)
    assert again is not None
    reading = read_replay(again)
    assert reading.output == THOUGHT + SAID + 'book_ferry{"harbour": "Molde", "cars": "2"}'
    assert [piece.part for piece in reading.pieces][:3] == ["reasoning", "content", "name"]
    assert source(reading, 0, "harbour") == "Molde"
    assert [(problem.kind, problem.call) for problem in reading.problems] == [("argument_coerced", 0)]
    assert [step.at_s for step in reading.steps][:4] == [0.1, 0.2, 0.3, 0.4]


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"dialect": "nope"}, "dialect"),
        ({"tools": [{"type": "function"}]}, "tools"),
        ({"tool_choice": "sometimes", "tools": TOOLS}, "tool_choice"),
    ],
)
def test_what_cannot_be_is_named(given: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as refused:
        read_output("text", **{"dialect": "hermes", **given})
    assert (refused.value.param or "").startswith(param)


LONG = {
    "right": '<tool_call>{"name": "book_ferry", "arguments": {"harbour": "Molde", "cars": 2}}</tool_call>\n',
    "coerced": '<tool_call>{"name": "book_ferry", "arguments": {"harbour": "Molde", "cars": "2"}}</tool_call>\n',
    "mended whole": "<tool_call>{'name': 'book_ferry', 'arguments': {'harbour': 'Molde', 'cars': 2}}</tool_call>\n",
    "unknown": '<tool_call>{"name": "book_train", "arguments": {"harbour": "Molde"}}</tool_call>\n',
    "text": "There is <b>no</b> ferry.\n",
}


@pytest.mark.parametrize("case", LONG)
def test_twice_the_output_takes_twice_the_work(case: str) -> None:
    def work(size: int) -> int:
        """Steps of Python lines: a loop within a function is no call."""
        steps = 0

        def line(_frame: FrameType, _event: str, _argument: object) -> Any:
            nonlocal steps
            steps += 1
            return line

        before = sys.gettrace()
        sys.settrace(line)
        try:
            read_output(LONG[case] * size, dialect="hermes", tools=TOOLS)
        finally:
            sys.settrace(before)
        return steps

    work(4)
    assert work(160) < 2.4 * work(80)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"a": 1, "b": "two"}', {"a": "1", "b": "two"}),
        ('{ "a" : [1, {"b": 2}] , "c": null }', {"a": '[1, {"b": 2}]', "c": "null"}),
        ('{"a": "half', {}),
        ('{"a": "x\\"y", "b": ""}', {"a": 'x\\"y', "b": ""}),
        ("{}", {}),
        ("[1]", {}),
        ("", {}),
        ("no json", {}),
    ],
)
def test_the_places_of_arguments(arguments: str, expected: dict[str, str]) -> None:
    assert {name: arguments[begin:end] for name, begin, end in argument_places(arguments)} == expected
