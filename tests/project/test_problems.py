"""Each problem and each failure has a sentence and a next step, from one table."""

from typing import get_args

import pytest

from callwright.errors import UpstreamFault
from callwright.events import PROBLEM_KINDS
from callwright.problems import EXPLANATIONS, PROBLEMS
from tests.support.paths import ROOT


def test_each_problem_and_each_fault_is_explained() -> None:
    assert set(PROBLEMS) == set(PROBLEM_KINDS)
    assert set(get_args(UpstreamFault)) <= set(EXPLANATIONS)


@pytest.mark.parametrize("name", EXPLANATIONS)
def test_an_explanation_is_a_sentence_and_a_next_step(name: str) -> None:
    one = EXPLANATIONS[name]
    for text in (one.happened, one.next_step):
        assert text[0].isupper() or text[0] == "`"
        assert text.endswith((".", ".)"))
        assert text.count("`") % 2 == 0
    assert not one.page or (ROOT / "docs" / one.page.partition("#")[0]).exists()
