"""What is kept of turns that are under way."""

import gc
from collections.abc import Iterator

from callwright.calls.aliases import ParameterAliases
from callwright.conversation import Conversation
from callwright.events import Problem
from callwright.gateway.observability.metrics import Metrics
from callwright.inspection.kept_turns import KeptTurns
from callwright.turn.observe import Ended, Observation

MOST = 64 << 20


def turn() -> Observation:
    return Observation("m", "u", "m", "raw", "hermes", None, ParameterAliases(), Conversation(), {}, streamed=True)


def test_turns_that_are_under_way_share_what_may_be_kept() -> None:
    kept = KeptTurns(5_000, MOST)
    running = [turn() for _ in range(2_000)]
    ends = [kept.begin(seen, None)[1] for seen in running]
    assert running[0].keeps == 1 << 20
    # A piece of few characters takes ten times what is counted of it.
    assert 10 * sum(seen.keeps for seen in running) < 8 * MOST
    assert 10 * sum(seen.keeps for seen in running[1_000:]) < MOST
    for end in ends:
        end()
    later = turn()
    kept.begin(later, None)
    assert later.keeps == 1 << 20


def test_of_turns_that_end_at_once_one_is_kept_and_all_that_went_wrong() -> None:
    kept = KeptTurns(5_000, 400_000)
    waiting = [kept.begin(turn(), None) for _ in range(6)]

    def end_one(number: int, *, goes_wrong: bool) -> bool:
        """A turn that ends 1/64 s behind the one before; whether it is kept."""
        seen = turn()
        entry, end = kept.begin(seen, b"x" * 5_000)
        if goes_wrong:
            seen.problems.append(Problem("json_repaired", "a comma"))
        seen.ended_s = number / 64
        end()
        row = entry.row
        assert row.over
        assert (entry.seen is not None) is (entry.body is not None) is row.has_contents
        assert kept.size <= 400_000
        return row.has_contents

    assert end_one(0, goes_wrong=False)
    room_for = 400_000 // kept.size
    assert room_for > 10
    assert all(end_one(number, goes_wrong=False) for number in range(1, room_for))
    full = range(room_for, 400)
    assert [end_one(number, goes_wrong=number % 20 == 7) for number in full] == list(_kept(full))
    for _, end in waiting:
        end()
    assert all(end_one(number, goes_wrong=False) for number in range(400, 450))  # nothing else is under way


def _kept(numbers: range) -> Iterator[bool]:
    """Whether each is kept: one in 50 ms, and those that went wrong."""
    last = numbers[0] - 1
    for number in numbers:
        is_kept = number - last >= 4 or number % 20 == 7
        last = number if is_kept else last
        yield is_kept


def test_a_turn_that_is_let_go_leaves_nothing_for_the_garbage_collector() -> None:
    kept = KeptTurns(3, MOST)
    metrics = Metrics(dict)

    def inspected(seen: Observation) -> Ended:
        return kept.begin(seen, b"body")[1]

    gc.collect()
    gc.disable()
    try:
        for _ in range(20):
            with turn().begin([inspected, metrics.observer("m")]):
                pass
        assert len(kept) == 3
        assert gc.collect() == 0
    finally:
        gc.enable()
