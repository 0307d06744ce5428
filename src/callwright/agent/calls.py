"""From a call of the model to one that can run: its tool, its arguments, what is wrong with them, what a person says.

What is wrong is told in words for the model: where, what was expected, what it wrote, what can stand there.
"""

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

import msgspec
from msgspec import Struct

from callwright.agent.events import CallReady, ToolEnded
from callwright.agent.results import cut_text
from callwright.agent.tools import Tool
from callwright.calls.custom_tools import INPUT
from callwright.conversation import Call
from callwright.errors import RequestError
from callwright.schema import validate
from callwright.tolerant_json.codec import NotJsonError, decode

__all__ = ["ReadyCall", "call_key", "check_decisions", "decided", "fitted", "prepared"]

_REJECTED: Final = "The user did not approve this call; it was not run."
_MAX_FAULT: Final = 300


class ReadyCall(Struct, frozen=True):
    """A call that holds, as it will run: `values` by parameter, without hidden ones.

    `note` is what a person changed.
    """

    ready: CallReady
    tool: Tool
    values: Mapping[str, Any]
    turn: int = 0
    attempt: int = 0
    note: str = ""


def prepared(index: int, call: Call, tools: Mapping[str, Tool]) -> ReadyCall | str:
    """The call as it can run, or what is wrong with it."""
    tool = tools.get(call.name)
    if tool is None:
        near = get_close_matches(call.name.lower(), list(tools), n=3, cutoff=0.0)
        return f"No tool is called {cut_text(call.name, 64)!r}. The nearest are: {', '.join(near) or 'none'}."
    try:
        arguments = decode(call.arguments or "{}")
    except NotJsonError as error:
        return f"The arguments are no JSON: {error}."
    return fitted(CallReady(index, call.id, call.name, arguments), tool)


def fitted(ready: CallReady, tool: Tool) -> ReadyCall | str:
    """The call as it can run, or what is wrong with its arguments."""
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
    """A call by its name and arguments, whatever the order of the keys."""
    return f"{call.name} {_text(call.arguments)}"


def check_decisions(
    decisions: Mapping[str, Any], asked: Collection[str], calls: Sequence[Call], tools: Mapping[str, Tool]
) -> None:
    """Raises `RequestError` where a decision is none, or for no call that was `asked` about. `calls` are those of the
    run itself; what fits a call within another only the run that it is in knows.
    """
    own = {call.id: call for call in calls}
    for id_, given in decisions.items():
        param = f"decisions.{id_}"
        if id_ not in asked:
            waiting = ", ".join(map(repr, sorted(asked))) or "none"
            raise RequestError(f"No call {id_!r} waits for a decision. Those that wait: {waiting}.", param=param)
        if not isinstance(given, bool | str) and not _is_yes(given):
            raise RequestError(
                'Expected True, False, the words of the person, {"arguments": {…}} or {"always": True}, '
                f"got {type(given).__name__}: {cut_text(repr(given), _MAX_FAULT)}.",
                param=param,
            )
        tool = tools.get(own[id_].name) if id_ in own else None
        if tool is not None and isinstance(given, Mapping) and "arguments" in given:
            found = fitted(CallReady(0, id_, tool.name, given["arguments"]), tool)
            if isinstance(found, str):
                raise RequestError(f"These arguments do not fit {tool.name!r}: {found}", param=f"{param}.arguments")


def _is_yes(given: object) -> bool:
    """Whether it says how a call may run. Whoever says `always` with anything but True may mean a no."""
    if not isinstance(given, Mapping) or not given or not given.keys() <= {"arguments", "always"}:
        return False
    return given.get("always", True) is True


def decided(call: ReadyCall, given: object) -> ReadyCall | ToolEnded:
    """The call as the person wants it, or its rejection; no answer is one."""
    if given is True:
        return call
    if not isinstance(given, Mapping):
        words = given if isinstance(given, str) and given else _REJECTED
        return ToolEnded(call.ready.index, call.ready.id, call.ready.name, "rejected", words)
    if "arguments" not in given:
        return call
    found = fitted(msgspec.structs.replace(call.ready, arguments=given["arguments"]), call.tool)
    assert isinstance(found, ReadyCall)  # it was checked
    note = f"The user changed the arguments to {_text(given['arguments'])}\n"
    return msgspec.structs.replace(found, turn=call.turn, attempt=call.attempt, note=note)


def _text(arguments: Any) -> str:
    return msgspec.json.encode(arguments, order="deterministic").decode()
