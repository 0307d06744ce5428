"""Normalizes a conversation's history, so that every chat template can render it.

Clients answer parallel calls in the order in which they finish, models write arguments that are not a JSON object or
call a tool without its name, and both come back with each later request. Every prompt and every request to a
server is built from `normalized`. The result for an item depends on the items before it and, for a call, on its output:
appending to a conversation leaves its prefix unchanged, so the server's prefix cache stays valid.

A server in native mode renders with its model's chat template. What that template asks of calls is in `HistoryRules`.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from callwright.conversation import Call, CallOutput, Item, Message, Part, TextPart, shared_item
from callwright.memo.prefixes import fold
from callwright.tolerant_json.codec import NotJsonError, decode
from callwright.tolerant_json.escapes import unescaped, with_whole_characters
from callwright.tolerant_json.reader import read_json

NOT_RUN: Final = "This call was not run."  # the output of such a call, for the model
_MAX_SHOWN = 200  # characters of the arguments in a message that names a call


class HistoryRules(Struct, frozen=True):
    """The requirements of a model family's chat template for the calls in a history.

    `single_calls`: it renders one call per message, and drops or refuses more. `call_id` makes the id it expects, from
    the call and its number in the conversation.
    """

    single_calls: bool = False
    call_id: Callable[[Call, int], str] | None = None


def normalized(items: Sequence[Item]) -> tuple[Item, ...]:
    """The items with each run of calls directly before its outputs, which have the order of the calls, one at most for
    each call; with unique ids in each run, and readable calls only.

    Templates pair outputs with calls by place, and fail on arguments that are no object. A call without a name or with
    arguments that cannot be read becomes a message that quotes it, and so does its output. An output that answers no
    call of the conversation, or one that is answered already, is a message at its place.
    """
    if fold(items, _Order(), _order).holds:
        return tuple(items)
    return tuple(_in_order(items))


class _Order(NamedTuple):
    """Whether the items are normalized so far, the ids of the calls that wait for their outputs, and the last item."""

    holds: bool = True
    waiting: tuple[str, ...] = ()
    last: type[Item] | None = None


def _order(before: _Order, items: Sequence[Item], start: int) -> _Order:
    if not before.holds:
        return before
    # No set of ids: searching a few ids takes less time than building one.
    waiting, last = deque(before.waiting), before.last
    for item in items[start:]:
        if type(item) is CallOutput:
            if not waiting or item.call_id != waiting.popleft():
                return _Order(holds=False)
        elif type(item) is Call:
            if last is not Call:
                waiting.clear()
            if item.id in waiting or item.once("readable", _readable) is not True:
                return _Order(holds=False)
            waiting.append(item.id)
        elif waiting:
            waiting.clear()
        last = type(item)
    return _Order(True, tuple(waiting), last)


class _Asked(Struct):
    """A call in a history, unchanged, with its number, the number of its run, and its output."""

    call: Call
    number: int
    run: int
    output: CallOutput | None = None


def _in_order(items: Sequence[Item]) -> Iterator[Item]:
    row: list[Item | list[_Asked]] = []  # a list is a run of calls
    waiting: dict[str, list[_Asked]] = {}  # by their ids
    answered: dict[str, Call] = {}
    calls = runs = 0
    last: type[Item] | None = None
    for item in items:
        if type(item) is Call:
            if last is not Call:
                row.append([])
                runs += 1
            asked = _Asked(item, calls, runs)
            calls += 1
            run = row[-1]
            assert isinstance(run, list)
            run.append(asked)
            waiting.setdefault(item.id, []).append(asked)
        elif type(item) is CallOutput:
            found = _answers(item, waiting)
            if found is None:
                row.append(_late(item, answered.get(item.call_id)))
            else:
                found.output = item
                answered[found.call.id] = found.call
        else:
            row.append(item)
        last = type(item)
    for part in row:
        if isinstance(part, list):
            yield from _run(part)
        else:
            yield part


def _answers(output: CallOutput, waiting: dict[str, list[_Asked]]) -> _Asked | None:
    """The call that an output answers: the first without an output in the latest run that has one of this id. An output
    whose id was lost answers the call that waits first.
    """
    same = waiting.get(output.call_id)
    if not same and not output.call_id:
        same = sorted([asked for calls in waiting.values() for asked in calls], key=lambda asked: asked.number)
    if not same:
        return None
    latest = same[-1].run
    found = next(asked for asked in same if asked.run == latest)
    waiting[found.call.id].remove(found)
    return found


def _run(run: Sequence[_Asked]) -> Iterator[Item]:
    """The calls of a run, and their outputs, with the messages that quote the others around them."""
    shown: list[Item] = []
    outputs: list[Item] = []
    told: list[Item] = []
    ids: set[str] = set()
    for asked in run:
        call, output = as_readable(asked.call), asked.output
        if isinstance(call, Message):
            yield call
            told += [] if output is None else [_in_words(output, "The output of that call: ")]
            continue
        id_ = _own_id(call.id, ids)
        shown.append(_with_id(call, id_))
        outputs += [] if output is None else [_answering(output, id_)]
    yield from (*shown, *outputs, *told)


def _own_id(id_: str, ids: set[str]) -> str:
    """The id, or a new one if it is in `ids` already. Adds the result to `ids`."""
    own, number = id_, len(ids)
    while own in ids:
        own, number = f"{id_ or 'call'}_{number}", number + 1
    ids.add(own)
    return own


def _with_id(call: Call, id_: str) -> Call:
    if call.id == id_:
        return call
    return shared_item(msgspec.structs.replace(call, id=id_))


def _answering(output: CallOutput, id_: str) -> CallOutput:
    if output.call_id == id_:
        return output
    return shared_item(msgspec.structs.replace(output, call_id=id_))


def _late(output: CallOutput, call: Call | None) -> Message:
    return shared_item(late_output(output.parts, call))


def late_output(parts: Sequence[Part], call: Call | None = None) -> Message:
    """A message with an output that arrives after later items: of this call, or of one that is not shown."""
    whose = "a call that is not shown" if call is None else f"the call {call.name}({_cut(call.arguments)})"
    return Message("user", (TextPart(f"The output of {whose}:\n"), *parts))


def _cut(arguments: str) -> str:
    return arguments if len(arguments) <= _MAX_SHOWN else f"{arguments[:_MAX_SHOWN]}…"


def _in_words(output: CallOutput, words: str) -> Message:
    return shared_item(Message("user", _behind(words, output.parts)))


def _behind(words: str, parts: Sequence[Part]) -> tuple[Part, ...]:
    """The parts of a text, prefixed with these words."""
    first, rest = (parts[0], parts[1:]) if parts and isinstance(parts[0], TextPart) else (TextPart(""), parts)
    return (TextPart(words + first.text), *rest)


def as_readable(call: Call) -> Call | Message:
    """The call with a JSON object as its arguments, repaired if need be, without unnecessary
    escapes. One that cannot be read, or has no name, as an assistant's message that quotes it.
    """
    found: Call | Message | bool = call.once("readable", _readable)
    return call if isinstance(found, bool) else found


def _readable(call: Call) -> Call | Message | bool:
    """See `as_readable`; True if the call needs no change."""
    if not call.name.strip():
        return _quote(f"I called a tool without its name, with the arguments {call.arguments}")
    arguments = call.arguments if call.kind != "function" else _arguments(call.arguments)
    if arguments is None:
        return _quote(f"I called {call.name} with arguments that cannot be read: {call.arguments}")
    return arguments == call.arguments or msgspec.structs.replace(call, arguments=arguments)


def _quote(words: str) -> Message:
    return Message("assistant", (TextPart(words),))


def apply_history_rules(items: Sequence[Item], rules: HistoryRules) -> tuple[Item, ...]:
    """The items, normalized, with calls as a template takes them."""
    items = normalized(items)
    if not rules.single_calls and rules.call_id is None:
        return items
    found: list[Item] = []
    number = 0
    for calls, outputs, behind in _runs(items):
        answers = {output.call_id: output for output in outputs}
        made: list[Item] = []
        answered: list[Item] = []
        for call in calls:
            id_ = rules.call_id(call, number) if rules.call_id else call.id
            number += 1
            made.append(_with_id(call, id_))
            if output := answers.get(call.id):
                (made if rules.single_calls else answered).append(_answering(output, id_))
        found += [*made, *answered, *behind]
    return tuple(found)


def _runs(items: Sequence[Item]) -> Iterator[tuple[list[Call], list[CallOutput], list[Item]]]:
    """Parallel calls, the outputs after them, and the items up to the next calls."""
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


def describe_media(
    items: Sequence[Item], kinds: tuple[type[Message | CallOutput], ...] = (Message, CallOutput)
) -> tuple[Item, ...]:
    """The items, with a note in place of each image or file in one of these kinds: for models that take text only."""
    found: list[Item] = []
    for item in items:
        if isinstance(item, kinds) and item.has_media:
            item = shared_item(msgspec.structs.replace(item, parts=tuple(map(_describe_part, item.parts))))
        found.append(item)
    return tuple(found)


def _describe_part(part: Part) -> Part:
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
            return _arguments(value) if isinstance(decode(value), dict) else None
        return unescaped(text) if isinstance(value, dict) else None
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
    return unescaped(node.text())
