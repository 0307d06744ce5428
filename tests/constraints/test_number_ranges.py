"""The expressions for numbers between two bounds match those numbers, and no others."""

import re
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from callwright.constraints.number_ranges import has_values, integer_pattern, integer_range, number_pattern
from callwright.schema import validate

WHOLE = st.integers(-1_200, 1_200) | st.integers(-(10**18), 10**18)
EDGES = st.sampled_from((-1, 0, 1, 9, 10, -10, 99, 100, -100, 101))
BOUNDS = st.dictionaries(
    st.sampled_from(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")), WHOLE | EDGES, max_size=2
)


@given(st.lists(WHOLE | EDGES, min_size=2, max_size=2), WHOLE | EDGES, st.integers(-2, 2))
def test_integers(ends: list[int], value: int, near: int) -> None:
    low, high = sorted(ends)
    is_in = re.compile(f"(?:{integer_pattern(low, high)})").fullmatch
    for one in (value, low + near, high + near):
        assert bool(is_in(str(one))) == (low <= one <= high)


@given(BOUNDS, EDGES | st.integers(-1_200, 1_200), st.sampled_from(("", ".0", ".5", ".25", ".000001", ".999999")))
def test_numbers(schema: dict[str, int], whole: int, fraction: str) -> None:
    if not has_values("number", schema):
        return
    is_in = re.compile(f"(?:{number_pattern(schema)})").fullmatch
    for text in (f"{whole}{fraction}", *(f"{bound}{fraction}" for bound in schema.values())):
        if is_in(text):
            assert validate.is_valid(
                {"type": "number", **schema}, float(text) if abs(Decimal(text)) < 10**9 else int(whole)
            )
        elif fraction != ".0" and abs(Decimal(text)) < 10**9:
            assert not validate.is_valid({"type": "number", **schema}, float(text)), text


@given(
    st.dictionaries(
        st.sampled_from(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")),
        st.integers(-5, 5) | st.integers(-20, 20).map(lambda quarters: quarters / 4),
    )
)
def test_integers_between_bounds_with_fractions(bounds: dict[str, float]) -> None:
    schema = {"type": "integer", **bounds}
    valid = [value for value in range(-7, 8) if validate.is_valid(schema, value)]
    assert has_values("integer", bounds) == bool(valid)
    if valid:
        is_in = re.compile(f"(?:{integer_pattern(*integer_range(bounds))})").fullmatch
        assert [value for value in range(-7, 8) if is_in(str(value))] == valid
