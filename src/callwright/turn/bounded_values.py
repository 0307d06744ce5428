"""Values of calls, and calls, that end at a bound that only the grammar has: the model may have meant to write more."""

from collections.abc import Iterator, Sequence
from typing import Any

from callwright.constraints.constraint import Constraint, arguments_schema
from callwright.constraints.limits import MAX_DIGITS, Limits
from callwright.events import Problem
from callwright.schema.keywords import properties
from callwright.schema.resolve import Schema, branches
from callwright.tolerant_json.codec import NotJsonError, decode

# The keyword with which a schema bounds the same by itself.
_KEYWORDS = {"characters": "maxLength", "items": "maxItems", "undeclared members": "maxProperties", "digits": "maximum"}


def find_bounded_values(constraint: Constraint, calls: Sequence[tuple[str, str]]) -> list[Problem]:
    """A problem for each call, of a name and its arguments as JSON, with values that are as large as the grammar of the
    constraint allows, without a bound in their schema; and one if there are as many calls as it allows.
    """
    token_limit = "the default" if constraint.tokens is None else f"about {constraint.tokens}"
    bound = f"as many as the grammar allows (for a token limit of {token_limit})"
    tools = {tool.name: tool for tool in constraint.tools}
    found: list[Problem] = []
    for name, arguments in calls:
        try:
            value = decode(arguments)
        except NotJsonError:
            continue
        schema = arguments_schema(tools[name]) if name in tools else {}
        reached = ", ".join(_values_at_bounds(value, schema, schema, constraint.limits, ""))
        if reached:
            found.append(Problem("value_bounded", f"{name!r}: {reached}, {bound}"))
    if constraint.parallel and len(calls) == constraint.limits.calls + 1:
        found.append(Problem("value_bounded", f"{len(calls)} calls, {bound}"))
    return found


def _values_at_bounds(value: Any, schema: object, root: Schema, limits: Limits, path: str) -> Iterator[str]:
    """Words for each value that is as large as the limits allow."""
    choices = branches(schema, root)
    match value:
        case str():
            kind, size, bounds = "characters", len(value), [limits.text(one) for one in choices]
        case list():
            kind, size, bounds = "items", len(value), [limits.number(one) for one in choices]
            for number, item in enumerate(value):
                inner = {"anyOf": [_of_item(one, number) for one in choices]}
                yield from _values_at_bounds(item, inner, root, limits, f"{path}[{number}]")
        case dict():
            declared = {key for one in choices for key in properties(one)}
            kind, size, bounds = "undeclared members", len(value.keys() - declared), [limits.members] * len(choices)
            for key, item in value.items():
                others = [properties(one).get(key, one.get("additionalProperties", {})) for one in choices]
                yield from _values_at_bounds(item, {"anyOf": others}, root, limits, f"{path}.{key}" if path else key)
        case int() if not isinstance(value, bool):
            kind, size, bounds = "digits", len(str(abs(value))), [MAX_DIGITS] * len(choices)
        case _:
            return
    own = _KEYWORDS[kind]
    free = [bound for one, bound in zip(choices, bounds, strict=True) if not ({own, "enum", "const"} & one.keys())]
    if size > 1 and size in free:
        yield f"{path!r} has {size} {kind}"


def _of_item(schema: Schema, number: int) -> object:
    first = schema.get("prefixItems")
    return first[number] if isinstance(first, list) and number < len(first) else schema.get("items", {})
