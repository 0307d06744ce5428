"""The cases of tests/vectors, each read in every way."""

import pytest

from callwright import collect
from tests.support.cases import Case, load_cases
from tests.support.examples import share
from tests.support.parsing import lost, merged, pieces, read, read_told
from tests.support.properties import assert_well_formed

CASES = load_cases()
# An output is cut off at so many places, and cut into pieces in so many ways; which places differs from case to case.
MOST_ENDS = share(40)
WAYS = share(5)
cases = pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.dialect}: {case.title}")


@cases
def test_a_case_is_read_as_it_says_however_it_is_cut_and_wherever_it_ends(case: Case) -> None:
    means_what_it_says(case)
    is_read_alike_however_it_is_cut(case)
    loses_no_character(case)
    may_end_anywhere(case)


def means_what_it_says(case: Case) -> None:
    events = read([case.output], case.finish, **case.request())
    assert not case.misread(collect(events))


def is_read_alike_however_it_is_cut(case: Case) -> None:
    whole = merged(read([case.output], case.finish, **case.request()))
    assert merged(read_told([case.output], case.finish, **case.request())) == whole
    assert merged(read(case.output, case.finish, **case.request())) == whole
    for seed in range(WAYS):
        assert merged((read, read_told)[seed % 2](pieces(case.output, seed), case.finish, **case.request())) == whole


def loses_no_character(case: Case) -> None:
    events = read(pieces(case.output, 7), case.finish, check="verbatim", **case.request())
    assert_well_formed(events)
    assert not lost(case.output, events)


def may_end_anywhere(case: Case) -> None:
    finish = ("stop", "length")[len(case.title) % 2]  # no reader is told
    step = max(1, len(case.output) // MOST_ENDS)
    for end in range(len(case.title) % step, len(case.output), step):
        output = case.output[:end]
        events = read(pieces(output, end), finish, **case.request())
        turn = collect(events)
        unfinished = finish == "length" or not all(call.complete for call in turn.calls)
        assert turn.finish_reason == ("length" if unfinished else "tool_calls" if turn.calls else "stop")
        assert merged(events) == merged((read, read_told)[end % 2]([output], finish, **case.request()))
