"""Harmony output whose control tokens a server has removed: `analysisThey ask …assistantfinalIt is nine.`

A header is reduced to the role, glued to a channel word, and the recipient. Only a text that begins so, or in
which `assistant` is glued to a channel word, is read this way; prose that merely begins with such a word is prose.
"""

import re
from typing import Final, Literal

from callwright.calls.toolset import Toolset
from callwright.dialects.harmony.bodies import MAX_BODY, Bodies, json_value
from callwright.dialects.harmony.header import NO_RECIPIENT, resolve
from callwright.dialects.harmony.tokens import CHANNELS, CONTROLS
from callwright.events import Problem, ProblemKind
from callwright.streaming.reader import Markers, Parse, StreamReader, may_come, read_until

_MARKS: Final = tuple(f"assistant{word}" for word in (*CHANNELS, "code{"))
_NEXT = Markers(*_MARKS, *CONTROLS)
# Maximum lookahead to distinguish a header from prose.
_MAX_HEADER = 160
_WORDS = "|".join(CHANNELS)
_BEGIN = re.compile(rf"\s*(?P<role>assistant)?(?P<word>{_WORDS}|code)")
_NAME = r"[^\s{\[<]+(?: [^\s{\[<]+){0,4}?"
_RECIPIENT = re.compile(rf"\s*to=({_NAME})\s*(?:json|code)?\s*(?=[{{\[])")
_CONTENT_TYPE = re.compile(r"\s*(?:to=(?:assistant|user|all)\s*)?(?:json|code)?\s*(?=\{)")
# The same while it may still come.
_KIND_ATOMS = (r"\s*", "(?:j|js|jso|json|c|co|cod|code)", r"\s*")
_MAY_BE_HEADER = re.compile(may_come([r"\s*", *"to=", _NAME, *_KIND_ATOMS]) + "|" + may_come(_KIND_ATOMS))


def begins_stripped(source: StreamReader) -> bool | None:
    """Whether an output begins with a header without control tokens; None while more text is needed."""
    if source.text.startswith("<|", source.at):  # the usual case: the server has not removed them
        return False
    begin = source.ahead(_MAX_HEADER)
    unknown = None if source.more(_MAX_HEADER) else False
    found = _BEGIN.match(begin)
    if found is None:
        may_come = any(word.startswith(begin.lstrip()) for word in (*_MARKS, *CHANNELS))
        return unknown if may_come else False
    rest = begin[found.end() :]
    if found["role"] and found["word"] != "code":
        return True
    if found["word"] == "code":
        return bool(found["role"]) and rest.startswith("{") if rest else unknown
    if rest[:1] in ("{", "[", "*") or (rest[:1].isalnum() and not rest[:1].islower()):
        return True
    if rest and not rest[0].isspace():
        return False
    return True if _RECIPIENT.match(rest) else unknown if _MAY_BE_HEADER.match(rest) else False


def holds_stripped(text: str) -> bool:
    """Whether a whole output without control tokens has such a header in it."""
    return any(mark in text for mark in _MARKS)


def read_stripped(bodies: Bodies) -> Parse[str]:
    """Read messages without control tokens. Answers the control token that ends them after all, or `""`."""
    bodies.emit(Problem("control_tokens_stripped", "the server has removed the control tokens from the output"))
    source = bodies.source
    bodies.markup(source.blanks())
    found = _BEGIN.match(source.ahead(_MAX_HEADER))
    if found is not None and begins_stripped(source):
        bodies.markup(source.take(source.at + found.end()))
        mark = yield from _segment(bodies, found["word"])
    else:
        mark = yield from bodies.text("analysis", _NEXT)
    while mark in _MARKS:
        bodies.markup(mark.removesuffix("{"))
        if mark.endswith("{"):
            source.at -= 1  # the brace belongs to the body
        mark = yield from _segment(bodies, mark.removeprefix("assistant").removesuffix("{"))
    return mark


def _segment(bodies: Bodies, channel: str) -> Parse[str]:
    """Read one message after its channel word and return the mark of the next."""
    kind = yield from _kind(bodies, channel)
    if kind == "call":
        return (yield from _call(bodies))
    if kind == "cut":
        rest = bodies.source.take(len(bodies.source.text))
        bodies.emit(Problem("incomplete_header", "the output was cut in a header", text=rest))
        return ""
    if bodies.calls:
        text, mark = yield from read_until(bodies.source, _NEXT, MAX_BODY)
        bodies.discard(text)
        return mark
    if kind == "object":
        return (yield from _object(bodies, "final" if channel == "code" else channel))
    return (yield from bodies.text(channel, _NEXT))


def _recipient(text: str, tools: Toolset) -> tuple[str, ProblemKind | None, int] | None:
    """The tool that a header names, how its name deviates, and the end of the header; None if it names no tool."""
    found = _RECIPIENT.match(text)
    if found is None or found[1] in NO_RECIPIENT:
        return None
    name, bent = resolve(found[1].partition(" ")[0], tools, tail=found[1])
    return (name, bent, found.end()) if " " not in found[1] or name in tools else None


def _call(bodies: Bodies) -> Parse[str]:
    header = _recipient(bodies.source.ahead(_MAX_HEADER), bodies.tools)
    assert header is not None
    name, bent, end = header
    written = bodies.source.take(bodies.source.at + end)
    bodies.markup(written)
    if bent:
        bodies.emit(Problem(bent, f"header {written!r}", call=bodies.next_call(name)))
    if bodies.next_call(name) is None:
        token = yield from bodies.several()
    else:
        token = yield from bodies.json_arguments(name)
    if token:
        return token
    trailing, mark = yield from read_until(bodies.source, _NEXT, MAX_BODY)
    bodies.trailing(trailing)
    return mark


def _object(bodies: Bodies, channel: str) -> Parse[str]:
    """An object without a recipient: the call of the only tool that takes it, or text."""
    text, mark = yield from read_until(bodies.source, _NEXT, MAX_BODY)
    begin = _CONTENT_TYPE.match(text)
    arguments = text[begin.end() if begin else 0 :]
    fitting = bodies.tools.fitting(json_value(arguments))
    if len(fitting) == 1:
        bodies.markup(text.removesuffix(arguments))
        detail = f"only {fitting[0]!r} takes these arguments"
        bodies.emit(Problem("recipient_guessed_by_schema", detail, call=bodies.calls))
        bodies.whole_call(fitting[0], arguments)
    else:
        bodies.say(channel, text)
    return mark


def _kind(bodies: Bodies, channel: str) -> Parse[Literal["call", "object", "text", "cut"]]:
    """The kind of the next body: a call with its recipient, an object that may be a call, text, or half a header."""
    source = bodies.source
    while True:
        rest = source.ahead(_MAX_HEADER)
        if channel != "final" and _CONTENT_TYPE.match(rest):
            return "object"
        if _recipient(rest, bodies.tools):
            return "call"
        may_come = len(rest) < _MAX_HEADER and _MAY_BE_HEADER.match(rest)
        if not may_come or source.ended:
            return "cut" if may_come and rest.lstrip().startswith("to=") else "text"
        yield
