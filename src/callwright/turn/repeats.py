"""A stop for loops: a model that repeats a call with the same output is warned, and finally may not make it.

The warnings follow from the history alone. So each later prompt has them in the same place, and servers find the start
of the prompt in their cache.
"""

from typing import Final

from msgspec.structs import replace

from callwright.calls.repeated_calls import RepeatedCalls, may_repeat, rows
from callwright.conversation import CallOutput, Conversation, Item, NamedTool, TextPart
from callwright.events import Problem

TOLD: Final = (
    "[This same call has had this same output several times in a row. To make it again will change nothing. Use what "
    "you have, do something else, or say what is in the way.]"
)


def heed_repeats(conversation: Conversation, most: int) -> tuple[Conversation, Problem | None]:
    """The conversation to show to the model, and the problem to report to the client.

    The `most`-th output of a row gets a warning to the model. From twice as many on the tools of that row are
    forbidden, unless the request demands exactly these.
    """
    if not may_repeat(conversation.items, most):
        return conversation, None
    items = list(conversation.items)
    latest: RepeatedCalls | None = None
    told = False
    for latest in rows(conversation.items):
        if latest.times == most:
            items[latest.end - 1] = _with_words(items[latest.end - 1])
            told = True
    if not told:
        return conversation, None
    shown = replace(conversation, items=tuple(items))
    if latest is None or latest.end != len(items) or latest.times < most:
        return shown, None
    row = f"{_join_names(latest.names)}: the same output {latest.times} times in a row;"
    if latest.times >= 2 * most and (barred := _barred(shown, latest.names)) is not None:
        return barred, Problem("call_loop", f"{row} no such call may be made now")
    return shown, Problem("call_loop", f"{row} the model was warned")


def _with_words(item: Item) -> Item:
    """An output with the warning after its last text: as part of that, since many templates show one text only."""
    assert isinstance(item, CallOutput)
    last = item.parts[-1] if item.parts else None
    if isinstance(last, TextPart):
        return replace(item, parts=(*item.parts[:-1], TextPart(f"{last.text}\n\n{TOLD}" if last.text else TOLD)))
    return replace(item, parts=(*item.parts, TextPart(TOLD)))


def _barred(conversation: Conversation, names: tuple[str, ...]) -> Conversation | None:
    """The conversation with these tools forbidden; None if the request demands one, and nothing else is left.

    The prompt still lists them, so its prefix stays the same.
    """
    choice, allowed = conversation.tool_choice, conversation.allowed_tools
    known = tuple(tool.name for tool in conversation.tools) if allowed is None else allowed
    left = tuple(name for name in known if name not in names)
    if isinstance(choice, NamedTool) or (choice == "required" and not left):
        return None
    if not left:
        return replace(conversation, tool_choice="none", allowed_tools=None)
    return replace(conversation, allowed_tools=left)


def _join_names(names: tuple[str, ...]) -> str:
    return ", ".join(map(repr, names))
