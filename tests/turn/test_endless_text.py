"""A text that repeats itself without end is found; one that repeats itself in part is not."""

import base64
import json
from collections.abc import Callable

import pytest

from callwright.turn.endless_text import EndlessText
from callwright.upstreams.base import Delta, FinishDelta, ReasoningTextDelta, TextDelta, ToolCallDelta
from tests.support.real_outputs import real_outputs

MOST = 8_192
LOOPS = (
    *("a", " ", "\n", "0, ", 'text{</|"|>', "and will be edited by me, ", '{"name": "", "tags": []},\n'),
    *("The same.\n" * 3 + "Not the same.\n", "é\U0001f600", "".join(map(str, range(300)))),
)
SAME = (
    "| 0 | 0 |\n" * 400,
    json.dumps([0] * 2_000),
    base64.b64encode(bytes(6_000)).decode(),
    "    return None\n" * 300,
    "I will not talk in class.\n" * 200,
    json.dumps([{"name": "test", "value": 0}] * 200),
    "=" * 5_000,
    "".join(f"Item {number} of the list.\n" for number in range(2_000)),
    "\n".join(f"{number} {'x' * 500}" for number in range(100)),
)
KINDS: tuple[Callable[[str], Delta], ...] = (
    TextDelta,
    ReasoningTextDelta,
    lambda text: ToolCallDelta(0, arguments=text),
)


def _find(text: str, size: int, make: Callable[[str], Delta] = TextDelta) -> tuple[str, int] | None:
    """The repeated text and where it was found."""
    endless = EndlessText(MOST)
    for at in range(0, len(text), size):
        if (found := endless.find([make(text[at : at + size])])) is not None:
            return found, at
    return None


@pytest.mark.parametrize("make", KINDS, ids=["text", "reasoning", "arguments"])
@pytest.mark.parametrize("size", [1, 7, 700])
@pytest.mark.parametrize("loop", LOOPS)
def test_a_loop_is_found_soon_after_its_limit(loop: str, size: int, make: Callable[[str], Delta]) -> None:
    begin = "Sure, here it is: " * (len(loop) % 3)
    found = _find(begin + loop * (3 * MOST // len(loop)), size, make)
    assert found is not None
    text, at = found
    assert text in loop * 2
    assert loop in text * (len(loop) + 1) * 2
    assert MOST - size <= at <= MOST + len(begin) + 512 + 2 * size


@pytest.mark.parametrize("number", range(len(SAME)))
def test_what_repeats_for_a_reason_is_no_loop(number: int) -> None:
    for size in (3, 1_000):
        assert _find(SAME[number], size) is None


def test_no_output_of_the_corpus_is_a_loop() -> None:
    assert not [output for output in real_outputs() if _find(output.text, 4)]


def test_an_answer_that_has_ended_is_no_loop() -> None:
    assert EndlessText(MOST).find([TextDelta("a" * 20_000), FinishDelta("stop")]) is None
