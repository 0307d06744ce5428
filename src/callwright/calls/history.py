"""Repairs a conversation's history, so that every chat template can render it.

Models write arguments that are not a JSON object, clients send them back, and servers fail on them in every later turn.
Each item is treated by itself alone, so the prompt keeps its prefix (and the server its prefix cache).

A server in native mode renders with its model's chat template. What that template asks of calls is in `HistoryRules`.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec
from msgspec import Struct

from callwright.conversation import Call, CallOutput, Item, Message, Part, TextPart
from callwright.shared import kept_along
from callwright.tolerant_json.codec import NotJsonError, decode
from callwright.tolerant_json.escapes import with_whole_characters
from callwright.tolerant_json.reader import read_json

__all__ = ["HistoryRules", "apply_history_rules", "are_readable", "describe_media", "drop_unreadable_calls"]


class HistoryRules(Struct, frozen=True):
    """What the chat template of a model family asks of the calls in a history.

    `single_calls`: it renders one call per message, and drops or refuses more. `call_id` makes the id it expects, from
    the call and its number in the conversation.
    """

    single_calls: bool = False
    call_id: Callable[[Call, int], str] | None = None


def apply_history_rules(items: Sequence[Item], form: HistoryRules) -> tuple[Item, ...]:
    """The items with calls as a template takes them, and outputs in the order of their calls: many templates show no
    ids.
    """
    if not form.single_calls and form.call_id is None and _is_in_order(items):
        return tuple(items)
    found: list[Item] = []
    number = 0
    for calls, outputs, behind in _runs(items):
        ids = {call.id: form.call_id(call, n) if form.call_id else call.id for n, call in enumerate(calls, number)}
        number += len(calls)
        if len(ids) == len(calls):
            found += _together(calls, outputs, ids, single=form.single_calls)
        else:  # duplicate ids: no output can be assigned to its call
            found += [*calls, *outputs]
        found += behind
    return tuple(found)


class _Order(NamedTuple):
    """Whether outputs were in order so far, the ids of the calls that wait for theirs, and the last item."""

    holds: bool = True
    waiting: tuple[str, ...] = ()
    last: type[Item] | None = None


def _is_in_order(items: Sequence[Item]) -> bool:
    """Whether the outputs behind each run of calls are those of its calls, one of each, in their order."""
    return kept_along(items, None, _Order(), _order).holds


def _order(before: _Order, items: Sequence[Item], start: int) -> _Order:
    waiting, kind = deque(before.waiting), before.last
    if not before.holds:
        return before
    for item in items[start:]:
        if type(item) is CallOutput:
            if not waiting or item.call_id != waiting.popleft():
                return _Order(holds=False)
        elif type(item) is Call:
            if waiting and kind is CallOutput:
                return _Order(holds=False)
            waiting.append(item.id)
        elif waiting:
            return _Order(holds=False)
        kind = type(item)
    return _Order(waiting=tuple(waiting), last=kind)


def _together(calls: list[Call], outputs: list[CallOutput], ids: dict[str, str], *, single: bool) -> list[Item]:
    """Parallel calls and their outputs, with the new ids. `single`: each output directly behind its call."""
    own: dict[str, list[CallOutput]] = {call.id: [] for call in calls}
    others: list[CallOutput] = []
    for output in outputs:
        new = ids.get(output.call_id, output.call_id)
        shown = output if new == output.call_id else msgspec.structs.replace(output, call_id=new)
        own.get(output.call_id, others).append(shown)
    pairs: list[list[Item]] = [
        [call if call.id == ids[call.id] else msgspec.structs.replace(call, id=ids[call.id]), *own[call.id]]
        for call in calls
    ]
    if single:
        return [*(item for pair in pairs for item in pair), *others]
    return [*(pair[0] for pair in pairs), *(item for pair in pairs for item in pair[1:]), *others]


def _runs(items: Sequence[Item]) -> Iterator[tuple[list[Call], list[CallOutput], list[Item]]]:
    """Parallel calls, the outputs behind them, and what follows up to the next calls."""
    calls: list[Call] = []
    outputs: list[CallOutput] = []
    behind: list[Item] = []
    for item in items:
        if isinstance(item, Call):
            if outputs or behind:
                yield calls, outputs, behind
                calls, outputs, behind = [], [], []
            calls.append(item)
        elif isinstance(item, CallOutput) and not behind:
            outputs.append(item)
        else:
            behind.append(item)
    yield calls, outputs, behind


def drop_unreadable_calls(items: Sequence[Item]) -> tuple[Item, ...]:
    """The items, with the arguments of every function call a JSON object.

    Broken JSON is repaired. A call that cannot be repaired becomes a message that quotes it, and so does its output.
    """
    if are_readable(items):
        return tuple(items)
    found: list[Item] = []
    told: set[str] = set()
    calls: list[Call] = []  # readable calls, which must stay next to their outputs
    late: list[Item] = []  # outputs of unreadable calls, as messages behind the other outputs
    for item in items:
        if not isinstance(item, Call):
            found += calls
            calls = []
        if not isinstance(item, CallOutput):
            found += late
            late = []
        if isinstance(item, Call) and item.kind == "function":
            arguments = _arguments(item.arguments)
            if arguments is None:
                told.add(item.id)
                words = f"I called {item.name} with arguments that cannot be read: {item.arguments}"
                found.append(Message("assistant", (TextPart(words),)))
                continue
            told.discard(item.id)
            changed = arguments != item.arguments
            calls.append(msgspec.structs.replace(item, arguments=arguments) if changed else item)
        elif isinstance(item, CallOutput) and item.call_id in told:
            late.append(Message("user", (TextPart("The output of that call: "), *item.parts)))
        else:
            found.append(item)
    return (*found, *calls, *late)


def are_readable(items: Sequence[Item]) -> bool:
    """Whether no call among these items has arguments that must be repaired."""
    return all(item.once("is_readable", _is_readable) for item in items if type(item) is Call)


def _is_readable(call: Call) -> bool:
    """Whether a call has arguments that are a JSON object, or free text."""
    return call.kind != "function" or _arguments(call.arguments) == call.arguments


def describe_media(items: Sequence[Item]) -> tuple[Item, ...]:
    """The items, with a note in place of each image or file: for models that take text only."""
    found: list[Item] = []
    for item in items:
        if isinstance(item, Message | CallOutput) and item.has_media:
            item = msgspec.structs.replace(item, parts=tuple(map(_told, item.parts)))
        found.append(item)
    return tuple(found)


def _told(part: Part) -> Part:
    if isinstance(part, TextPart):
        return part
    return TextPart(f"[Here was something that this model is not shown: {part.value.get('type')}]")


def _arguments(text: str) -> str | None:
    """The arguments as the text of a JSON object, repaired if need be; None if they cannot be read."""
    if text.strip() in ("", "null"):
        return "{}"
    try:
        value = decode(text)
        if isinstance(value, str):  # encoded twice
            return value if isinstance(decode(value), dict) else None
        return text if isinstance(value, dict) else None
    except NotJsonError:
        if text != (whole := with_whole_characters(text)):
            return _arguments(whole)
        node = read_json(text.strip())
    if node is None or node.kind != "object":
        return None
    try:
        node.value()  # raises if a value is missing or cut off: it is not made up
    except NotJsonError:
        return None
    return node.text()
