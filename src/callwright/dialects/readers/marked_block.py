"""A marked block of calls in JSON, between an opening tag and a closing one."""

from typing import TYPE_CHECKING

from callwright.dialects.readers.json_block import MarkedJson
from callwright.events import Problem
from callwright.stream_reader import Parse
from callwright.tolerant_json.passthrough import JsonTerminators

if TYPE_CHECKING:
    from callwright.dialects.readers.prose import ProseReader

__all__ = ["read_json_block"]


def read_json_block(
    text: "ProseReader",
    opening: str,
    stops: JsonTerminators,
    closers: tuple[str, ...],
    ends_itself: bool = False,
    keyed: bool = False,
) -> Parse[MarkedJson]:
    """Read calls in JSON behind `opening`, up to one of `closers` or another terminator; what is no call becomes
    text.

    Answers the block that was read. For `ends_itself` and `keyed` see `MarkedJson`.
    """
    apart = text._apart
    text.call_begins()
    block = MarkedJson(text.source, text.tools, stops, text.calls, ends_itself=ends_itself, keyed=keyed)
    stop, rest = yield from block.read()
    text.calls = block.calls
    closing = stop if stop in closers else next((closer for closer in closers if rest.startswith(closer)), "")
    rest = rest if stop else rest.removeprefix(closing)
    if block.refused:
        text._apart = apart
        text.emit(text.say(opening + block.refused + closing))
    else:
        text.markup(opening)
        text.markup(closing)
        if closers and not (closing or ends_itself or block.cut):
            text.emit(Problem("markup_repaired", f"{closers[0]} is missing", call=text.calls - 1))
    if rest:
        text.replay(rest)
    if stop and not closing:
        text.source.unread(stop)
    yield from text.skip_blanks()
    return block
