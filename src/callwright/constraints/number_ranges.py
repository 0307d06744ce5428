"""Regular expressions for the numbers between two bounds, in decimal notation without an exponent."""

from collections.abc import Iterator, Mapping
from math import ceil, floor, inf
from typing import Any, Final

MAX_WHOLE: Final = 10**15  # the bound of numbers without one of their own
_MAX_DIGITS: Final = 21  # of a number without a bound
_DIGITS: Final = 15  # before and after the point of a number
BOUNDS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")


def integer_range(schema: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """The least and the greatest integer of a schema; None: without a bound. Bounds may have fractions."""
    lows = [ceil(schema["minimum"])] if "minimum" in schema else []
    lows += [floor(schema["exclusiveMinimum"]) + 1] if "exclusiveMinimum" in schema else []
    highs = [floor(schema["maximum"])] if "maximum" in schema else []
    highs += [ceil(schema["exclusiveMaximum"]) - 1] if "exclusiveMaximum" in schema else []
    return max(lows, default=None), min(highs, default=None)


def has_values(kind: str, schema: Mapping[str, Any]) -> bool:
    """Whether there is a number of this type between the bounds of a schema."""
    if kind == "integer":
        low, high = integer_range(schema)
        return low is None or high is None or low <= high
    least = max((schema[name] for name in BOUNDS[::2] if name in schema), default=-inf)
    most = min((schema[name] for name in BOUNDS[1::2] if name in schema), default=inf)
    is_open = least == schema.get("exclusiveMinimum") or most == schema.get("exclusiveMaximum")
    return least < most or (least == most and not is_open)


def has_bounds(schema: Mapping[str, Any]) -> bool:
    """Whether numbers of this schema have other bounds than those by default, with which exponents are allowed."""
    return any(abs(schema[name]) != MAX_WHOLE for name in BOUNDS if name in schema)


def integer_pattern(low: int | None, high: int | None) -> str:
    """The integers from `low` to `high`."""
    low = -(10**_MAX_DIGITS) + 1 if low is None else low
    high = 10**_MAX_DIGITS - 1 if high is None else high
    below = [f"-(?:{_naturals(max(-high, 1), -low)})"] if low < 0 else []
    above = [_naturals(max(low, 0), high)] if high >= 0 else []
    return "|".join([*below, *above])


def number_pattern(schema: Mapping[str, Any], digits: int | None = None) -> str:
    """The numbers that fit the bounds of a schema, with this many digits after the point at most.

    A bound that is no integer is held as the next integer outside.
    """
    digits = _DIGITS if digits is None else digits
    lows = [(schema[name], name == "exclusiveMinimum") for name in BOUNDS[::2] if name in schema]
    highs = [(schema[name], name == "maximum") for name in BOUNDS[1::2] if name in schema]
    low, is_low_open = max(lows, default=(-(10**_DIGITS), False))
    high, is_high_closed = min(highs, default=(10**_DIGITS, True))
    is_low_open, is_high_open = is_low_open and low == floor(low), not is_high_closed and high == ceil(high)
    low, high = floor(low), ceil(high)
    below = _magnitudes(max(-high, 0), -low, high <= 0 and is_high_open, is_low_open, digits) if low < 0 else ()
    above = _magnitudes(max(low, 0), high, low >= 0 and is_low_open, is_high_open, digits) if high >= 0 else ()
    return "|".join([*(f"-(?:{way})" for way in below), *above])


def _magnitudes(low: int, high: int, is_low_open: bool, is_high_open: bool, digits: int) -> Iterator[str]:
    first, fraction = low + is_low_open, f"(?:\\.[0-9]{{1,{digits}}})?" if digits else ""
    if is_low_open and low < high and digits:
        yield f"{low}\\.[0-9]{{0,{digits - 1}}}[1-9]"
    if first < high:
        yield f"(?:{_naturals(first, high - 1)}){fraction}"
    if not is_high_open and first <= high:
        yield str(high)


def _naturals(low: int, high: int) -> str:
    """The integers from `low` to `high`, neither of which is negative."""
    ways: list[str] = []
    if low == 0:
        ways, low = ["0"], 1
    if high < low:
        return "|".join(ways)
    first, last = len(str(low)), len(str(high))
    if low == 10 ** (first - 1) and high == 10**last - 1:
        return "|".join([*ways, f"[1-9][0-9]{{{first - 1},{last - 1}}}"])
    for length in range(first, last + 1):
        ways += _same_length(str(max(low, 10 ** (length - 1))), str(min(high, 10**length - 1)))
    return "|".join(ways)


def _same_length(low: str, high: str) -> list[str]:
    rest = len(low) - 1
    if low[1:] == "0" * rest and high[1:] == "9" * rest:
        return [_digit(low[0], high[0]) + (f"[0-9]{{{rest}}}" if rest else "")]
    if low[0] == high[0]:
        return [low[0] + way for way in _same_length(low[1:], high[1:])]
    ways = [low[0] + way for way in _same_length(low[1:], "9" * rest)]
    if int(low[0]) + 1 < int(high[0]):
        ways += _same_length(chr(ord(low[0]) + 1) + "0" * rest, chr(ord(high[0]) - 1) + "9" * rest)
    return ways + [high[0] + way for way in _same_length("0" * rest, high[1:])]


def _digit(low: str, high: str) -> str:
    return low if low == high else f"[{low}-{high}]"
