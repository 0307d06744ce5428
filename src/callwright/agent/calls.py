"""Prepares a call of the model to run: finds its tool, validates and converts its arguments.

Errors are texts for the model: the path, the expected value, the model's value, and the valid choices.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final

import msgspec
from msgspec import Struct

from callwright.agent.events import CallReady
from callwright.agent.results import cut_text
from callwright.agent.tools import Tool
from callwright.calls.custom_tools import INPUT
from callwright.conversation import Call
from callwright.schema import validate
from callwright.tolerant_json.codec import NotJsonError, decode

_MAX_FAULT: Final = 300


class ReadyCall(Struct, frozen=True):
    """A valid call, ready to run: `values` by parameter, without hidden ones.

    `note` describes the changes of a person.
    """

    ready: CallReady
    tool: Tool
    values: Mapping[str, Any]
    turn: int = 0
    attempt: int = 0
    note: str = ""


def prepared(index: int, call: Call, tools: Mapping[str, Tool]) -> ReadyCall | str:
    """The call, ready to run, or an error text."""
    tool = tools.get(call.name)
    if tool is None:
        near = get_close_matches(call.name.lower(), list(tools), n=3, cutoff=0.0)
        return f"No tool is called {cut_text(call.name, 64)!r}. The nearest are: {', '.join(near) or 'none'}."
    try:
        arguments = decode(call.arguments or "{}")
    except NotJsonError as error:
        return f"The arguments are not valid JSON: {error}."
    return fitted(CallReady(index, call.id, call.name, arguments), tool)


def fitted(ready: CallReady, tool: Tool) -> ReadyCall | str:
    """The call, ready to run, or an error text about its arguments."""
    if not isinstance(ready.arguments, dict):
        return f"$: expected an object, got {type(ready.arguments).__name__}."
    faults = validate.validator_of(tool.parameters).faults(ready.arguments)
    if faults:
        return " ".join(f"{fault.path}: {cut_text(fault.message, _MAX_FAULT)}." for fault in faults)
    custom = tool.definition.custom
    if custom is not None and custom.grammar is not None:
        wrong = custom.grammar.first_error(ready.arguments[INPUT])
        if wrong is not None:
            return f"The input does not match the grammar: {wrong}."
    try:
        return ReadyCall(ready, tool, tool.read(ready.arguments))
    except msgspec.ValidationError as error:
        return cut_text(f"{error}.", _MAX_FAULT)


def call_key(call: CallReady) -> str:
    """A key of a call from its name and arguments, independent of the order of their keys."""
    return f"{call.name} {arguments_text(call.arguments)}"


def arguments_text(arguments: Any) -> str:
    """Arguments as JSON with sorted keys."""
    return msgspec.json.encode(arguments, order="deterministic").decode()
