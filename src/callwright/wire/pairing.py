"""Calls and outputs, paired by the id of the call and put where every model expects them."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from callwright.conversation import Call, CallOutput, Item, Message, Part, TextPart
from callwright.errors import RequestError

__all__ = ["Found", "found_before", "late_output", "paired"]

_NOT_RUN = "This call was not run."
_RUNNING = "This call is still running. Its output will follow."
_MAX_SHOWN = 200  # characters of the arguments, where an output is told apart from its call


class Found(msgspec.Struct, frozen=True):
    """An item of the conversation and where it stood; `words` name its kind in errors.

    `is_async`: a call that may be answered later than at once, and more than once.
    """

    item: Item
    path: str
    words: str = "function call"
    is_async: bool = False


_FOUND: Final = "found items"


def found_before(known: dict[str, Any], now: list[Found]) -> list[Found]:
    """What was made of the same bytes at the same place before, if it is the same as `now`: of that more is `known`."""
    before: list[Found] | None = known.get(_FOUND)
    if before is not None and before == now:
        return before
    known[_FOUND] = now
    return now


def late_output(parts: Sequence[Part], call: Call | None = None) -> Message:
    """An output that comes when the conversation has gone on: of this call, or of one that is not shown."""
    whose = "a call that is not shown" if call is None else f"the call {call.name}({_shown(call.arguments)})"
    return Message("user", (TextPart(f"The output of {whose}:\n"), *parts))


def _shown(arguments: str) -> str:
    return arguments if len(arguments) <= _MAX_SHOWN else f"{arguments[:_MAX_SHOWN]}…"


def paired(found: Sequence[Found], *, mend: bool) -> tuple[Item, ...]:
    """The items with each run of calls and its outputs side by side; what stood between them follows.

    Raises `RequestError` for an output without its call, a call without its output where the conversation goes on, and
    an id that is given twice; with `mend` these are mended instead. A call that was cut off needs no output. An
    asynchronous one is said to be running until its output comes, which stays where it came, and so do further ones.
    """
    if mend:
        found = _with_own_ids(found)
    outputs = _outputs(found, mend=mend)
    last = max((number for number, each in enumerate(found) if not isinstance(each.item, Call)), default=-1)
    later = {each.item.id: each.item for each in found if isinstance(each.item, Call) and each.is_async}
    items: list[Item] = []
    run: list[Call] = []
    is_answered = False
    for number, each in enumerate(found):
        item = each.item
        if isinstance(item, Call):
            if is_answered:  # made with the output of the one before in sight, not at once with it
                items += _answered(run, outputs)
                run, is_answered = [], False
            if item.id not in outputs:
                if number < last and item.complete and not mend and not each.is_async:
                    raise RequestError(f"No tool output found for {each.words} {item.id}.", param="input")
                outputs[item.id] = CallOutput(item.id, (TextPart(_RUNNING if each.is_async else _NOT_RUN),))
            run.append(item)
            continue
        if isinstance(item, CallOutput):
            if outputs.get(item.call_id) is item:
                is_answered = True
                continue
            item = late_output(item.parts, later.get(item.call_id))
        items += _answered(run, outputs)
        run, is_answered = [], False
        items.append(item)
    return (*items, *_answered(run, outputs))


def _with_own_ids(found: Sequence[Found]) -> list[Found]:
    """Calls of one id, each with an id of its own; an output answers the latest call of its id."""
    latest: dict[str, str] = {}
    seen: set[str] = set()
    made: list[Found] = []
    for each in found:
        item = own = each.item
        if isinstance(item, Call):
            id_ = item.id if item.id not in seen else f"{item.id}_mended_{len(made)}"
            seen.add(id_)
            latest[item.id] = id_
            own = item if id_ == item.id else msgspec.structs.replace(item, id=id_)
        elif isinstance(item, CallOutput):
            id_ = latest.get(item.call_id, item.call_id)
            own = item if id_ == item.call_id else msgspec.structs.replace(item, call_id=id_)
        made.append(each if own is item else msgspec.structs.replace(each, item=own))
    return made


def _outputs(found: Sequence[Found], *, mend: bool) -> dict[str, CallOutput]:
    """The output of each call, by id: of an asynchronous one that which came at once."""
    outputs: dict[str, CallOutput] = {}
    calls: set[str] = set()
    later: set[str] = set()  # calls that are asynchronous
    left: set[str] = set()  # of those which the conversation has gone on behind
    for each in found:
        match each.item:
            case Call(id=id_):
                if id_ in calls:
                    raise _twice(id_, each, "calls")
                calls.add(id_)
                if each.is_async:
                    later.add(id_)
            case CallOutput(call_id=id_) if id_ in later:
                if id_ not in left:
                    outputs.setdefault(id_, each.item)
            case CallOutput(call_id=id_):
                if id_ not in calls:
                    if not mend:
                        raise RequestError(
                            f"No tool call found for {each.words} output with call_id {id_}.", param="input"
                        )
                elif id_ in outputs:
                    if not mend:
                        raise _twice(id_, each, "outputs")
                else:
                    outputs[id_] = each.item
            case _:
                left |= later
    return outputs


def _answered(run: Sequence[Call], outputs: dict[str, CallOutput]) -> list[Item]:
    """A run of calls and their outputs."""
    return [*run, *(outputs[call.id] for call in run)]


def _twice(id_: str, found: Found, what: str) -> RequestError:
    return RequestError(
        f"Invalid '{found.path}.call_id': two {what} have the call_id '{id_}'. Expected one call and one output for "
        "each call_id.",
        param=f"{found.path}.call_id",
        code="invalid_value",
    )
