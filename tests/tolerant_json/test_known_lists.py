"""Arrays that go on where an earlier one ended: they are read as if none had come before."""

import json
import random
from collections.abc import Sequence
from typing import Any, Final

import pytest

from callwright.memo.json_values import KnownList, made_along
from callwright.tolerant_json.known_lists import KnownLists

TEXTS: Final = ("moss", "}", '"}', "},{", "[", "]", "\\", "\n", "é", "𝄞", "x" * 300, "y" * 1_100)


def value(random_: random.Random) -> Any:
    pick = random_.choice
    return {"n": random_.randrange(5), "said": pick(TEXTS), "in": pick([[], [{"a": [1]}], {}, "}"])}


def written(values: list[Any], random_: random.Random) -> bytes:
    """As JSON, in one of the ways that clients write it."""
    how: dict[str, Any] = random_.choice([{}, {"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": False}])
    return json.dumps(values, **how).encode()


def read(known: KnownLists, text: bytes) -> tuple[KnownList, int]:
    """What an array holds, and how many of its values had to be decoded."""
    part = known.find(text)
    if part.values is not None and part.rest is None:
        return part.values, 0
    more = json.loads(part.rest or text)
    return known.keep(text, part, more), len(more)


@pytest.mark.parametrize("seed", range(150))
def test_an_array_holds_what_it_says_whatever_came_before(seed: int) -> None:
    random_ = random.Random(seed)
    known = KnownLists(random_.choice([20_000, 1_000_000]))
    values = [value(random_) for _ in range(random_.randrange(1, 6))]
    for _ in range(30):
        if random_.randrange(3):
            values = values + [value(random_) for _ in range(random_.randrange(3))]
        elif random_.randrange(2):
            at = random_.randrange(len(values))
            values = [*values[:at], value(random_), *values[at + 1 :]]
        else:
            values = values[: random_.randrange(1, len(values) + 1)]
        if not random_.randrange(8):
            values = [*values, random_.choice([7, "}", None, [{}]])]
        text = written(values, random_)
        for _ in range(random_.choice([1, 1, 2])):
            found, _ = read(known, text)
            assert list(found) == values


def test_of_an_array_that_goes_on_only_the_rest_is_decoded() -> None:
    random_ = random.Random(1)
    known = KnownLists(10_000_000)
    values: list[Any] = [{"said": "x" * 1_200}]
    before: KnownList | None = None
    for _ in range(200):
        new = [value(random_), value(random_)]
        values += new
        found, decoded = read(known, json.dumps(values).encode())
        if before is not None:
            assert decoded == len(new)
            assert all(one is other for one, other in zip(before, found, strict=False))
        assert read(known, json.dumps(values).encode()) == (found, 0)
        before = found


def test_many_may_go_on_from_one_and_two_at_most_hang_together() -> None:
    known = KnownLists(10_000_000)
    begin: list[Any] = [{"said": "x" * 3_000}]
    first, _ = read(known, json.dumps(begin).encode())
    for number in range(20):
        found, decoded = read(known, json.dumps([*begin, {"n": number}]).encode())
        assert (found.before, decoded) == (first, 1)
        further, decoded = read(known, json.dumps([*begin, {"n": number}, {"n": -1}]).encode())
        assert (further.before, decoded, found.before) == (found, 1, None)


def test_what_is_known_takes_no_more_than_its_room() -> None:
    known = KnownLists(1_000_000)
    for number in range(3_000):
        read(known, json.dumps([{"said": f"{number} " * 100}] * 3).encode())
        kept = [one for some in (*known._latest.young.values(), *known._latest.old.values()) for one in some]
        assert sum(len(one.stem) for one in kept) < 500_000
    assert len(kept) > 20


def test_what_is_used_stays() -> None:
    known = KnownLists(1_000_000)
    used = json.dumps([{"used": "x" * 2_000}]).encode()
    first, _ = read(known, used)
    for number in range(3_000):
        read(known, json.dumps([{"n": number, "said": "x" * 1_000}]).encode())
        assert read(known, used) == (first, 0)
        assert read(known, used)[0] is first


def test_a_reader_goes_on_from_what_it_made_and_no_other_does() -> None:
    looked: list[tuple[str, int]] = []

    def total(before: int, values: Sequence[int], start: int) -> int:
        looked.append(("total", len(values) - start))
        return before + sum(values[start:])

    def most(before: int, values: Sequence[int], start: int) -> int:
        looked.append(("most", len(values) - start))
        return max([before, *values[start:]])

    one = KnownList([1, 2, 3])
    two = KnownList([1, 2, 3, 9], one)
    assert [made_along(each, 0, total) for each in (one, two, two, [4])] == [6, 15, 15, 4]
    assert [made_along(each, 0, most) for each in (two, one)] == [9, 3]
    assert looked == [("total", 3), ("total", 1), ("total", 1), ("most", 4), ("most", 3)]
