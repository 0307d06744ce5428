"""Values of calls that end at a bound which only the grammar has: the model may have wanted to write more."""

from collections.abc import Iterable, Iterator
from typing import Any

from callwright.constraints.constraint import Constraint
from callwright.constraints.limits import Limits
from callwright.constraints.shape import limits_of_answer
from callwright.events import Problem
from callwright.tolerant_json.codec import NotJsonError, decode


def find_bounded_values(constraint: Constraint, calls: Iterable[tuple[str, str]]) -> list[Problem]:
    """A problem for each call, of a name and its arguments as JSON, with texts or lists that are as long as the grammar
    of the constraint allows.
    """
    found: list[Problem] = []
    limits: Limits | None = None
    for name, arguments in calls:
        sizes = [(path, kind, size) for path, kind, size in _sizes(_value(arguments), "") if _may_be_bound(size)]
        if sizes:
            limits = limits or limits_of_answer(constraint)  # not for each call: it reads all schemas
            most = {"characters": limits.characters, "items": limits.items}
            reached = [f"{path!r} has {size} {kind}" for path, kind, size in sizes if size == most[kind]]
            if reached:
                detail = f"{name!r}: {', '.join(reached)}, as many as the grammar allows with this token limit"
                found.append(Problem("value_bounded", detail))
    return found


def _may_be_bound(size: int) -> bool:
    """Bounds are powers of two."""
    return size > 1 and size & (size - 1) == 0


def _value(arguments: str) -> Any:
    try:
        return decode(arguments)
    except NotJsonError:
        return None


def _sizes(value: Any, path: str) -> Iterator[tuple[str, str, int]]:
    """The length of each text and list, with its path."""
    match value:
        case str():
            yield path, "characters", len(value)
        case list():
            yield path, "items", len(value)
            for number, item in enumerate(value):
                yield from _sizes(item, f"{path}[{number}]")
        case dict():
            for key, item in value.items():
                yield from _sizes(item, f"{path}.{key}" if path else key)
