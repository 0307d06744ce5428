"""Whether a text obeys the constraint that a probe sends."""

import pytest

from callwright.doctor.fields import judge

CASES = {
    "enforced": ["ok-7f3", "ok-7f3\n", '{"code": "ok-7f3"}', '{\n  "code" :\t"ok-7f3" }', '{ "code"', '{"code": "ok'],
    "unclear": ["{", "{" + "\n" * 60, '\n{ "c', '{"cod'],
    "ignored": ["", " ", "banana", "ok-7f3 banana", "{banana", '{"fruit": "banana"}', '["code"', "The answer is: {"],
}


@pytest.mark.parametrize(("status", "text"), [(status, text) for status, texts in CASES.items() for text in texts])
def test_an_answer_cut_before_it_shows_anything_proves_nothing(status: str, text: str) -> None:
    assert judge(text) == status
