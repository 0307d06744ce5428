"""Calls and outputs, paired by the id of the call and put where every model expects them."""

from collections.abc import Sequence, Set
from copy import copy
from functools import partial
from typing import Final, TypeAlias, TypeVar

import msgspec

from callwright.calls.history import NOT_RUN, late_output
from callwright.conversation import Call, CallOutput, Item, TextPart, shared_item
from callwright.errors import RequestError
from callwright.memo.prefixes import fold

_RUNNING = "This call is still running. Its output will follow."
_Outputs: TypeAlias = dict[str, tuple[int, CallOutput]]
_NONE: Final = (-1, None)
T = TypeVar("T")


class Found(msgspec.Struct, frozen=True):
    """An item of the conversation and its path in the request; `words` name its kind in errors.

    `is_async`: a call that may be answered later, and more than once.
    """

    item: Item
    path: str
    words: str = "function call"
    is_async: bool = False


def copied(reader: T) -> T:
    """A reader in the same state, which continues by itself."""
    made = copy(reader)
    for name, value in vars(reader).items():
        setattr(made, name, copy(value))
    return made


class _Paired(msgspec.Struct, frozen=True):
    """The first `number` found items, paired as `items`. Each call in them has its output, so no later item changes
    them, and a further output is a late one. `ids` are those of the calls.
    """

    number: int = 0
    items: tuple[Item, ...] = ()
    ids: frozenset[str] = frozenset()


def paired(found: Sequence[Found], *, mend: bool, behind: int = 0) -> tuple[Item, ...]:
    """The items with each run of calls and its outputs side by side, and after them the items that were in between.

    Raises `RequestError` for an output without its call, a call without its output that other items follow, and an id
    that is given twice; with `mend` these are repaired instead. A call that was cut off needs no output. For an
    asynchronous one there is a note that it is running until its output, which stays at its place, as do further ones.

    `behind`: the number of instructions before the items.
    """
    by = mend, behind
    before = fold(tuple(found), _Paired(), partial(_pair_on, mend, behind), by, "paired")
    own, outputs = _new(before, found, mend, behind)
    return (*before.items, *_side_by_side(own, outputs, mend=mend))


def _pair_on(mend: bool, behind: int, before: _Paired, found: Sequence[Found], _: int) -> _Paired:
    """The same with more items: as far as no later item changes them."""
    own, outputs = _new(before, found, mend, behind)
    number = _answered_until(own, before.ids)
    return _Paired(
        before.number + number,
        (*before.items, *_side_by_side(own[:number], outputs, mend=mend)),
        before.ids.union([each.item.id for each in own[:number] if isinstance(each.item, Call)]),
    )


def _new(before: _Paired, found: Sequence[Found], mend: bool, behind: int) -> tuple[Sequence[Found], _Outputs]:
    """The items that are not paired yet, each call with an id of its own, and their outputs."""
    more = found[before.number :]
    own = _with_own_ids(more, before.ids, behind + before.number) if mend else more
    return own, _outputs(own, before.ids, mend=mend)


def _answered_until(found: Sequence[Found], answered: Set[str]) -> int:
    """The number of items before the first that later items may change: a call without an output or with several, or an
    output without its call. `answered` are the calls before them.
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


def _side_by_side(found: Sequence[Found], outputs: _Outputs, *, mend: bool) -> list[Item]:
    """Each run of calls with its outputs. A call without an output gets one."""
    last = max((number for number, each in enumerate(found) if not isinstance(each.item, Call)), default=-1)
    later = {each.item.id: each.item for each in found if isinstance(each.item, Call) and each.is_async}
    items: list[Item] = []
    run: list[Call] = []
    is_answered = False
    for number, each in enumerate(found):
        item = each.item
        if isinstance(item, Call):
            if is_answered:  # made after the output of the previous call was known, so not parallel
                items += _answered(run, outputs)
                run, is_answered = [], False
            if item.id not in outputs:
                if number < last and item.complete and not mend and not each.is_async:
                    raise RequestError(f"No tool output found for {each.words} {item.id}.", param="input")
                words = TextPart(_RUNNING if each.is_async else NOT_RUN)
                outputs[item.id] = -1, shared_item(CallOutput(item.id, (words,)))
            run.append(item)
            continue
        if isinstance(item, CallOutput):
            if outputs.get(item.call_id, _NONE)[0] == number:
                is_answered = True
                continue
            item = shared_item(late_output(item.parts, later.get(item.call_id)))
        items += _answered(run, outputs)
        run, is_answered = [], False
        items.append(item)
    return items + _answered(run, outputs)


def _with_own_ids(found: Sequence[Found], before: Set[str], start: int) -> list[Found]:
    """Calls of one id, each with an id of its own; an output answers the latest call of its id. `before` are the ids of
    calls before them, `start` is the number of the first.
    """
    latest: dict[str, str] = {}
    seen: set[str] = set()
    made: list[Found] = []
    for each in found:
        item = own = each.item
        if isinstance(item, Call):
            is_own = item.id not in seen and item.id not in before
            id_ = item.id if is_own else f"{item.id}_mended_{start + len(made)}"
            seen.add(id_)
            latest[item.id] = id_
            own = item if id_ == item.id else shared_item(msgspec.structs.replace(item, id=id_))
        elif isinstance(item, CallOutput):
            id_ = latest.get(item.call_id, item.call_id)
            own = item if id_ == item.call_id else shared_item(msgspec.structs.replace(item, call_id=id_))
        made.append(each if own is item else msgspec.structs.replace(each, item=own))
    return made


def _outputs(found: Sequence[Found], answered: Set[str], *, mend: bool) -> _Outputs:
    """The output of each call, with its number among these, by id; of an asynchronous call the first one, if nothing
    follows the call before it. `answered` are the ids of the calls before these, which have theirs.
    """
    outputs: _Outputs = {}
    calls: set[str] = set()
    later: set[str] = set()  # calls that are asynchronous
    left: set[str] = set()  # those of them that other items have followed
    for number, each in enumerate(found):
        match each.item:
            case Call(id=id_):
                if id_ in calls or id_ in answered:
                    raise _twice(id_, each, "calls")
                calls.add(id_)
                if each.is_async:
                    later.add(id_)
            case CallOutput(call_id=id_) if id_ in later:
                if id_ not in left:
                    outputs.setdefault(id_, (number, each.item))
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
                    outputs[id_] = number, each.item
            case _:
                left |= later
    return outputs


def _answered(run: Sequence[Call], outputs: _Outputs) -> list[Item]:
    """A run of calls and their outputs."""
    return [*run, *(outputs[call.id][1] for call in run)]


def _twice(id_: str, found: Found, what: str) -> RequestError:
    return RequestError(
        f"Invalid '{found.path}.call_id': two {what} have the call_id '{id_}'. Expected one call and one output for "
        "each call_id.",
        param=f"{found.path}.call_id",
        code="invalid_value",
    )
