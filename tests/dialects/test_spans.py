"""Where each character of an output went, in every format."""

import json
from collections.abc import Iterable
from itertools import pairwise

import pytest

import callwright
from callwright.conversation import AssistantTurn, Call, Message, TextPart
from callwright.dialects.base import dialect_names, get_dialect
from callwright.reading.spans import Span
from tests.support.parsing import pieces

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "plan_route",
            "parameters": {
                "type": "object",
                "properties": {"place": {"type": "string"}, "minutes": {"type": "integer"}, "mode": {"type": "string"}},
            },
        },
    }
]
CALLS = ({"place": "Narvik harbour", "minutes": 4070, "mode": "by sea"}, {"minutes": 15, "place": "Oslo"})
SAID = "Certainly, I will plan it."
THOUGHT = "They want a route."
names = pytest.mark.parametrize("name", dialect_names())


def written(name: str, *, thinks: bool = True) -> str:
    message = Message("assistant", (TextPart(SAID),))
    calls = [Call("plan_route", json.dumps(arguments)) for arguments in CALLS]
    return get_dialect(name).write(AssistantTurn(THOUGHT if thinks else None, message, calls))


def spans(output: str | Iterable[str], name: str) -> tuple[Span, ...]:
    parser = callwright.Parser(name, tools=TOOLS, trace=True)
    for piece in [output] if isinstance(output, str) else output:
        parser.feed(piece)
    parser.finish()
    return parser.spans()


def part(output: str, found: tuple[Span, ...], kind: str, call: int | None = None) -> str:
    return "".join(output[span.begin : span.end] for span in found if (span.part, span.call) == (kind, call))


@names
def test_each_character_of_a_turn_is_found_where_it_went(name: str) -> None:
    output = written(name)
    found = spans(output, name)
    assert [span.begin for span in found] == [0, *(span.end for span in found[:-1])]
    assert found[-1].end == len(output)
    turn = callwright.parse(output, dialect=name, tools=TOOLS)
    assert part(output, found, "content").strip() == (turn.content or "")
    assert part(output, found, "reasoning").strip() == (turn.reasoning or "")
    for number, arguments in enumerate(CALLS):
        told = part(output, found, "arguments", number)
        assert all(str(value) in told for value in arguments.values())
        assert part(output, found, "name", number) == "plan_route"


@names
def test_it_is_the_same_however_the_output_is_cut(name: str) -> None:
    output = written(name)
    whole = spans(output, name)
    for cut in (list(output), *(pieces(output, seed) for seed in range(4))):
        assert spans(cut, name) == whole


@names
def test_no_character_is_left_out_of_a_broken_output(name: str) -> None:
    output = written(name, thinks=False)
    for end in range(1, len(output), 7):
        found = spans(output[:end], name)
        assert all(one.end == other.begin for one, other in pairwise(found))
        assert (found[0].begin, found[-1].end) == (0, end)


def test_what_is_not_asked_for_is_not_recorded() -> None:
    parser = callwright.Parser("hermes", tools=TOOLS)
    parser.feed("Hello.")
    with pytest.raises(RuntimeError, match="trace=True"):
        parser.spans()
