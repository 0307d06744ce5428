"""What is made of texts is made once, and does not fill the memory."""

import gc
import weakref
from collections import Counter

import pytest

from callwright.conversation import FunctionTool
from callwright.memo.by_text import kept_by_text
from callwright.schema.compiled import compiled_schema
from callwright.schema.validate import Validator


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


def test_validators_with_large_patterns_share_a_bounded_cache() -> None:
    tools = [
        FunctionTool("f", "", {"properties": {"p": {"type": "string", "pattern": f"^.{{1,9000}}x{number}$"}}})
        for number in range(40)
    ]
    for number, tool in enumerate(tools):  # a cached tool has its compiled schema
        validator = compiled_schema(tool).validator
        assert validator is not None
        assert validator.is_valid({"p": f"ax{number}"})
        assert not validator.is_valid({"p": "a"})
        assert compiled_schema(tool).validator is validator
    left = [one for one in gc.get_objects() if isinstance(one, Validator) and one.is_large]
    assert 1 < len(left) < 12
    small = FunctionTool("f", "", {"properties": {"p": {"type": "string", "pattern": "^[a-z]{1,64}$"}}})
    assert (found := compiled_schema(small).validator) is not None
    assert not found.is_large
