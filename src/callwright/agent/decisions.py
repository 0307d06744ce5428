"""A person's decisions on waiting calls: which call each is for, whether it is valid, and how it changes the call.

A call in a nested run has the id of the outer call, `/` and its own id. No other id of a run contains a `/` (see
`State.new_id`).
"""

from collections.abc import Container, Mapping
from typing import Any, Final

import msgspec

from callwright.agent.agent import Agent
from callwright.agent.calls import ReadyCall, arguments_text, fitted
from callwright.agent.events import CallReady, ToolEnded
from callwright.agent.results import cut_text
from callwright.agent.state import ID_BETWEEN, State, open_calls
from callwright.errors import RequestError

_REJECTED: Final = "The user did not approve this call; it was not run."
_MAX_FAULT: Final = 300


def nested_id(outer: str, inner: str) -> str:
    """The id of a nested run's call in `decisions`."""
    return f"{outer}{ID_BETWEEN}{inner}"


def own_and_nested(
    decisions: Mapping[str, Any], nested: Container[str]
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Decisions by call id: those of this run, and those of the `nested` runs that wait by the call they run in."""
    own: dict[str, Any] = {}
    within: dict[str, dict[str, Any]] = {}
    for id_, given in decisions.items():
        outer, between, inner = str(id_).partition(ID_BETWEEN)
        if between and outer in nested:
            within.setdefault(outer, {})[inner] = given
        else:
            own[id_] = given
    return own, within


def check_decisions(agent: Agent[Any], state: State, decisions: object) -> None:
    """Raises `RequestError` for an invalid decision, or one for a call that does not wait. Arguments for a call in a
    tool that runs agents itself are checked when the tool runs them; the agents are unknown before.
    """
    if not isinstance(decisions, Mapping):
        raise RequestError(
            f"decisions: expected one for each call by its id, {{'call_0': True}}, got {type(decisions).__name__}.",
            param="decisions",
        )
    for id_, given in decisions.items():
        if id_ not in state.asked:
            waiting = ", ".join(map(repr, sorted(state.asked))) or "none"
            raise RequestError(
                f"No call {id_!r} waits for a decision. Those that wait: {waiting}.", param=f"decisions.{id_}"
            )
        if not isinstance(given, bool | str) and not _is_yes(given):
            raise RequestError(
                'Expected True, False, the words of the person, {"arguments": {…}} or {"always": True}, '
                f"got {type(given).__name__}: {cut_text(repr(given), _MAX_FAULT)}.",
                param=f"decisions.{id_}",
            )
    _check_arguments(agent, state, decisions, "decisions.")


def _check_arguments(agent: Agent[Any], state: State, decisions: Mapping[str, Any], param: str) -> None:
    """Raises `RequestError` for invalid arguments, also in runs of agents that are tools."""
    tools = agent.member(state.counts.agent).tools
    called = {call.id: tools.get(call.name) for call in open_calls(state.items)}
    own, nested = own_and_nested(decisions, state.nested)
    for id_, given in own.items():
        tool = called.get(id_)
        if tool is not None and isinstance(given, Mapping) and "arguments" in given:
            found = fitted(CallReady(0, id_, tool.name, given["arguments"]), tool)
            if isinstance(found, str):
                why = f"These arguments do not fit {tool.name!r}: {found}"
                raise RequestError(why, param=f"{param}{id_}.arguments")
    for outer, inner in nested.items():
        tool = called.get(outer)
        if tool is not None and tool.agent is not None:
            waiting = State.from_pending(state.nested[outer])
            _check_arguments(tool.agent, waiting, inner, f"{param}{outer}{ID_BETWEEN}")


def _is_yes(given: object) -> bool:
    """Whether a decision is a valid approval. `always` must be True: any other value could mean a no."""
    if not isinstance(given, Mapping) or not given or not given.keys() <= {"arguments", "always"}:
        return False
    return given.get("always", True) is True and isinstance(given.get("arguments", {}), dict)


def decided(call: ReadyCall, given: object) -> ReadyCall | ToolEnded:
    """The call as the person approved it, or its rejection; a missing decision is a rejection."""
    if given is True:
        return call
    if not isinstance(given, Mapping):
        words = given if isinstance(given, str) and given else _REJECTED
        return ToolEnded(call.ready.index, call.ready.id, call.ready.name, "rejected", words)
    if "arguments" not in given:
        return call
    found = changed(call, given["arguments"])
    assert isinstance(found, ReadyCall)  # `check_decisions` ran before
    return found


def changed(call: ReadyCall, arguments: Mapping[str, Any]) -> ReadyCall | str:
    """The call with arguments from a person, and a note for the model; or the error in them."""
    found = fitted(msgspec.structs.replace(call.ready, arguments=arguments), call.tool)
    if isinstance(found, str):
        return found
    note = f"The user changed the arguments to {arguments_text(arguments)}\n"
    return msgspec.structs.replace(found, turn=call.turn, attempt=call.attempt, note=note)
