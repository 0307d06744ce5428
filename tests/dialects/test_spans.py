"""Where each character of an output went, in every format."""

import json
from collections.abc import Iterable
from itertools import pairwise

import pytest

import callwright
from callwright.conversation import AssistantTurn, Call, Message, TextPart
from callwright.dialects.base import dialect_names, get_dialect
from callwright.events import ContentDelta, ReasoningDelta
from callwright.reading.spans import Span
from tests.support.cases import Case, load_cases
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
CASES = {name: [case for case in load_cases() if case.dialect == name] for name in dialect_names()}
# Words in a JSON string, and between tags with white space that is not written back.
REWRITTEN = {("json", "an envelope with content"), ("kimi_k3", "blanks around the names of parts")}


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


def traced(case: Case, cut: Iterable[str]) -> callwright.Parser:
    parser = callwright.Parser(**case.request(), trace=True)
    for piece in cut:
        parser.feed(piece)
    parser.finish(case.finish)  # type: ignore[arg-type]
    return parser


@names
def test_any_output_has_the_same_spans_however_it_is_cut(name: str) -> None:
    for case in CASES[name]:
        whole = traced(case, [case.output]).spans()
        assert "".join(case.output[span.begin : span.end] for span in whole) == case.output
        assert all(one.end == other.begin for one, other in pairwise(whole))
        for cut in (case.output, pieces(case.output, 1)):
            assert traced(case, cut).spans() == whole, case.title


@names
def test_an_event_has_its_own_text(name: str) -> None:
    for case in CASES[name]:
        for cut in ([case.output], case.output):
            recorder = traced(case, cut).recorder
            recorder.read()
            for one in recorder.events:
                written = case.output[one.begin : one.end]
                assert 0 <= one.begin <= one.end <= len(case.output)
                assert not one.exact or written in (one.text, one.text.lstrip()), case.title


@names
def test_words_are_where_they_were_written(name: str) -> None:
    kinds: dict[type, str] = {ContentDelta: "content", ReasoningDelta: "reasoning"}
    for case in CASES[name]:
        recorder = traced(case, [case.output]).recorder
        spans_ = recorder.spans()
        for kind, part_ in kinds.items():
            events = [one for one in recorder.events if type(one.event) is kind and one.text.strip()]
            if (name, case.title) not in REWRITTEN:
                assert all(one.exact for one in events), case.title
                found = part(case.output, spans_, part_)
                assert "".join(found.split()) == "".join("".join(one.text for one in events).split()), case.title


def test_what_is_not_asked_for_is_not_recorded() -> None:
    parser = callwright.Parser("hermes", tools=TOOLS)
    parser.feed("Hello.")
    with pytest.raises(RuntimeError, match="trace=True"):
        parser.spans()
