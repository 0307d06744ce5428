"""Random answers that a constraint allows, for the simulated model: the same for the same seed.

The tools, the number of calls and the arguments are random; the dialect writes them. Arguments are random sentences
of the tool's schema, checked against all of it.
"""

import functools
from collections.abc import Callable, Mapping
from contextlib import suppress
from random import Random
from time import thread_time
from typing import Any, Final

from callwright.calls.custom_tools import input_arguments
from callwright.constraints.compile import compiled, constraint_key
from callwright.constraints.constraint import Constraint, arguments_schema
from callwright.constraints.lark import lark
from callwright.constraints.shape import shape_of
from callwright.constraints.tree import Json
from callwright.conversation import AssistantTurn, Call, FunctionTool, Message, TextPart
from callwright.dialects.base import get_dialect
from callwright.grammar.engine import Engine, RefusedError, TooLongError, random_text
from callwright.grammar.grammar import Grammar
from callwright.schema import validate
from callwright.tolerant_json.codec import NotJsonError, decode, encode

_S: Final = 2.0  # of the processor: the same grammar gives up in the same place on a busy machine
_MOST_CALLS: Final = 3
_TRIES: Final = 24
_MOST_ENDLESS: Final = 2
_MOST_BYTES: Final = 1_500
_OFTEN: Final = 0.5
_THOUGHTS: Final = ("Let me see.", "The tool knows.\nIt is < 3 calls away.", 'First "one", then the other.')
# Fills the arguments of a tool for which no random ones were found.
Fallback = Callable[[FunctionTool], Mapping[str, Any]]


def draw_text(grammar: Grammar, seed: int = 0) -> str:
    """A text of the grammar; an empty one if none is found in time."""
    end_s = thread_time() + _S
    return grammar.sample(seed, lambda: thread_time() < end_s) or ""


def sampled_turn(constraint: Constraint, chooser: Random, fallback: Fallback) -> AssistantTurn:
    """Reasoning or none, then calls; or a text if no call is demanded."""
    shape = shape_of(constraint)
    thinks = shape is None or shape.in_reasoning or chooser.random() < _OFTEN
    reasoning = chooser.choice(_THOUGHTS) if thinks else None
    if not constraint.demanded and chooser.random() < _OFTEN:
        return AssistantTurn(reasoning, Message("assistant", (TextPart("No tool is needed."),)))
    several = constraint.parallel and (shape is None or shape.several)
    tools = [chooser.choice(constraint.tools) for _ in range(chooser.randint(1, _MOST_CALLS) if several else 1)]
    return AssistantTurn(reasoning, None, [Call(tool.name, _arguments(tool, chooser, fallback)) for tool in tools])


def _arguments(tool: FunctionTool, chooser: Random, fallback: Fallback) -> str:
    """Arguments that fit, as JSON text."""
    if tool.custom is not None and tool.custom.grammar is not None:
        return input_arguments(draw_text(tool.custom.grammar, chooser.randrange(1 << 20)))
    text = _draw_json({**arguments_schema(tool), "additionalProperties": False}, chooser)
    return text if text is not None else encode(fallback(tool)).decode()


def fitting_value(schema: Mapping[str, Any], value: object) -> Any:
    """The value if it fits, else a random one that does, the same for the same schema; if one is found."""
    if validate.is_valid(schema, value) or len(encode(value)) > _MOST_BYTES:  # larger ones are not drawn
        return value
    text = _first_drawn(encode(schema))
    return value if text is None else decode(text)


@functools.lru_cache(256)
def _first_drawn(schema: bytes) -> str | None:
    given = decode(schema)
    closed = {"additionalProperties": False} if "properties" in given else {}
    return _draw_json({**closed, **given}, Random(0))


def _draw_json(schema: Mapping[str, Any], chooser: Random) -> str | None:
    """JSON text that fits; None if none was found."""
    engine = _engine(lark(Json(schema)))
    if engine is None:
        return None
    endless = 0
    for _ in range(_TRIES):
        text = None
        with suppress(NotJsonError, TooLongError):
            text = random_text(engine.start(), chooser.randrange(1 << 30))
            if text is not None and validate.is_valid(schema, decode(text)):
                return text.decode()
        endless += text is None
        if endless == _MOST_ENDLESS:  # each takes long
            break
    return None


def allows(constraint: Constraint, text: str) -> bool:
    """Whether a text is one that the constraint allows, with its stop token or without. True if that cannot be known:
    the format has no shape, or the engine cannot run its grammar.
    """
    found = compiled(constraint, "llguidance", constraint_key(constraint))
    engine = _engine(found.text) if found is not None else None
    if engine is None:
        return True
    for end in ("", *get_dialect(constraint.dialect).stops):
        reading, ids = engine.start(), list((text + end).encode())
        if reading.try_consume_tokens(ids) == len(ids) and reading.is_accepting():
            return True
    return False


@functools.lru_cache(32)  # of 3 MB each at most
def _engine(grammar: str) -> Engine | None:
    """An engine for the sentences of a grammar; None if it has none, or more than can be run."""
    try:
        return Engine("lark", grammar.partition("\n")[2])  # without its options: the engine has its own
    except RefusedError:
        return None
