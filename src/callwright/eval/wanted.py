"""Compares a value with the wanted one: the value itself, or a predicate of a closed set.

A predicate is an object with one key that begins with `$`, anywhere in a value; `PREDICATES` defines each. So
expectations stay data, the same in our cases and in a user's file.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from callwright.errors import ConfigError, did_you_mean

# Returns why a value does not match; empty if it does.
_Predicate: TypeAlias = Callable[[Any, Any, str], str]
ABSENT: Final[Mapping[str, bool]] = {"$absent": True}
_SHOWN: Final = 80
_DIFFERING: Final = 30
# Tolerance for binary numbers whose decimal notations are equal.
_ROUNDING: Final = 1e-12
_PUNCTUATION: Final = re.compile(r"[ ,./_*^-]")


def misfit(wanted: Any, given: Any, at: str = "$") -> str:
    """Return where and why `given` is not as wanted; empty if it is. Numbers are equal by value, never to a boolean; an
    object has the wanted keys and no others; a list has the wanted values in their order.
    """
    if isinstance(wanted, Mapping):
        named = _find_predicate(wanted)
        return named[0](named[1], given, at) if named else _object(wanted, given, at)
    if isinstance(wanted, list | tuple):
        return _list(wanted, given, at)
    return "" if _equal(wanted, given) else _unlike(wanted, given, at)


def check_wanted(wanted: Any, at: str) -> None:
    """Raise `ConfigError` for a malformed or unknown predicate. `at`: its path, for the error."""
    if isinstance(wanted, Mapping):
        for key, value in wanted.items():
            if str(key).startswith("$"):
                if key not in PREDICATES or len(wanted) > 1:
                    known = ", ".join(PREDICATES)
                    raise ConfigError(
                        f"{at}: expected one of {known}, alone in its object, got {', '.join(map(repr, wanted))}."
                        f"{did_you_mean(str(key), PREDICATES)}"
                    )
                if not isinstance(value, _TAKES[key]):
                    raise ConfigError(f"{at}.{key}: expected {_type_names(_TAKES[key])}, got {type(value).__name__}.")
            check_wanted(value, f"{at}.{key}")
    elif isinstance(wanted, list | tuple):
        for number, value in enumerate(wanted):
            check_wanted(value, f"{at}[{number}]")


def _find_predicate(wanted: Mapping[str, Any]) -> tuple[_Predicate, Any] | None:
    if len(wanted) != 1:
        return None
    ((key, value),) = wanted.items()
    return (PREDICATES[key], value) if key in PREDICATES else None


def _object(wanted: Mapping[str, Any], given: Any, at: str) -> str:
    if not isinstance(given, Mapping):
        return _unlike(wanted, given, at)
    for key in given:
        if key not in wanted or dict(ABSENT) == wanted[key]:
            return f"{at}.{key}: not wanted, got {_short(given[key])}"
    for key, value in wanted.items():
        if key not in given:
            if not _may_be_absent(value):
                return f"{at}.{key}: missing"
        elif said := misfit(value, given[key], f"{at}.{key}"):
            return said
    return ""


def _may_be_absent(wanted: Any) -> bool:
    """Whether a key may be missing: its wanted value is absence, or a choice that includes absence."""
    if not isinstance(wanted, Mapping):
        return False
    return dict(ABSENT) == wanted or (len(wanted) == 1 and dict(ABSENT) in wanted.get("$one_of", ()))


def _list(wanted: Sequence[Any], given: Any, at: str) -> str:
    if not isinstance(given, list | tuple) or len(given) != len(wanted):
        return _unlike(wanted, given, at)
    each = (misfit(one, other, f"{at}[{n}]") for n, (one, other) in enumerate(zip(wanted, given, strict=True)))
    return next(filter(None, each), "")


def _equal(wanted: Any, given: Any) -> bool:
    if isinstance(wanted, bool) or isinstance(given, bool):
        return wanted is given
    if isinstance(wanted, int | float) and isinstance(given, int | float):
        return wanted == given
    return type(wanted) is type(given) and bool(wanted == given)


def _any(_: Any, given: Any, at: str) -> str:
    return ""


def _absent(_: Any, given: Any, at: str) -> str:
    return f"{at}: not wanted, got {_short(given)}"


def _one_of(wanted: Sequence[Any], given: Any, at: str) -> str:
    if any(not misfit(one, given, at) for one in wanted):
        return ""
    if all(isinstance(one, str) for one in wanted):  # the closest one is the most useful to show
        return _unlike(max(wanted, key=lambda one: _alike(one, str(given))), given, at)
    return f"{at}: expected one of {_short(wanted)}, got {_short(given)}"


def _words(wanted: str, given: Any, at: str) -> str:
    """The same words: without case, without white space or punctuation around them."""
    plain = _plain(given) if isinstance(given, str) else None
    return "" if plain == _plain(wanted) else _unlike(wanted, given, at)


def _plain(text: str) -> str:
    return " ".join(text.split()).strip(" .,;:!?\"'").casefold()


def _loosely(wanted: str, given: Any, at: str) -> str:
    """The same text: without case, spaces and the punctuation that dates, numbers and names are written with or not."""
    bare = _bare(given) if isinstance(given, str) else None
    return "" if bare == _bare(wanted) else _unlike(wanted, given, at)


def _bare(text: str) -> str:
    return _PUNCTUATION.sub("", text).lower().replace("'", '"')


def _has(wanted: str | Sequence[str], given: Any, at: str) -> str:
    parts = [wanted] if isinstance(wanted, str) else wanted
    lacks = [part for part in parts if not isinstance(given, str) or part.casefold() not in given.casefold()]
    return f"{at}: expected it to have {_short(lacks[0])}, got {_short(given)}" if lacks else ""


def _set(wanted: Sequence[Any], given: Any, at: str) -> str:
    """The same values in any order."""
    if not isinstance(given, list | tuple) or len(given) != len(wanted):
        return _unlike(wanted, given, at)
    left = list(given)
    for one in wanted:
        found = next((number for number, other in enumerate(left) if not misfit(one, other, at)), None)
        if found is None:
            return f"{at}: {_short(one)} is missing in {_short(given)}"
        left.pop(found)
    return ""


def _near(wanted: Sequence[float], given: Any, at: str) -> str:
    number, most = wanted
    close = (
        isinstance(given, int | float)
        and not isinstance(given, bool)
        and abs(given - number) <= most + _ROUNDING * abs(number)
    )
    return "" if close else f"{at}: expected {number} within {most}, got {_short(given)}"


PREDICATES: Final[Mapping[str, _Predicate]] = {
    "$any": _any,
    "$absent": _absent,
    "$one_of": _one_of,
    "$words": _words,
    "$loosely": _loosely,
    "$has": _has,
    "$set": _set,
    "$near": _near,
}
_TAKES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "$any": bool,
    "$absent": bool,
    "$one_of": list,
    "$words": str,
    "$loosely": str,
    "$has": (str, list),
    "$set": list,
    "$near": list,
}


def _type_names(kind: type | tuple[type, ...]) -> str:
    return " or ".join(one.__name__ for one in (kind if isinstance(kind, tuple) else (kind,)))


def _unlike(wanted: Any, given: Any, at: str) -> str:
    if isinstance(wanted, str) and isinstance(given, str) and max(len(wanted), len(given)) > _SHOWN:
        same = _alike(wanted, given)
        rest = (_short(text[same : same + _DIFFERING]) for text in (wanted, given))
        return f"{at}: from character {same:,} on expected {next(rest)}, got {next(rest)}"
    return f"{at}: expected {_short(wanted)}, got {_short(given)}"


def _alike(one: str, two: str) -> int:
    """The length of the common prefix of two texts."""
    pairs = enumerate(zip(one, two, strict=False))
    return next((number for number, (mine, other) in pairs if mine != other), min(len(one), len(two)))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
