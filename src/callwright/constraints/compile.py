"""Compiles a constraint for one kind of server, with a cache by content.

Compilation takes 0.1 ms a tool and more, so the caller does it off the event loop; `ready` returns immediately.
"""

import hashlib
import threading
from collections import OrderedDict
from typing import Final, Literal, TypeAlias

import msgspec

from callwright.constraints.answer_text import answer_sentence
from callwright.constraints.constraint import AnswerForm, Constraint
from callwright.constraints.gbnf_writer import gbnf
from callwright.constraints.json_schema import calls_schema
from callwright.constraints.lark import Vocabulary, lark
from callwright.constraints.limits import rounded
from callwright.constraints.schema_subset import Engine
from callwright.constraints.shape import marks_answers, sentence, shape_of
from callwright.constraints.structural_tag import structural_tag
from callwright.conversation import Conversation, FunctionTool, NamedTool
from callwright.prompt import Prompt
from callwright.tolerant_json.codec import encode

# The target of a constraint: an engine, or any server that enforces a JSON Schema.
Target: TypeAlias = Engine | Literal["json"]

_KEPT: Final = 256
# A longer text takes a server seconds to read, and is not sent.
_MAX_CHARS: Final = 1_000_000


class Compiled(msgspec.Struct, frozen=True):
    """A constraint for a server: Lark, the JSON text of a structural tag or of a schema, or GBNF.

    `trigger`: it applies only from this text on; for GBNF, as the other languages express that themselves.
    """

    text: str
    trigger: str = ""


_kept: OrderedDict[tuple[bytes, Target], Compiled | None] = OrderedDict()
_lock: Final = threading.Lock()


def constraint_of(
    dialect: str, conversation: Conversation, prompt: Prompt | None, tokens: int | None = None
) -> Constraint | None:
    """The constraint on the answer to a request; None if any text is allowed, or a call need not be valid.

    Without a `prompt` the answer is a message of a chat server: only a demanded call is constrained, and only if the
    format does not mark its answers, as such a server adds and removes the marks itself. It gets the form of a text in
    the request (`response_format`). `tokens` is the token limit of the request.
    """
    choice, tools = conversation.tool_choice, callable_tools(conversation)
    demanded = bool(tools) and (choice == "required" or isinstance(choice, NamedTool))
    wanted = conversation.response_format if not demanded else None
    # The request's form for the text of the answer.
    form = None if wanted is None else AnswerForm(wanted.schema if wanted.schema is not None else {"type": "object"})
    if prompt is None and not demanded:
        return None
    if form is None and not (demanded or (tools and all(tool.strict for tool in tools))):
        return None
    tokens = rounded(tokens)
    tools = tuple({tool.name: tool for tool in reversed(tools)}.values())[::-1]
    if prompt is None:
        if marks_answers(dialect):
            return None
        return Constraint(dialect, tools, demanded, conversation.parallel_tool_calls, "message", tokens=tokens)
    prefill = prompt.prefill if demanded else ""
    return Constraint(dialect, tools, demanded, conversation.parallel_tool_calls, prompt.start, prefill, form, tokens)


def callable_tools(conversation: Conversation) -> tuple[FunctionTool, ...]:
    """The tools that the model may call now."""
    choice, names = conversation.tool_choice, conversation.allowed_tools
    if choice == "none":
        return ()
    if isinstance(choice, NamedTool):
        names = (choice.name,)
    return conversation.tools if names is None else tuple(tool for tool in conversation.tools if tool.name in names)


def constraint_key(constraint: Constraint) -> bytes:
    """What equal constraints share."""
    form = constraint.form
    asked = (constraint.dialect, constraint.demanded, constraint.parallel, constraint.start, constraint.prefill)
    fields = (*asked, constraint.tokens, form and (form.schema, form.words))
    return hashlib.blake2b(encode((fields, [_content(tool) for tool in constraint.tools])), digest_size=16).digest()


def ready(key: bytes, target: Target) -> bool:
    """Whether the constraint of this key is compiled."""
    return (key, target) in _kept


def compiled(
    constraint: Constraint, target: Target, key: bytes, vocabulary: Vocabulary | None = None
) -> Compiled | None:
    """The constraint, of this key, for a target; None when the dialect's format has no shape, it gets too long or
    is nested too deeply, or llguidance does not take it. `vocabulary` is for llguidance; for another one there is
    another key.
    """
    place = (key, target)
    with _lock:
        if place in _kept:
            _kept.move_to_end(place)
            return _kept[place]
    try:
        found = _compile(constraint, target, vocabulary)
    except RecursionError:  # a schema may be nested as deeply as a request may
        found = None
    if found is not None and len(found.text) > _MAX_CHARS:
        found = None
    with _lock:
        _kept[place] = found
        while len(_kept) > _KEPT:
            _kept.popitem(last=False)
    return found


def _compile(constraint: Constraint, target: Target, vocabulary: Vocabulary | None) -> Compiled | None:
    if target == "json":
        if constraint.form is not None:
            return None
        schema = calls_schema(constraint.tools, parallel=constraint.parallel, limits=constraint.limits)
        return Compiled(encode(schema).decode())
    stop = target == "llguidance" and not (vocabulary and vocabulary.ends)
    if constraint.form is not None:
        node = answer_sentence(constraint, constraint.form, stop=stop, lexes=target == "llguidance")
    else:
        shape = shape_of(constraint)
        node = sentence(shape, stop=stop) if shape is not None else None
    if node is None:
        return None
    match target:
        case "llguidance":
            from llguidance import LLMatcher  # here: 5 MB, and not every server takes its grammars

            text = lark(node, vocabulary)
            return Compiled(text) if not LLMatcher.validate_grammar(text) else None
        case "xgrammar":
            return Compiled(encode(structural_tag(node)).decode())
        case "llamacpp":
            grammar = gbnf(node)
            return Compiled(grammar.grammar, grammar.trigger)


def _content(tool: FunctionTool) -> tuple[object, ...]:
    """All of a tool that a constraint depends on."""
    grammar = tool.custom.grammar if tool.custom else None
    return tool.name, tool.parameters, grammar and (grammar.syntax, grammar.definition)
