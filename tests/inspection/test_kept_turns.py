"""What is kept of turns that are under way."""

from callwright.calls.aliases import ParameterAliases
from callwright.conversation import Conversation
from callwright.inspection.kept_turns import KeptTurns
from callwright.turn.observe import Observation

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
