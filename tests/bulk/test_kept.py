"""What is kept from row to row changes nothing: each row is read as if it were the only one."""

import random
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from callwright.bulk.rows import Batch, Row, Work
from callwright.free_text import intent, recover
from callwright.reading.text import foreign
from tests.support.cases import load_cases

CASES: Final = [
    {"output": case.output, **{name: value for name, value in case.request().items() if value is not None}}
    for case in load_cases()
]
# Outputs of one family are read as another, whose calls they then hold.
OTHERS: Final = [
    {**case, "dialect": other}
    for case, other in zip(CASES, ["hermes", "glm45", "qwen3_coder", "json"] * len(CASES), strict=False)
    if case.get("start") is None
]


def forget() -> None:
    for kept in (foreign._kept, recover._kept_candidates, intent._announces):
        kept.cache_clear()


def done(rows: list[Row]) -> list[Row]:
    return Batch(Work("parse"))(rows)


def test_a_row_is_read_the_same_behind_any_others() -> None:
    rows: list[dict[str, Any]] = [*CASES, *OTHERS]
    alone = []
    for row in rows:
        forget()
        alone += done([row])
    assert not [row for row in alone if "error" in row]
    places = list(range(len(rows)))
    random.Random(11).shuffle(places)
    together = dict(zip(places, done([rows[place] for place in places]), strict=True))
    assert [together[place] for place in range(len(rows))] == alone


@given(st.lists(st.sampled_from(OTHERS), min_size=2, max_size=5))
def test_a_row_is_read_the_same_each_time(rows: list[dict[str, Any]]) -> None:
    forget()
    once = done(rows)
    assert done(rows[::-1])[::-1] == once


def test_options_are_read_once_for_all_rows_and_still_told_of() -> None:
    row = {"messages": [{"role": "user", "content": "Which boats?"}]}
    one, two, other = Batch(Work("render", "harmony", options={"reasoning_effort": "low"}))(
        [row, row, {**row, "dialect": "hermes"}]
    )
    assert one == two
    assert "Reasoning: low" in one["prompt"]
    assert "reasoning_effort" in other["error"]
