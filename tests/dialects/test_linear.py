"""The work for an output grows with its length, not with the square of it: functions that are entered, not time."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import pytest

import callwright
from callwright.calls.toolset import Toolset
from callwright.conversation import FunctionTool
from callwright.dialects.base import dialect_names, get_dialect
from callwright.events import CallEnded, Event, Problem
from callwright.reading.parser import OutputParser, PassThrough
from callwright.settings.bounds import MAX_PARAMETERS
from tests.support.bounded import bounded
from tests.support.entries import entered

# Twice the output may take so many times the work; what is done once makes it less than two.
MOST: Final = 2.5
SIZE: Final = 12
# More than a reader looks ahead.
RUN: Final = 40


def tools(count: int, kind: str = "string") -> list[dict[str, Any]]:
    properties = {f"k{number}": {"type": kind} for number in range(count)}
    parameters = {"type": "object", "properties": properties, "additionalProperties": False}
    return [{"type": "function", "function": {"name": "f", "parameters": parameters}}]


def written(dialect: str, count: int) -> str:
    arguments = {f"k{number}": f"v{number}" for number in range(count)}
    return callwright.write([{"name": "f", "arguments": arguments}], tools=tools(count), dialect=dialect)


def without_closers(text: str) -> str:
    """The same with its closing tags lost, but for the last two."""
    *lost, end, _ = (*re.split(r"(?=</)", text), "", "")
    return "".join(re.sub(r"^</[^<>]*>", "", piece) for piece in lost) + end


# What a model may write, of a size, and the tools that it was given.
Case = Callable[[str, int], tuple[str, list[dict[str, Any]]]]
CASES: Final[dict[str, Case]] = {
    "parameters": lambda dialect, size: (written(dialect, size), tools(size)),
    "parameters of no tool's": lambda dialect, size: (re.sub(r"k(\d)", r"q\1", written(dialect, size)), tools(size)),
    "numbers that are none": lambda dialect, size: (written(dialect, size), tools(size, "integer")),
    "lost closers": lambda dialect, size: (without_closers(written(dialect, size)), tools(size)),
    "calls": lambda dialect, size: (written(dialect, 1) * size, tools(1)),
    "one key again": lambda dialect, size: (re.sub(r"k\d+", "k0", written(dialect, size)), tools(1)),
    "braces": lambda _, size: (f"Hi {'{' * RUN * size}", tools(1)),
    "brackets": lambda _, size: (f"Hi {'[' * RUN * size}", tools(1)),
    "ticks": lambda _, size: (f"Hi {'`' * RUN * size}", tools(1)),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dialect", dialect_names())
def test_twice_the_output_takes_twice_the_work(dialect: str, case: str) -> None:
    counts = []
    # The first to have what is made once and kept; none of the texts is read twice.
    for size in (SIZE // 4, SIZE, 2 * SIZE):
        text, offered = CASES[case](dialect, size)
        counts.append(entered(partial(callwright.parse, text, dialect=dialect, tools=offered)))
    assert counts[2] <= MOST * counts[1]


@pytest.mark.parametrize("dialect", dialect_names())
def test_what_a_format_looks_for_is_made_once(dialect: str) -> None:
    """Some 100 functions were entered before the first character of each output was read."""
    offered = Toolset([FunctionTool("f", parameters={"type": "object"})])
    begin = partial(OutputParser, get_dialect(dialect), offered, PassThrough())
    begin()
    assert entered(begin) < 50


def test_pieces_of_arguments_that_are_certain_at_once_come_at_once() -> None:
    for dialect in dialect_names():
        events = callwright.Parser(dialect, tools=tools(8)).finish("stop", written(dialect, 8))
        assert sum(isinstance(event, callwright.ArgumentsDelta) for event in events) == 1, dialect


def test_names_of_many_parameters_are_looked_up_not_compared() -> None:
    """Each undeclared name was folded against every declared one: 1,000 by 4,000 took seconds."""
    counts = []
    for size in (100, 200):
        offered = tools(20 * size)
        text = "".join(f"<parameter=q{n}>\n1\n</parameter>\n" for n in range(size))
        text = f"<tool_call>\n<function=f>\n{text}</function>\n</tool_call>"
        read = partial(callwright.parse, text, dialect="qwen3_coder", tools=offered)
        read()  # to have what is made once and kept
        counts.append(entered(read))
    assert counts[1] <= MOST * counts[0]


# --- parameters that are read one by one ---


def parsed(dialect: str, text: str, most: int) -> list[Event]:
    with bounded(MAX_PARAMETERS=most):
        parser = OutputParser(get_dialect(dialect), Toolset(), PassThrough())
    return parser.feed(text) + parser.finish()


TAGGED: Final = [name for name in dialect_names() if "</" in written(name, 2) or name in ("kimi_k3", "minimax_m3")]


@pytest.mark.parametrize("dialect", TAGGED)
def test_a_call_of_more_parameters_than_are_read_is_named_and_its_text_kept(dialect: str) -> None:
    text = written(dialect, 6)
    assert not [event for event in parsed(dialect, text, 6) if isinstance(event, Problem)]
    events = parsed(dialect, text, 4)
    surplus = [event for event in events if isinstance(event, Problem) and event.kind == "malformed_call"]
    if not surplus:  # its arguments are one JSON object, which is read as it is
        assert '"k0"' in text or "k0:" in text or "k0=" in text
        return
    assert len(surplus) == 1
    assert "more than 4 parameters" in surplus[0].detail
    assert "v4" in surplus[0].text
    assert "v5" in surplus[0].text
    assert [event.complete for event in events if isinstance(event, CallEnded)] == [False]


def test_the_bound_of_parameters_holds_in_the_library() -> None:
    most = MAX_PARAMETERS
    text = "".join(f"<parameter=k{n}>\n1\n</parameter>\n" for n in range(most + 1))
    turn = callwright.parse(
        f"<tool_call>\n<function=f>\n{text}</function>\n</tool_call>Bye", dialect="qwen3_coder", tools=tools(1)
    )
    assert [problem.kind for problem in turn.problems if problem.kind == "malformed_call"] == ["malformed_call"]
    assert not turn.calls[0].complete
    assert f"<parameter=k{most}>" in "".join(problem.text for problem in turn.problems)
