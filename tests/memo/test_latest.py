"""The store of recent values."""

import random

from callwright.memo.latest import Latest

ROOM = 1_000


def _held(latest: Latest[int, int]) -> int:
    return sum({**latest.old, **latest.young}.values())


def test_what_is_kept_fits_into_the_room() -> None:
    chance = random.Random(7)
    latest: Latest[int, int] = Latest(ROOM)
    for key in range(2_000):
        size = chance.randrange(1, ROOM // 2)
        latest.keep(key, size, size)
        assert latest.young[key] == size
        assert _held(latest) <= ROOM


def test_what_is_used_stays_and_what_is_not_goes() -> None:
    latest: Latest[int, int] = Latest(ROOM)
    for key in range(1, 100):
        latest.keep(0, 100, 100)
        latest.keep(key, 100, 100)
    assert 0 in latest.young
    assert 1 not in {**latest.old, **latest.young}


def test_what_would_take_all_room_is_not_kept() -> None:
    latest: Latest[int, int] = Latest(ROOM)
    latest.keep(1, 1, 10)
    latest.keep(2, 2, ROOM)
    assert (latest.young, latest.old) == ({1: 1}, {})
