"""Schemas that nobody means: the strict rules answer in words, a tool with one is refused in OpenAI's form or can be
used, and on plain ones another validator agrees with ours.
"""

from typing import Any

import jsonschema

import callwright
from callwright import RequestError
from callwright.schema.validate import is_valid
from callwright.settings.bounds import Bounds
from callwright.wire.bounds import check_bounds
from fuzz import values
from fuzz.asking import refused
from tests.support.choices import Choices

__all__ = ["run"]

BOUNDS = Bounds()


def run(draw: Choices) -> None:
    """See the module."""
    sane = draw.once_in(3)
    schema: Any = values.arguments(draw, sane=sane)
    if not sane:
        for _ in range(draw.number(3)):
            schema = values.mutated(draw, schema)
    if isinstance(schema, dict):
        problems = callwright.strict_problems(schema)
        assert all(isinstance(problem, str) and problem for problem in problems)
    tool = {"type": "function", "function": {"name": "use", "parameters": schema, "strict": draw.once_in(3)}}
    try:
        check_bounds({"tools": [tool]}, repr(tool), BOUNDS)
        parser = callwright.Parser("hermes", tools=[tool])
    except RequestError as error:
        refused(error)
        return
    value = values.instance(draw, schema, schema if isinstance(schema, dict) else {})
    text = values.written(draw, {"name": "use", "arguments": value})
    for piece in draw.cuts(f"<tool_call>{text}</tool_call>"):
        parser.feed(piece)
    parser.finish()
    callwright.typescript(tool)
    if sane:
        theirs = jsonschema.Draft202012Validator(schema).is_valid(value)
        assert is_valid(schema, value) == theirs, f"{value!r} against {schema!r}: another validator says {theirs}"
