"""Calls in free text: what is certain, what is asked about, what is text."""

import json
import re
import sys
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import callwright
from callwright.calls.toolset import Toolset
from callwright.conversation import FunctionTool, NamedTool
from callwright.events import Problem
from callwright.free_text.announcements import announcements
from callwright.free_text.intent import Runs, is_announcement, verdict
from callwright.free_text.recover import RecoveredCall, Segment, TextSegment, recover
from tests.free_text.cases import TOOLS, Case, cases, lines, toolset
from tests.support.examples import examples
from tests.support.properties import assert_segments_hold

CERTAIN = cases("certain")
AMBIGUOUS = cases("ambiguous")
TEXT = cases("text")
FENCE = '```json\n{"tool": "open_valve", "arguments": {"number": 3}}\n```'
BARE = '{"tool": "open_valve", "arguments": {"number": 3}}'


def called(pieces: list[Segment]) -> list[tuple[str, Any]]:
    return [(piece.name, json.loads(piece.arguments)) for piece in pieces if isinstance(piece, RecoveredCall)]


def told(pieces: list[Segment]) -> list[Problem]:
    return [piece.problem for piece in pieces if isinstance(piece, TextSegment) and piece.problem]


def asked(pieces: list[Segment]) -> list[tuple[str, Any]]:
    problems = told(pieces)
    assert {problem.kind for problem in problems} <= {"ambiguous_call"}
    return [(p.candidate.name, json.loads(p.candidate.arguments)) for p in problems if p.candidate]


def words(pieces: list[Segment]) -> str:
    return "".join(piece.text for piece in pieces)


def titled(case: Case) -> str:
    return case.title


def test_there_are_enough_cases() -> None:
    assert len(CERTAIN) >= 40
    assert len(AMBIGUOUS) + len(TEXT) >= 60
    for title, times in Counter(map(titled, CERTAIN + AMBIGUOUS + TEXT)).items():
        assert times == 1, title


@pytest.mark.parametrize("case", CERTAIN, ids=titled)
def test_what_is_certain_is_called(case: Case) -> None:
    pieces = recover(case.output, toolset())
    assert called(pieces) == list(case.calls)
    assert not told(pieces)
    assert words(pieces) == case.output


@pytest.mark.parametrize("case", AMBIGUOUS, ids=titled)
def test_what_is_ambiguous_stays_text_and_is_asked_about(case: Case) -> None:
    pieces = recover(case.output, toolset())
    assert not called(pieces)
    assert asked(pieces) == list(case.calls)
    assert words(pieces) == pieces[0].text == case.output


@pytest.mark.parametrize("case", TEXT, ids=titled)
def test_what_is_shown_is_text_and_nothing_is_said(case: Case) -> None:
    assert recover(case.output, toolset()) == [TextSegment(case.output)]


@pytest.mark.parametrize("case", TEXT, ids=titled)
def test_what_is_shown_is_text_where_a_call_is_demanded_too(case: Case) -> None:
    for choice in ("required", NamedTool("water_beds")):
        assert not called(recover(case.output, toolset(choice)))


@pytest.mark.parametrize("case", AMBIGUOUS, ids=titled)
def test_a_demanded_call_is_taken_where_there_is_one_run(case: Case) -> None:
    pieces = recover(case.output, toolset("required"))
    if len(case.calls) == 1:
        assert called(pieces) == list(case.calls)
    else:
        assert asked(pieces) == list(case.calls)


@pytest.mark.parametrize("case", CERTAIN + TEXT, ids=titled)
@pytest.mark.parametrize("step", [1, 5])
def test_a_stream_says_the_same(case: Case, step: int) -> None:
    tools = [{"type": "function", "function": {"name": name, "parameters": schema}} for name, schema in TOOLS.items()]
    pieces = [case.output[at : at + step] for at in range(0, len(case.output), step)]
    whole = callwright.parse(case.output, dialect="json", tools=tools, finish_reason="stop")
    assert callwright.parse(pieces, dialect="json", tools=tools, finish_reason="stop") == whole
    made = [(call.name, json.loads(call.arguments)) for call in whole.calls]
    assert made == (list(case.calls) if case in CERTAIN else [])


def test_what_was_said_before_counts() -> None:
    assert called(recover(FENCE, toolset(), before="I'll open it.\n"))
    assert asked(recover(FENCE, toolset(), before="For example:\n"))
    assert asked(recover(f"I'll open it.\n{FENCE}", toolset(), before="This was in the log.\n"))


def test_what_the_request_knows_as_text_is_no_call() -> None:
    given = toolset()
    given.is_text = lambda text: text in f"the file says: {BARE} and more"
    assert recover(FENCE, given) == [TextSegment(FENCE)]
    other = toolset()  # what a request knows as text does not change
    other.is_text = lambda text: text in "open valve 3"
    assert called(recover(FENCE, other))
    demanded = toolset("required")
    demanded.is_text = lambda _: True
    assert called(recover(FENCE, demanded))


@pytest.mark.parametrize("value", ["...", "<bed>", "[bed]", "YOUR_BED"])
@pytest.mark.parametrize("said", ["", "I'll water it.\n", "The form is:\n"])
def test_a_placeholder_is_no_call_and_is_named(value: str, said: str) -> None:
    output = said + json.dumps({"tool": "water_beds", "arguments": {"bed": value, "litres": 1}})
    pieces = recover(output, toolset())
    assert words(pieces) == output
    (problem,) = told(pieces)
    assert problem.kind == "incomplete_arguments"
    assert problem.text == ""
    assert problem.candidate is None


@pytest.mark.parametrize("choice", ["auto", "required"])
def test_what_is_not_closed_is_unfinished(choice: Any) -> None:
    for output in ('{"tool": "open_valve", "arguments": {"number": 3', f"```json\n{BARE[:-2]}"):
        pieces = recover(output, toolset(choice))
        assert not called(pieces)
        assert [problem.kind for problem in told(pieces)] == ["incomplete_arguments"]


def test_only_the_end_behind_the_arguments_may_be_missing() -> None:
    assert called(recover(BARE[:-1], toolset())) == [("open_valve", {"number": 3})]


@pytest.mark.parametrize(
    "form",
    [
        '{"tool": "Open-Valve", "arguments": {"number": 3}}',  # another spelling
        '{"number": 3}',  # no name
        '{"name": "open_valve", "number": 3}',  # data may look so
        '{"tool": "open_valve", "arguments": {"number": "many"}}',
    ],
)
def test_only_an_exact_form_is_asked_about(form: str) -> None:
    said = f"As the log has it:\n{form}\n"
    assert recover(said, toolset()) == [TextSegment(said)]


def test_repaired_arguments_are_asked_about_as_they_would_be_run() -> None:
    (problem,) = told(recover("Perhaps:\n{'tool': 'open_valve', 'arguments': {'number': '3',}}", toolset()))
    assert problem.candidate == callwright.Call("open_valve", '{"number": 3}')


def test_several_calls_in_one_place_are_asked_about_in_order() -> None:
    pieces = recover(f"Perhaps:\n[{BARE}, {BARE.replace('3', '4')}]", toolset())
    assert asked(pieces) == [("open_valve", {"number": 3}), ("open_valve", {"number": 4})]


def test_nothing_is_found_without_tools_or_where_calls_are_forbidden() -> None:
    assert recover(FENCE, toolset("none")) == [TextSegment(FENCE)]
    assert recover(FENCE, Toolset([])) == [TextSegment(FENCE)]


# --- calls in doubt ---

# Arguments of `open_valve`: sound, given twice, in words, unwritten, and all of that together.
ARGUMENTS = [
    '{"number": 3}',
    "{number: '4',}",
    '{"number": 3, "number": 4}',
    '{"number": 4, "number": "many"}',
    '{"number": {"a": 1, "a": 2}, "number": 5}',
    '{"number": nine}',
    '{"number": "9" or "10"}',
    '{"number": }',
    '{"number": , "number": 4}',
    '{"number": 2e, "number": 4}',
    '{"number": 4, "number": 5, "bed": }',
    r'{"number": 4, "number": "\ud83c"}',
    '[{"number": 4, "number": 6}, 7]',
    '[{"number": 4, "number": 6}]',
    "{>}",
    "{}",
    '"3"',
]
FORMS = [
    '{{"tool": "open_valve", "arguments": {}}}',
    '{{"name": "Open-Valve", "arguments": {}}}',
    '{{"content": "The third one.", "tool_calls": [{{"name": "open_valve", "arguments": {}}}]}}',
    '{{"open_valve": {}}}',
    "open_valve{}",
    "{}",
]
ROWS = ["", ", ", "\n", " and ", "\n```\n\n```json\n"]
AROUND = [
    "{}",
    "[{}]",
    "```json\n{}\n```",
    "I'll open it.\n{}",
    "Perhaps:\n{}\nor not.",
    "<tool_call>{}</tool_call>",
    "{}}}",
]


@st.composite
def _replies(draw: st.DrawFn) -> str:
    """Calls in a row, some of them not sound, and words around them."""
    calls = st.builds(str.format, st.sampled_from(FORMS), st.sampled_from(ARGUMENTS))
    row = draw(st.sampled_from(ROWS)).join(draw(st.lists(calls, min_size=1, max_size=3)))
    return draw(st.sampled_from(AROUND)).format(row)


@examples(1_000)
@given(_replies(), st.sampled_from(["auto", "required", NamedTool("open_valve")]), st.sampled_from(["", "So:\n"]))
def test_nothing_is_lost_or_invented_where_some_calls_are_not_sound(reply: str, choice: Any, before: str) -> None:
    tools = toolset(choice)
    assert_segments_hold(reply, recover(reply, tools, before=before), tools)


@pytest.mark.parametrize("given", ['"number": ', '"number": 3e', '"number": -', '"number": "\\ud83c"', '"bed": '])
def test_what_was_not_written_is_not_excused_by_a_name_that_was_given_twice(given: str) -> None:
    for members in (f'{given}, "number": 3, "number": 4', f'"number": 3, "number": 4, {given}'):
        output = f'{{"tool": "open_valve", "arguments": {{{members}}}}}'
        pieces = recover(output, toolset())
        assert words(pieces) == output
        assert [problem.kind for problem in told(pieces)] == ["invalid_arguments"]


def test_a_name_that_was_given_twice_in_one_call_excuses_no_other() -> None:
    wrong, twice = (f'{{"tool": "open_valve", "arguments": {made}}}' for made in ('{"number": "x"}', ARGUMENTS[2]))
    for row in (f"{wrong}\n{twice}", f"[{twice}, {wrong}]"):
        pieces = recover(row, toolset())
        assert called(pieces) == [("open_valve", {"number": 4})]
        assert [(problem.kind, problem.text) for problem in told(pieces)] == [("invalid_arguments", wrong)]


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [(ARGUMENTS[2], "argument_repeated"), ('{"bed": the north one, "litres": 3}', "malformed_call")],
)
def test_what_is_in_doubt_is_not_asked_about(arguments: str, kind: str) -> None:
    tool = "water_beds" if "bed" in arguments else "open_valve"
    output = f'Perhaps:\n{{"tool": "{tool}", "arguments": {arguments}}}'
    assert [(problem.kind, problem.candidate) for problem in told(recover(output, toolset()))] == [(kind, None)]


def test_a_verdict_without_calls_is_text() -> None:
    assert verdict(Runs(), demanded=True) == "text"


@pytest.mark.parametrize(
    "said",
    ["", "Sure.", "I'll", "I'll.", "I'll check it. Really.", "I'll check it?", "I'll check\nthe log:", "x" * 300],
)
def test_what_is_no_clause_of_an_act_announces_nothing(said: str) -> None:
    assert not is_announcement(said)


@pytest.mark.parametrize("said", lines("announces"))
def test_an_act_is_announced_in_many_languages(said: str) -> None:
    assert is_announcement(said)


@pytest.mark.parametrize("said", lines("announces_nothing"))
def test_what_is_shown_refused_or_put_off_is_not_announced(said: str) -> None:
    assert not is_announcement(said, ["send_mail"])


def test_languages_are_told_apart_by_their_patterns() -> None:
    languages = announcements().languages
    assert len({(language.opening, language.act) for language in languages}) == len(languages)


def test_each_list_that_a_pattern_of_announcements_names_is_there() -> None:
    known = announcements()
    for pattern in (known.interjection, known.wait, known.end, *(part for each in known.languages for part in each)):
        assert not re.search(r"\{[a-z]", re.compile(pattern).pattern)


@pytest.mark.parametrize(
    "unit",
    [
        f"words {BARE} ",
        f"so:\n{BARE}\n",
        f"{FENCE}\n",
        f"- a {BARE}\n",
        f"- {BARE}\n+ {BARE}\n",
        f'"{BARE}" ',
        "I'll check the log and ",
    ],
)
def test_the_cost_is_linear(unit: str) -> None:
    """Counted in calls of functions; `bench/floods.py` has the times."""
    one, four = (_function_calls(unit * times) for times in (60, 240))
    assert four < 6 * one + 5_000


# Schemas that no object fits, or only one with something in it.
@pytest.mark.parametrize(
    "schema",
    [
        {"const": {"gate": 1}},
        {"minProperties": 1},
        {"required": ["gate"]},
        {"not": {}},
        {"anyOf": [{"required": ["gate"]}, {"required": ["lock"]}]},
    ],
    ids=str,
)
@pytest.mark.parametrize("behind", ["", "And then:\n"])
def test_a_call_without_arguments_has_to_fit_like_any(schema: dict[str, Any], behind: str) -> None:
    text = f'```json\n{{"tool": "open_gate"}}\n```\n{behind}'
    tools = Toolset([FunctionTool("open_gate", None, {"type": "object", **schema})])
    pieces = recover(text, tools)
    assert_segments_hold(text, pieces, tools)
    assert not called(pieces)


def _function_calls(text: str) -> int:
    count = 0

    def note(*_: object) -> None:
        nonlocal count
        count += 1

    tools = toolset()
    recover(text[:200], tools)
    sys.setprofile(note)
    try:
        recover(text, tools)
    finally:
        sys.setprofile(None)
    return count
