"""One slip in an output never makes a silent call of something else: it is clean, in doubt, or a named problem.

Each dialect writes two calls in several shapes. Each tag, delimiter, character and value is disturbed in turn, see
`tests.support.disturbances`. A brief run tries a part of the slips, at equal distances; a nightly run tries all.
"""

from collections.abc import Sequence

import pytest

import callwright
from callwright.dialects.base import dialect_names
from callwright.reading.collect import Turn
from tests.support.certainty import SHAPES, Shape, tools_of
from tests.support.disturbances import Change, changes, wrong_call
from tests.support.examples import some

names = pytest.mark.parametrize("name", dialect_names())
shapes = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
# One of this number of slips is also read character by character.
STREAMED = 8


def _tried(shape: Shape, name: str) -> Sequence[Change]:
    return some(list(changes(shape, name)), dialect_names().index(name) + 7 * len(shape.name))


def _calls(turn: Turn) -> list[tuple[str, str, bool]]:
    return [(call.name, call.arguments, call.complete) for call in turn.calls]


@names
@shapes
def test_a_slip_makes_no_silent_call_of_something_else(name: str, shape: Shape) -> None:
    tools = tools_of(shape)
    for number, change in enumerate(_tried(shape, name)):
        turn = callwright.parse(change.output, dialect=name, tools=tools)
        assert not wrong_call(turn, shape, change, name), change
        if number % STREAMED == 0:
            streamed = callwright.parse(list(change.output), dialect=name, tools=tools)
            assert not wrong_call(streamed, shape, change, name), change
            assert _calls(streamed) == _calls(turn), change


@names
def test_what_is_not_disturbed_is_no_slip(name: str) -> None:
    """The judge can fail: another call's arguments are a wrong call, its own are not."""
    shape, other = SHAPES[0], SHAPES[3]
    tools = [*tools_of(shape), *tools_of(other)]
    asked = [{"name": called, "arguments": arguments} for called, arguments in other.calls]
    turn = callwright.parse(callwright.write(asked, dialect=name, tools=tools), dialect=name, tools=tools)
    assert turn.calls[0].complete
    assert wrong_call(turn, shape, Change("", "tags", "nothing", 0), name)
    assert not wrong_call(turn, other, Change("", "tags", "nothing", 0), name)
