"""Outputs read by a checkpoint's own declaration, and declarations that cannot be."""

import json
from pathlib import Path

import pytest

from tests.cases import Case, read_cases
from tests.reading import lost, merged, pieces, read
from toolwright import ResponseTemplate, collect

FOLDER = Path(__file__).parent / "response_templates"
TEMPLATES = {path.stem: ResponseTemplate.load(path) for path in sorted(FOLDER.glob("*.json"))}
CASES = [case for path in sorted(FOLDER.glob("*.txt")) for case in read_cases(path)]
cases = pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.dialect}: {case.title}")


def request(case: Case) -> dict[str, object]:
    return {**case.request(), "dialect": TEMPLATES[case.dialect]}


@cases
def test_a_case_means_what_it_says(case: Case) -> None:
    events = read([case.output], case.finish, **request(case))
    assert not case.misread(collect(events))


@cases
def test_the_cut_of_the_stream_changes_nothing(case: Case) -> None:
    whole = merged(read([case.output], case.finish, **request(case)))
    assert merged(read(case.output, case.finish, **request(case))) == whole
    for seed in range(5):
        assert merged(read(pieces(case.output, seed), case.finish, **request(case))) == whole


@cases
def test_no_character_is_lost(case: Case) -> None:
    assert not lost(case.output, read(pieces(case.output, 7), case.finish, check="verbatim", **request(case)))


@cases
@pytest.mark.parametrize("finish", ["stop", "length"])
def test_an_output_may_end_anywhere(case: Case, finish: str) -> None:
    for end in range(len(case.output)):
        output = case.output[:end]
        events = read(pieces(output, end), finish, **request(case))
        assert merged(events) == merged(read([output], finish, **request(case)))
        assert not lost(output, read([output], finish, check="verbatim", **request(case)))
