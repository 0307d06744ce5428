"""What is certain in an output that is read by a declaration: where values and calls end, and what stands between."""

from typing import Any

import pytest

import callwright
from callwright import ResponseTemplate, Turn
from tests.support.cases import tools
from tests.support.parsing import merged, read
from tests.support.paths import ROOT

FOLDER = ROOT / "tests" / "response_template" / "cases"
_TIDE = "<tool_call><function=tide-table><parameter=harbour>\nHusum\n</parameter></function>\n"


def parsed(family: str, output: str) -> Turn:
    asked: dict[str, Any] = {
        "dialect": ResponseTemplate.load(FOLDER / f"{family}.json"),
        "tools": tools("tide-table", "ping"),
    }
    assert merged(read(output, **asked)) == merged(read([output], **asked))
    return callwright.parse(output, **asked)


@pytest.mark.parametrize(
    ("family", "output"),
    [
        ("inline", f"{_TIDE}<tool_call><function=ping></function></tool_call>"),
        ("lines", "[call tide-table]\nharbour=Husum\n[call ping]\n[/call]"),
        ("attributes", '<do tide-table><harbour is="Husum"/><do ping></do>'),
    ],
)
def test_a_call_without_its_end_ends_before_the_next(family: str, output: str) -> None:
    turn = parsed(family, output)
    assert [(call.name, call.arguments, call.complete) for call in turn.calls] == [
        ("tide-table", '{"harbour":"Husum"}', True),
        ("ping", "{}", True),
    ]
    assert [problem.kind for problem in turn.problems] == ["markup_repaired"]


def test_a_line_that_is_none_is_named() -> None:
    turn = parsed("lines", "[call tide-table]\nharbour=Husum\nas you asked\n[/call]")
    assert turn.calls[0].arguments == '{"harbour":"Husum"}'
    assert [(problem.kind, problem.text.strip()) for problem in turn.problems] == [
        ("arguments_trailing_text", "as you asked")
    ]


def test_words_are_no_arguments() -> None:
    turn = parsed(
        "channels", '<|channel|>commentary to=functions.tide-table <|message|>ask {"harbour": "Husum"}<|call|>'
    )
    assert [call.complete for call in turn.calls] == [False]
