"""Harmony output whose control tokens a server has removed: `analysisThey ask …assistantfinalIt is nine.`

A header is reduced to the role, glued to a channel word, and the recipient; some tokens may still be there. A text is
read this way if it begins so, or if `assistant` is glued to a channel word in it; prose that merely begins with such a
word is prose. A header in code, in quotation marks or in the middle of a sentence may only be shown: see `_is_apart`.
"""

import re
from typing import Final, Literal

from callwright.calls.toolset import Toolset
from callwright.dialects.harmony.bodies import MARKS, MAX_BODY, NEXT, Bodies, json_value
from callwright.dialects.harmony.header import NO_RECIPIENT, resolve
from callwright.dialects.harmony.tokens import CHANNEL, CHANNELS, MESSAGE
from callwright.events import Call, Problem, ProblemKind, TextEvent
from callwright.free_text.intent import Runs, is_showing, verdict
from callwright.free_text.places import begins_apart, opens_quotation, stands
from callwright.reading.text.code_context import CodeContext
from callwright.streaming.reader import Markers, Parse, StreamReader, emit_until, may_come, read_until

# Maximum lookahead to distinguish a header from prose, and for the place of a call.
_MAX_HEADER: Final = 160
_MAX_LINE: Final = 400
# Repeats of white space are possessive: no two of them divide it between them, so a header fails in linear time.
_WORDS = "|".join(CHANNELS)
_BEGIN = re.compile(rf"\s*+(?P<role>assistant)?(?P<word>{_WORDS}|code)")
_NAME = r"[^\s{\[<]+(?: [^\s{\[<]+){0,4}?"
_TYPE = r"\s*+(?:<\|constrain\|>\s*+)?(?:(?:json|code)\s*+)?"
_RECIPIENT = re.compile(rf"\s*+to=({_NAME}){_TYPE}(?=[{{\[])")
# The recipient in the role: before the channel word, if that is there.
_ROLE_RECIPIENT = re.compile(
    rf"\s*+(?:assistant\s*+)?to=(?P<name>[^\s{{\[<]+?)\s*+(?P<word>{_WORDS}|){_TYPE}"
    rf"(?:(?=[{{\[])|(?P<message>{re.escape(MESSAGE)}))"
)
_CONTENT_TYPE = re.compile(rf"\s*+(?:to=(?:assistant|user|all)\s*+)?{_TYPE}(?=\{{)")
_KEPT_HEADER = re.compile(
    rf"assistant(?:\s++to=[^\s<{{\[]++)?\s*+{re.escape(CHANNEL)}\s*+(?:{_WORDS})(?:\s*+to={_NAME})?{_TYPE}"
    rf"{re.escape(MESSAGE)}"
)
# The channel of the first message, glued to a word.
_GLUED_ANALYSIS = re.compile(r"\s*+analysis(?=[a-z])")
_TO_MESSAGE = re.compile(rf"(?:\s*+to=(?:{_NAME})?)?{_TYPE}{re.escape(MESSAGE)}")
# The same while it may still come.
_TOKEN = r"(?:<\|?[a-z]{0,9}\|?>?)?"
_KIND_ATOMS = (r"\s*+", _TOKEN, r"\s*+", "(?:j|js|jso|json|c|co|cod|code)?", r"\s*+", _TOKEN)
_MAY_BE_HEADER = re.compile(may_come([r"\s*+", *"to=", _NAME, *_KIND_ATOMS]) + "|" + may_come(_KIND_ATOMS))
_MAY_BE_ROLE_RECIPIENT = re.compile(r"\s*+(?:assistant\s*+)?(?:t|to|to=[^{\[<]*+(?:<\|?[a-z]{0,9}\|?>?[^{\[<]*+)?)?\Z")
# The end of a text before a header that is only shown: an open bracket, an HTML tag for code, marks of emphasis.
_OPENED = re.compile(r"(?:[(\[{<=]|<(?:code|kbd|pre|samp|tt)\b[^<>]*>|(?:^|(?<=\s))(?:[*_]{1,3}|~~))\Z", re.IGNORECASE)
_CLOSERS = re.compile("[\"'”“»«›‹’」』]")


def begins_stripped(source: StreamReader) -> bool | None:
    """Whether a message begins with a header without control tokens; None while more text is needed."""
    if source.text.startswith("<|", source.at):  # the usual case: the server has not removed them
        return False
    begin = source.ahead(_MAX_HEADER)
    unknown = None if source.more(_MAX_HEADER) else False
    if addressed := _match_role_recipient(begin):
        return addressed["message"] is None
    found = _BEGIN.match(begin)
    if found is None:
        may_be = any(word.startswith(begin.lstrip()) for word in (*MARKS, *CHANNELS))
        return unknown if may_be or _MAY_BE_ROLE_RECIPIENT.match(begin) else False
    return _is_header_behind(found, begin[found.end() :], unknown)


def _is_header_behind(found: re.Match[str], rest: str, unknown: bool | None) -> bool | None:
    """Whether a channel word begins a header without control tokens; `unknown` if that depends on text to come."""
    if _TO_MESSAGE.match(rest):
        return False
    if found["role"] and found["word"] != "code":
        return unknown if unknown is None and _MAY_BE_HEADER.match(rest) else True
    if found["word"] == "code":
        return bool(found["role"]) and rest.startswith("{") if rest else unknown
    if begins_text(rest):
        return True
    if rest and not (rest[0].isspace() or rest[0] == "<"):
        return False
    return True if _RECIPIENT.match(rest) else unknown if _MAY_BE_HEADER.match(rest) else False


def begins_text(text: str) -> bool:
    """Whether a text that is glued to a channel word is no part of a longer word."""
    return text[:1] in ("{", "[", "*", "`") if not text[:1].isalnum() else not text[0].islower()


def holds_stripped(text: str, tools: Toolset) -> bool:
    """Whether a whole output without control tokens has such a header in it, not only shown."""
    seen = _Seen()
    at = 0
    while found := NEXT.search(text, at):
        seen.feed(text[at : found.start()])
        if _is_header(seen, text[found.start() :][:_MAX_LINE], tools):
            return True
        seen.feed(found.group())
        at = found.end()
    return False


def skip_analysis(bodies: Bodies) -> None:
    """Read the channel word of a thought before a word that is not capitalized, which it alone does not show."""
    if found := _GLUED_ANALYSIS.match(bodies.source.ahead(_MAX_HEADER)):
        bodies.markup(bodies.source.take(bodies.source.at + found.end()))


def mentions_stripped(text: str) -> bool:
    """Whether a text has what may be such a header in it."""
    return any(mark in text for mark in MARKS)


def read_stripped(bodies: Bodies) -> Parse[str]:
    """Read a message without control tokens. Returns the control token that ends it, or `""`."""
    source = bodies.source
    bodies.lose_tokens()
    bodies.markup(source.blanks())
    begin = source.ahead(_MAX_HEADER)
    if _match_role_recipient(begin):
        return (yield from _call(bodies, in_role=True))
    found = _BEGIN.match(begin)
    assert found is not None  # see `begins_stripped`
    bodies.markup(source.take(source.at + found.end()))
    return (yield from _segment(bodies, found["word"]))


def _segment(bodies: Bodies, channel: str) -> Parse[str]:
    """Read one message after its channel word, up to the next."""
    kind = yield from _kind(bodies, channel)
    if kind == "call":
        return (yield from _call(bodies))
    if kind == "cut":
        rest = bodies.source.take(len(bodies.source.text))
        bodies.emit(Problem("incomplete_header", "the output was cut in a header", text=rest))
        return ""
    if bodies.calls:
        text, token = yield from read_until(bodies.source, NEXT, MAX_BODY)
        bodies.discard(text)
        return bodies.unless_header(token)
    if kind == "object":
        return (yield from _object(bodies, "final" if channel == "code" else channel))
    return (yield from read_text(bodies, channel))


def _match_role_recipient(text: str) -> re.Match[str] | None:
    """A header whose recipient is in the role."""
    found = _ROLE_RECIPIENT.match(text)
    if found is None or found["name"] in NO_RECIPIENT or not (found["word"] or "functions." in found["name"]):
        return None
    return found


def _recipient(text: str, tools: Toolset, *, in_role: bool = False) -> tuple[str, ProblemKind | None, int] | None:
    """The tool that a header names, how its name deviates, and the end of the header; None if it names no tool.

    `in_role`: the channel word has not been read.
    """
    ways: list[tuple[str, ProblemKind | None, int]] = []
    if (found := _RECIPIENT.match(text)) and found[1] not in NO_RECIPIENT:
        name, bent = resolve(found[1].partition(" ")[0], tools, tail=found[1])
        if " " not in found[1] or name in tools:
            ways.append((name, bent, found.end()))
    if in_role and (addressed := _match_role_recipient(text)):
        ways.append((*resolve(addressed["name"], tools), addressed.end()))
    return min(ways, key=lambda way: (way[0] not in tools, way[1] is not None), default=None)


def _call(bodies: Bodies, *, in_role: bool = False) -> Parse[str]:
    header = _recipient(bodies.source.ahead(_MAX_HEADER), bodies.tools, in_role=in_role)
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
    return token or (yield from bodies.behind_arguments())


def _object(bodies: Bodies, channel: str) -> Parse[str]:
    """An object without a recipient: the call of the only tool that takes it, or text."""
    text, token = yield from read_until(bodies.source, NEXT, MAX_BODY)
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
    return bodies.unless_header(token)


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


# --- text, in which a header may be shown ---


class _Seen:
    """The text of a message so far, as far as it matters to the place of a header: its code, and its end."""

    def __init__(self) -> None:
        self.code = CodeContext()
        self.before = ""
        self.is_cut = False  # the arguments of a call in it have no end, so that no other is looked for

    def feed(self, text: str) -> None:
        """Note more text."""
        self.code.feed(text)
        self.before = (self.before + text)[-_MAX_LINE:]


def read_text(bodies: Bodies, channel: str, ends: Markers = NEXT) -> Parse[str]:
    """Stream a text up to the next header, which is left unread, or to a control token. Returns the token. `ends`:
    what may be these.
    """
    source, seen, make = bodies.source, _Seen(), bodies.maker(channel)
    doubts: list[Problem] = []
    is_header = _is_header if ends is NEXT else _is_kept_header

    def say(text: str) -> TextEvent:
        seen.feed(text)
        return make(text)

    if bodies.reads_required(channel):
        return bodies.unless_header((yield from bodies.text(channel, ends)))
    text, token = "", ""
    while not (text or token or source.done):
        text, token = source.scan(ends)
        if not (text or token):
            yield
    seen.feed(text)
    bodies.say(channel, text)
    while True:
        token = token or (yield from emit_until(source, ends, say))
        if token not in MARKS:
            break
        source.unread(token)
        while source.more(_MAX_LINE):
            yield
        if is_header(seen, source.ahead(_MAX_LINE), bodies.tools):
            return ""  # a thought that is over only showed its calls
        doubtful = _recipient_behind(source.ahead(_MAX_HEADER), bodies.tools)
        if doubtful and not (seen.code.inside() or seen.is_cut):
            if (yield from _doubtful(bodies, channel, seen, doubtful, doubts)):
                return ""
        else:
            source.emit(say(source.take(source.at + len(token))))
        token = ""
    for problem in doubts if channel != "analysis" or source.done else ():
        bodies.emit(problem)
    return bodies.unless_header(token)


def _recipient_behind(text: str, tools: Toolset) -> tuple[str, int] | None:
    """The tool that is called by a header after `assistant`, and the end of the header."""
    if addressed := _match_role_recipient(text):
        return None if addressed["message"] else (resolve(addressed["name"], tools)[0], addressed.end())
    begin = _BEGIN.match(text)
    found = _recipient(text[begin.end() :], tools) if begin else None
    return (found[0], begin.end() + found[2]) if begin and found else None


def _is_header(seen: _Seen, ahead: str, tools: Toolset) -> bool:
    """Whether `assistant` and the text after it begin a message at this place."""
    begin = _BEGIN.match(ahead)
    rest = ahead[begin.end() :] if begin else ""
    if begin is None and not _match_role_recipient(ahead):
        return not ahead.startswith("assistant to=") and not seen.code.in_fence
    if begin is None or rest.lstrip().startswith("to=") or (begin["word"] != "final" and _CONTENT_TYPE.match(rest)):
        return _is_apart(seen, tools)
    line = seen.before.rpartition("\n")[2]
    if seen.code.in_fence:
        return False
    if (seen.code.inside() and "`" in rest.partition("\n\n")[0]) or (
        opens_quotation(line) and _CLOSERS.search(rest.partition("\n")[0])
    ):
        return False
    is_glued = bool(line) and not line[-1].isspace()
    return is_glued or begins_apart(seen.before) or begins_text(rest)


def _is_kept_header(seen: _Seen, ahead: str, tools: Toolset) -> bool:
    """Whether `assistant<|channel|>` begins a message whose `<|start|>` is missing, as is the end of the one before."""
    return _KEPT_HEADER.match(ahead) is not None and _is_apart(seen, tools)


def _is_apart(seen: _Seen, tools: Toolset) -> bool:
    """Whether a call that follows is certain by its place: the text before it ends a message or a line.

    In a message the words of a sentence are parted by blanks, so that a header that is glued to one is no part of it.
    """
    before = seen.before
    if seen.code.inside() or opens_quotation(before.rpartition("\n")[2]) or _OPENED.search(before):
        return False
    if before[-1:].strip() or not before.strip():
        return not before.endswith((":", "："))  # an example may follow
    return begins_apart(before) and not is_showing(before, tools.names)


def _doubtful(bodies: Bodies, channel: str, seen: _Seen, header: tuple[str, int], doubts: list[Problem]) -> Parse[bool]:
    """Read a call that may only be shown: as a call if it ends the output, else as text. Returns whether it is one."""
    source = bodies.source
    name, size = header
    head = source.take(source.at + size)
    arguments, is_closed = yield from bodies.held_arguments()
    if not is_closed:  # there may be headers in the rest
        source.unread(arguments)
        arguments, seen.is_cut = "", True
    while source.more(_MAX_LINE):
        yield
    written, rest = head + arguments, source.ahead(_MAX_LINE)
    standing = stands(written + rest, 0, len(written), seen.before)
    behind = "" if not rest.strip() else rest
    runs = Runs(((0,),), standing, seen.before, behind) if standing != "shown" else Runs()
    made = verdict(runs, own=True, names=(name,))
    is_fitting = name in bodies.tools.fitting(json_value(arguments))
    if made == "certain" and is_fitting:
        bodies.markup(head)
        bodies.whole_call(name, arguments)
        return True
    seen.feed(written)
    bodies.emit(bodies.maker(channel)(written))
    if made != "text":
        problem = (
            Problem(
                "ambiguous_call", f"a call of {name!r} that is meant, or only shown", candidate=Call(name, arguments)
            )
            if is_fitting
            else Problem("malformed_call", f"what may be a call of {name!r}, without its control tokens")
        )
        if channel == "analysis":
            doubts.append(problem)
        else:
            bodies.emit(problem)
    return False
