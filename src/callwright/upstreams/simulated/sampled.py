"""Random answers that a constraint allows, for the simulated model: the same for the same seed.

Which tool is called, how often and with what is drawn; how it is written is the dialect's. Arguments are random
sentences of the tool's schema, checked against all of it.
"""

import functools
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

from callwright.calls.custom_tools import input_arguments
from callwright.constraints.compile import compiled, constraint_key
from callwright.constraints.constraint import Constraint
from callwright.constraints.lark import lark
from callwright.constraints.shape import arguments_schema, shape_of
from callwright.constraints.tree import Json
from callwright.conversation import AssistantTurn, Call, FunctionTool, Message, TextPart
from callwright.dialects.base import get_dialect
from callwright.grammar.engine import Engine, RefusedError, TooLongError, random_text
from callwright.schema import validate
from callwright.tolerant_json.codec import NotJsonError, decode, encode
from callwright.upstreams.simulated.drawn import drawn

__all__ = ["allows", "sampled_turn", "sampled_value"]

_MOST_CALLS: Final = 3
_TRIES: Final = 24
_MOST_ENDLESS: Final = 2
_MOST_BYTES: Final = 1_500
_OFTEN: Final = 0.5
_THOUGHTS: Final = ("Let me see.", "The tool knows.\nIt is < 3 calls away.", 'First "one", then the other.')
_SAID: Final = "No tool is needed."
# What fills the arguments of a tool for which no random ones were found.
Fallback = Callable[[FunctionTool], Mapping[str, Any]]


def sampled_turn(constraint: Constraint, chooser: Random, fallback: Fallback) -> AssistantTurn:
    """Reasoning or none, then calls; or a text where no call is demanded."""
    shape = shape_of(constraint)
    thinks = shape is None or shape.in_reasoning or chooser.random() < _OFTEN
    reasoning = chooser.choice(_THOUGHTS) if thinks else None
    if not constraint.demanded and chooser.random() < _OFTEN:
        return AssistantTurn(reasoning, Message("assistant", (TextPart(_SAID),)))
    several = constraint.parallel and (shape is None or shape.several)
    tools = [chooser.choice(constraint.tools) for _ in range(chooser.randint(1, _MOST_CALLS) if several else 1)]
    return AssistantTurn(reasoning, None, [Call(tool.name, _arguments(tool, chooser, fallback)) for tool in tools])


def _arguments(tool: FunctionTool, chooser: Random, fallback: Fallback) -> str:
    """Arguments that fit, as JSON text."""
    if tool.custom is not None and tool.custom.grammar is not None:
        return input_arguments(drawn(tool.custom.grammar, chooser.randrange(1 << 20)))
    text = _drawn({**arguments_schema(tool), "additionalProperties": False}, chooser)
    return text if text is not None else encode(fallback(tool)).decode()


def sampled_value(schema: Mapping[str, Any], otherwise: object) -> Any:
    """A value that fits, the same for the same schema; `otherwise` where none is found."""
    if len(encode(otherwise)) > _MOST_BYTES:  # what needs so much is never drawn
        return otherwise
    text = _first_drawn(encode(schema))
    return otherwise if text is None else decode(text)


@functools.lru_cache(256)
def _first_drawn(schema: bytes) -> str | None:
    given = decode(schema)
    closed = {"additionalProperties": False} if "properties" in given else {}
    return _drawn({**closed, **given}, Random(0))


def _drawn(schema: Mapping[str, Any], chooser: Random) -> str | None:
    """JSON text that fits; None when none was found."""
    grammar = lark(Json(schema))
    endless = 0
    for _ in range(_TRIES):
        try:
            text = _sentence(grammar, chooser.randrange(1 << 30))
        except TooLongError:
            text = None
        if text is not None and _fits(text, schema):
            return text.decode()
        endless += text is None
        if endless == _MOST_ENDLESS:  # each takes long
            break
    return None


def allows(constraint: Constraint, text: str) -> bool:
    """Whether a text is one that the constraint allows, with its stop token or without. True where that cannot be told:
    the format has no shape, or the engine cannot run its grammar.
    """
    found = compiled(constraint, "llguidance", constraint_key(constraint))
    engine = _engine(found.text) if found is not None else None
    return engine is None or any(_reads(engine, text + end) for end in ("", *get_dialect(constraint.dialect).stops))


def _reads(engine: Engine, text: str) -> bool:
    reading = engine.start()
    ids = list(text.encode())
    return reading.try_consume_tokens(ids) == len(ids) and reading.is_accepting()


def _sentence(grammar: str, seed: int) -> bytes | None:
    engine = _engine(grammar)
    return random_text(engine.start(), seed) if engine is not None else None


def _fits(text: bytes, schema: Mapping[str, Any]) -> bool:
    try:
        return validate.is_valid(schema, decode(text))
    except NotJsonError:
        return False


@functools.lru_cache(32)  # of 3 MB each at most
def _engine(grammar: str) -> Engine | None:
    """What knows the sentences of a grammar; None where it has none, or more than can be run."""
    try:
        return Engine("lark", grammar.partition("\n")[2])  # without its options: the engine has its own
    except RefusedError:
        return None
