"""What is made of texts is made once, and does not fill the memory."""

import gc
import weakref
from collections import Counter

import pytest

from callwright.schema.cache import kept_by_text


class Made:
    """Something that can be seen to be gone."""


def test_of_the_same_text_it_is_made_once() -> None:
    made = Counter[tuple[bytes, int]]()

    @kept_by_text
    def make(text: bytes, number: int) -> Made:
        made[text, number] += 1
        return Made()

    for text in (b"", b"a", b"b" * 4_097, b"c" * 65_537):
        assert make(text, 1) is make(bytes(text), 1) is not make(text, 2)
    assert set(made.values()) == {1}


def test_a_failure_is_not_kept() -> None:
    tries: list[bytes] = []

    @kept_by_text
    def make(text: bytes) -> Made:
        tries.append(text)
        raise LookupError

    for _ in range(2):
        with pytest.raises(LookupError):
            make(b"a")
    assert len(tries) == 2


@pytest.mark.parametrize(("size", "most"), [(100, 1_024), (5_000, 32), (70_000, 1), (2_000_000, 0)])
def test_the_larger_the_fewer_are_kept(size: int, most: int) -> None:
    alive: list[weakref.ref[Made]] = []

    @kept_by_text
    def make(text: bytes) -> Made:
        made = Made()
        alive.append(weakref.ref(made))
        return made

    for number in range(most + 20):
        make(f"{number:{size}}".encode())
    gc.collect()
    assert sum(one() is not None for one in alive) == most
