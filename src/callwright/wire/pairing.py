"""Calls and outputs, paired by the id of the call and put where every model expects them.

An agent's request repeats all items of the one before: what was paired along a known list is gone on from.
"""

from collections.abc import Sequence, Set
from operator import is_
from typing import Any, Final

import msgspec

from callwright.calls.history import late_output
from callwright.conversation import Call, CallOutput, Item, TextPart
from callwright.errors import RequestError
from callwright.memo.json_values import keep_along, known_along

_NOT_RUN = "This call was not run."
_RUNNING = "This call is still running. Its output will follow."


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


class _Paired(msgspec.Struct, frozen=True):
    """What was `found`, as `items` side by side. Each call in it has its output, so nothing behind it changes it, and
    a further output is a late one, whatever its call is named now. `ids` are those of the calls.
    """

    mend: bool
    behind: int
    found: tuple[Found, ...] = ()
    items: tuple[Item, ...] = ()
    ids: frozenset[str] = frozenset()


_PAIRED: Final = "paired items"  # under which name a list keeps them


def paired(
    found: Sequence[Found], *, mend: bool, given: Sequence[Any] = (), steady: int = 0, behind: int = 0
) -> tuple[Item, ...]:
    """The items with each run of calls and its outputs side by side, what stood between them behind.

    Raises `RequestError` for an output without its call, a call without its output where the conversation goes on, and
    an id that is given twice; with `mend` these are mended instead. A call that was cut off needs no output. An
    asynchronous one is said to be running until its output comes, which stays where it came, and so do further ones.

    `given` is what it was found in, and so much of it comes again with whatever goes on from that: `steady`.
    It stands `behind` so many instructions.
    """
    before = _known(given, found, _Paired(mend, behind))
    more = found[len(before.found) :]
    own = _with_own_ids(more, before) if mend else more
    outputs = _outputs(own, before.ids, mend=mend)
    number = _answered_until(own[: max(0, steady - len(before.found))], before.ids)
    if number:
        items = _side_by_side(own[:number], outputs, mend=mend)
        before = _longer(before, more[:number], own[:number], items)
    keep_along(given, _PAIRED, before)
    return (*before.items, *_side_by_side(own[number:], outputs, mend=mend))


def _known(given: Sequence[Any], found: Sequence[Found], nothing: _Paired) -> _Paired:
    """What was paired of the begin of this list in the same way, or `nothing`."""
    known, _ = known_along(given, _PAIRED, nothing)
    is_begin = len(known.found) <= len(found) and all(map(is_, known.found, found))
    return known if is_begin and (known.mend, known.behind) == (nothing.mend, nothing.behind) else nothing


def _longer(before: _Paired, found: Sequence[Found], own: Sequence[Found], items: Sequence[Item]) -> _Paired:
    """What was paired, with more that was `found`: as it is with its `own` ids, and as `items`."""
    return _Paired(
        before.mend,
        before.behind,
        (*before.found, *found),
        (*before.items, *items),
        before.ids.union([each.item.id for each in own if isinstance(each.item, Call)]),
    )


def _answered_until(found: Sequence[Found], answered: Set[str]) -> int:
    """How many of these stand before the first that may be told in other words when more comes: a call that has no
    output, or may have more than one, and an output whose call has not come. `answered` are the calls before them.
    """
    calls: set[str] = set()
    waiting: set[str] = set()
    last = 0
    for number, each in enumerate(found, 1):
        item = each.item
        if isinstance(item, Call):
            if each.is_async:
                break
            calls.add(item.id)
            waiting.add(item.id)
        elif isinstance(item, CallOutput):
            if item.call_id not in calls and item.call_id not in answered:
                break
            waiting.discard(item.call_id)
        if not waiting:
            last = number
    return last


def _side_by_side(found: Sequence[Found], outputs: dict[str, CallOutput], *, mend: bool) -> list[Item]:
    """Each run of calls with its outputs. What has no output gets one."""
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
    return items + _answered(run, outputs)


def _with_own_ids(found: Sequence[Found], before: _Paired) -> list[Found]:
    """Calls of one id, each with an id of its own; an output answers the latest call of its id. `before` stands before
    them.
    """
    latest: dict[str, str] = {}
    seen: set[str] = set()
    made: list[Found] = []
    start = before.behind + len(before.found)
    for each in found:
        item = own = each.item
        if isinstance(item, Call):
            is_own = item.id not in seen and item.id not in before.ids
            id_ = item.id if is_own else f"{item.id}_mended_{start + len(made)}"
            seen.add(id_)
            latest[item.id] = id_
            own = item if id_ == item.id else msgspec.structs.replace(item, id=id_)
        elif isinstance(item, CallOutput):
            id_ = latest.get(item.call_id, item.call_id)
            own = item if id_ == item.call_id else msgspec.structs.replace(item, call_id=id_)
        made.append(each if own is item else msgspec.structs.replace(each, item=own))
    return made


def _outputs(found: Sequence[Found], answered: Set[str], *, mend: bool) -> dict[str, CallOutput]:
    """The output of each call, by id: of an asynchronous one that which came at once. `answered` are the ids of the
    calls before them, which have theirs.
    """
    outputs: dict[str, CallOutput] = {}
    calls: set[str] = set()
    later: set[str] = set()  # calls that are asynchronous
    left: set[str] = set()  # of those which the conversation has gone on behind
    for each in found:
        match each.item:
            case Call(id=id_):
                if id_ in calls or id_ in answered:
                    raise _twice(id_, each, "calls")
                calls.add(id_)
                if each.is_async:
                    later.add(id_)
            case CallOutput(call_id=id_) if id_ in later:
                if id_ not in left:
                    outputs.setdefault(id_, each.item)
            case CallOutput(call_id=id_):
                if id_ not in calls and id_ not in answered:
                    if not mend:
                        raise RequestError(
                            f"No tool call found for {each.words} output with call_id {id_}.", param="input"
                        )
                elif id_ in outputs or id_ in answered:
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
