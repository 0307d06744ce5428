"""What was read is let go at once: in circles it would wait for the collector of garbage."""

import gc
import json
from collections.abc import Callable, Iterable
from functools import partial

import pytest

import callwright
from callwright.dialects.base import dialect_names
from tests.support import certainty
from tests.support.certainty import SHAPES
from tests.support.parsing import pieces

SHAPE = SHAPES[0]
TOOLS = certainty.tools_of(SHAPE)
CALL = {"name": SHAPE.calls[0][0], "arguments": SHAPE.calls[0][1]}
PROSE = "They are <i>here</i>: {1, 2} and [three].\n\n```json\n{}\n```\n"
OUTPUTS: dict[str, Callable[[str], str]] = {
    "calls": lambda dialect: certainty.write(SHAPE, dialect),
    "text before calls": lambda dialect: f"<think>Hm.</think>Well.\n\n{certainty.write(SHAPE, dialect)}",
    "calls that were cut off": lambda dialect: certainty.write(SHAPE, dialect)[:-20],
    "calls between words": lambda dialect: f"I write {certainty.write(SHAPE, dialect)} for that, and {PROSE}",
    "text": lambda dialect: PROSE,
    "calls of other formats": lambda dialect: callwright.write(
        [CALL], tools=TOOLS, dialect="hermes" if dialect != "hermes" else "qwen3_coder"
    ),
    "calls of yet others": lambda dialect: callwright.write(
        [CALL], tools=TOOLS, dialect="glm47" if dialect != "glm47" else "mistral_v11"
    ),
    "JSON in text": lambda dialect: f"{json.dumps(CALL)} it is.",
}


def garbage(act: Callable[[], object]) -> int:
    """How many objects wait for the collector behind this: the least of some times, for others leave some, too."""
    gc.disable()
    try:
        act()  # what is made once
        gc.collect()
        return min(_left(act) for _ in range(3))
    finally:
        gc.enable()


def _left(act: Callable[[], object]) -> int:
    act()
    return gc.collect()


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("name", dialect_names())
def test_what_was_read_is_let_go_at_once(name: str, output: str) -> None:
    text = OUTPUTS[output](name)

    def read(told: str | Iterable[str]) -> None:
        callwright.parse(told, dialect=name, tools=TOOLS, finish_reason="length")

    for told in (text, list(text), pieces(text, 1)):
        assert not garbage(partial(read, told))
