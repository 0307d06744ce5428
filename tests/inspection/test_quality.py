"""Counts over time: fine for the last hour, coarse before, and none is lost."""

from hypothesis import given
from hypothesis import strategies as st

from callwright.inspection.quality import BUCKET_S, QualityCounts
from callwright.inspection.summary import TurnSummary


def row(at: float, model: str = "m") -> TurnSummary:
    return TurnSummary(id="1", at=at, model=model, outcome="right", seconds=0.0, problems={"json_repaired": 1})


@given(st.lists(st.tuples(st.integers(0, 80_000), st.sampled_from("ab")), min_size=1))
def test_no_count_is_lost_and_the_last_hour_is_fine(ends: list[tuple[int, str]]) -> None:
    counts = QualityCounts()
    for at, model in sorted(ends):
        counts.add(row(at, model))
    buckets = counts.buckets()
    assert sum(bucket.turns for bucket in buckets) == len(ends)
    assert sum(bucket.problems["json_repaired"] for bucket in buckets) == len(ends)
    assert [bucket.at for bucket in buckets] == sorted(bucket.at for bucket in buckets)
    newest = buckets[-1].at
    for at, model in ends:
        width = BUCKET_S if at >= newest - 3_600 else 300
        assert any(bucket.model == model and bucket.at <= at < bucket.at + width for bucket in buckets)


def test_what_is_older_than_a_day_is_dropped() -> None:
    counts = QualityCounts()
    for at in (0, 90_000):
        counts.add(row(at))
    assert [bucket.at for bucket in counts.buckets()] == [90_000]
