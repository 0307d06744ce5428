"""Memory of sequences: results of known beginnings, one object for equal ones, one bound for all."""

import random
from collections.abc import Sequence
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest

from callwright.memo import prefixes
from callwright.memo.latest import Latest
from callwright.memo.prefixes import Same, SharedList, fold, intern, intern_all, once
from callwright.tolerant_json.codec import decode


def _concatenated(before: str, values: Sequence[Any], start: int) -> str:
    return before + "".join(values[start:])


@pytest.mark.parametrize("seed", range(40))
def test_the_result_of_any_sequence_is_that_of_a_new_one(seed: int) -> None:
    """Sequences grow, are cut, branch and come again, in a memory of any size."""
    chance = random.Random(seed)
    known: list[tuple[str, ...]] = [("a",)]
    with patch.object(prefixes, "_MEMORY", Latest(chance.choice([1, 20_000, 10_000_000]))):
        for _ in range(300):
            values = chance.choice(known[-4:])
            values = values[: chance.randrange(1, len(values) + 1)] if chance.random() < 0.2 else values
            values += tuple(chance.choices("abcdefgh", k=chance.randrange(3)))
            known.append(values)
            by = chance.choice([None, 1, "x"])
            assert fold(values, "", _concatenated, by) == "".join(values)
            assert once(values, "whole", partial(len, values), by) == len(values)


def test_a_result_that_swells_is_computed_each_time() -> None:
    class Swollen:
        swells = True

    made = [once(("swollen",), "test", Swollen) for _ in range(2)]
    assert made[0] is not made[1]


@pytest.mark.parametrize(("size", "is_stored"), [(0, True), (8_000, True), (60_000, False)])
def test_a_large_result_counts_with_its_size(size: int, is_stored: bool) -> None:
    with patch.object(prefixes, "_MEMORY", Latest(100_000)):
        values = ("large",)
        first, second = (once(values, "test", list[int], size=size) for _ in range(2))
        assert (first is second) == is_stored
        for number in range(20):
            once((f"other {number}",), "test", list[int], size=size)
        assert (once(values, "test", list[int], size=size) is first) == (size == 0)


def test_nothing_is_stored_of_a_step_that_raises() -> None:
    def step(before: int, values: Sequence[str], start: int) -> int:
        raise ValueError(values[start])

    for _ in range(2):
        with pytest.raises(ValueError, match="first"):
            fold(("first", "second"), 0, step)


def test_equal_texts_are_one_object_and_equal_values_are_not() -> None:
    texts = [b'{"a": 1}', b'{"a": true}', b'{"a": 1}', b"[1]", b'"x"', b"null"]
    one, true, again, *others = intern_all(texts, decode, len)
    assert one is again
    assert one == true
    assert one is not true
    assert others == [[1], "x", None]
    assert Same((one,)) == Same((again,))
    assert Same((one,)) != Same((true,))


def test_objects_in_use_stay_and_others_are_released() -> None:
    memory: Latest[Any, Any] = Latest(100_000)
    with patch.object(prefixes, "_MEMORY", memory):
        used, first = [{"used"}], [{"first"}]
        assert intern(used, "used") is used
        assert intern(first, "first") is first
        for number in range(2_000):
            intern((str(number), "x" * 100), size=100)
            assert intern([], "used") is used
            assert len(memory.young) + len(memory.old) < 80
        assert intern([], "first") is not first


def test_a_shared_list_is_known_and_a_plain_one_is_not() -> None:
    looked: list[int] = []

    def step(before: int, values: Sequence[Any], start: int) -> int:
        looked.append(start)
        return len(values)

    values = [{"a": 1}, {"b": 2}]
    for kind in (list, SharedList):
        for _ in range(2):
            assert fold(kind(values), 0, step) == 2
    assert looked == [0, 0, 0]
