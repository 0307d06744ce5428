"""Harmony output whose control tokens a server has removed: `analysisThey ask …assistantfinalIt is nine.`

What is left of a header is the role, glued to a channel word, and the recipient. Only a text that begins so, or in
which `assistant` is glued to a channel word, is read this way; prose that merely begins with such a word is prose.
"""

import re
from typing import Literal

from toolwright.dialects.harmony.bodies import MAX_BODY, Bodies, json_value
from toolwright.dialects.harmony.header import resolve
from toolwright.dialects.harmony.tokens import CHANNELS
from toolwright.events import Problem
from toolwright.source import Markers, Steps, gather

__all__ = ["MARKS", "begins_stripped", "read_stripped"]

MARKS = tuple(f"assistant{word}" for word in (*CHANNELS, "code{"))
_NEXT = Markers(*MARKS)
_WORDS = "|".join(CHANNELS)
# Longest beginning that is waited for to tell a stripped header from prose.
_MAX_BEGIN = 160
_BEGIN = re.compile(
    rf"\s*(?:assistant(?:(?:{_WORDS})|code(?={{))"
    rf"|(?:{_WORDS})(?:(?=[A-Z0-9{{\[*]|[^\x00-\x7f])|(?= to=[^\s{{\[]+\s*(?:json|code)?\s*[{{\[])))"
)
# What may still become a beginning, tried while it is short.
_MAY_BEGIN = re.compile(rf"\s*(?:assistant)?(?:{_WORDS}|code)?(?: to=[^\s{{\[]*\s*(?:json?|code?)?\s*)?\Z")
_PREFIXES = {
    word[:size]
    for word in (*MARKS, *CHANNELS, *(f"{word} to=" for word in CHANNELS))
    for size in range(1, len(word) + 1)
}
_HEADER = re.compile(r"\s*to=([^\s{\[]+)\s*(?:json|code)?\s*(?=[{\[])")
_CONTENT_TYPE = re.compile(r"\s*(?:json|code)?\s*(?=\{)")


def begins_stripped(text: str, *, ended: bool) -> bool | None:
    """Whether an output begins with a header without control tokens; None while more text is needed."""
    if _BEGIN.match(text):
        return True
    begin = text.lstrip()
    open_ = begin in _PREFIXES or not begin or _MAY_BEGIN.match(text)
    return None if open_ and not ended and len(begin) < _MAX_BEGIN else False


def read_stripped(bodies: Bodies, mark: str = "") -> Steps[None]:
    """Read from the first header on, or behind `mark` when the first one was read already."""
    source = bodies.source
    bodies.emit(Problem("control_tokens_stripped", "the server has removed the control tokens from the output"))
    if not mark:
        bodies.markup(source.blanks())
        found = re.compile(rf"(?:assistant)?({_WORDS}|code)").match(source.text, source.at)
        assert found is not None
        bodies.markup(source.take(found.end()))
        mark = found[1]
    else:
        bodies.markup(mark.removesuffix("{"))
    while mark:
        channel = next((word for word in CHANNELS if mark.endswith(word)), "code")
        if mark.endswith("{"):
            source.at -= 1  # the brace belongs to the body
        mark = yield from _segment(bodies, channel)
        bodies.markup(mark.removesuffix("{"))


def _segment(bodies: Bodies, channel: str) -> Steps[str]:
    """Read one message and answer the mark of the next."""
    kind = yield from _kind(bodies, channel)
    if kind == "call":
        found = _HEADER.match(bodies.source.text, bodies.source.at)
        assert found is not None
        name, bent = resolve(found[1], bodies.tools)
        bodies.markup(bodies.source.take(found.end()))
        if bent:
            bodies.emit(Problem(bent, f"recipient {found[1]!r}", call=bodies.calls))
        index = bodies.begin(name)
        yield from bodies.json_arguments(index)
        trailing, mark = yield from gather(bodies.source, _NEXT, MAX_BODY)
        bodies.trailing(index, trailing)
        return mark
    if bodies.calls:
        text, mark = yield from gather(bodies.source, _NEXT, MAX_BODY)
        bodies.discard(text)
        return mark
    if kind == "object":
        text, mark = yield from gather(bodies.source, _NEXT, MAX_BODY)
        begin = _CONTENT_TYPE.match(text)
        arguments = text[begin.end() if begin else 0 :]
        fitting = [] if bodies.source.cut and not mark else bodies.tools.fitting(json_value(arguments))
        if len(fitting) == 1:
            bodies.markup(text.removesuffix(arguments))
            bodies.emit(
                Problem("recipient_guessed_by_schema", f"only {fitting[0]!r} takes these arguments", call=bodies.calls)
            )
            bodies.whole_call(fitting[0], arguments)
        else:
            bodies.say("final" if channel == "code" else channel, text)
        return mark
    return (yield from bodies.text(channel, _NEXT))


def _kind(bodies: Bodies, channel: str) -> Steps[Literal["call", "object", "text"]]:
    """What the next body is: a call with its recipient, an object that may be a call, or text."""
    source = bodies.source
    while channel != "final":
        rest = source.text[source.at : source.at + _MAX_BEGIN]
        if _HEADER.match(rest):
            return "call"
        if _CONTENT_TYPE.match(rest):
            return "object"
        if (
            source.ended
            or len(rest) == _MAX_BEGIN
            or not re.fullmatch(r"\s*(?:t|to|to=[^\s{\[]*)?\s*(?:j|js|jso|json|c|co|cod|code)?\s*", rest)
        ):
            break
        yield
    return "text"
