"""From a constraint to what one kind of server is told, kept by content.

It takes 0.1 ms a tool and more, so the caller does it off the event loop; `ready` answers at once.
"""

import hashlib
import threading
from collections import OrderedDict
from typing import Final

import msgspec

from toolwright.constraint.gbnf import gbnf
from toolwright.constraint.lark import lark
from toolwright.constraint.project import Engine
from toolwright.constraint.shape import Constraint, sentence, shape_of
from toolwright.constraint.structural_tag import structural_tag
from toolwright.conversation import Conversation, FunctionTool, NamedTool
from toolwright.jsontext import encode
from toolwright.prompt import Prompt

__all__ = ["Compiled", "compiled", "constraint_of", "key_of", "ready"]

_KEPT: Final = 256


class Compiled(msgspec.Struct, frozen=True):
    """What a server is told: Lark, the JSON text of a structural tag, or GBNF.

    `trigger`: it holds only from this text on; for GBNF, the others say it themselves.
    """

    text: str
    trigger: str = ""


_kept: OrderedDict[tuple[bytes, Engine], Compiled | None] = OrderedDict()
_lock: Final = threading.Lock()


def constraint_of(dialect: str, conversation: Conversation, prompt: Prompt) -> Constraint | None:
    """What the request asks of the answer; None where it may be any text, or a call that nobody guarantees."""
    choice = conversation.tool_choice
    tools = conversation.tools
    if isinstance(choice, NamedTool):
        tools = tuple(tool for tool in tools if tool.name == choice.name)
    elif conversation.allowed_tools is not None:
        tools = tuple(tool for tool in tools if tool.name in conversation.allowed_tools)
    demanded = choice == "required" or isinstance(choice, NamedTool)
    all_strict = all(tool.strict for tool in tools) and conversation.response_format is None
    if not tools or choice == "none" or not (demanded or all_strict):
        return None
    tools = tuple({tool.name: tool for tool in reversed(tools)}.values())[::-1]
    prefill = prompt.prefill if demanded else ""
    return Constraint(dialect, tools, demanded, conversation.parallel_tool_calls, prompt.start, prefill)


def key_of(constraint: Constraint) -> bytes:
    """What equal constraints share."""
    fields = (constraint.dialect, constraint.demanded, constraint.parallel, constraint.start, constraint.prefill)
    return hashlib.blake2b(encode((fields, [_content(tool) for tool in constraint.tools])), digest_size=16).digest()


def ready(key: bytes, engine: Engine) -> bool:
    """Whether the constraint of this key is compiled."""
    return (key, engine) in _kept


def compiled(constraint: Constraint, engine: Engine, key: bytes) -> Compiled | None:
    """The constraint, of this key, for an engine; None when the dialect's format has no shape."""
    place = (key, engine)
    with _lock:
        if place in _kept:
            _kept.move_to_end(place)
            return _kept[place]
    found = _compile(constraint, engine)
    with _lock:
        _kept[place] = found
        while len(_kept) > _KEPT:
            _kept.popitem(last=False)
    return found


def _compile(constraint: Constraint, engine: Engine) -> Compiled | None:
    shape = shape_of(constraint)
    node = sentence(shape, stop=engine == "llguidance") if shape is not None else None
    if node is None:
        return None
    match engine:
        case "llguidance":
            return Compiled(lark(node))
        case "xgrammar":
            return Compiled(encode(structural_tag(node)).decode())
        case "llamacpp":
            grammar = gbnf(node)
            return Compiled(grammar.grammar, grammar.trigger)


def _content(tool: FunctionTool) -> tuple[object, ...]:
    """All of a tool that a constraint depends on."""
    grammar = tool.custom.grammar if tool.custom else None
    return tool.name, tool.parameters, grammar and (grammar.syntax, grammar.definition)
