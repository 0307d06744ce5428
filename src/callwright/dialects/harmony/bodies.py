"""The bodies of Harmony messages: text of a channel, the arguments of a call, complete calls."""

import re
from collections.abc import Mapping
from functools import partial
from typing import Final

import msgspec

from callwright.calls.toolset import Toolset
from callwright.conversation import NamedTool
from callwright.dialects.harmony.header import PARALLEL, resolve
from callwright.dialects.harmony.tokens import CALL, CHANNEL, CHANNELS, CONTROLS, END, ENDOFTEXT, RETURN, START
from callwright.events import (
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    ContentDelta,
    Problem,
    ProblemKind,
    ReasoningDelta,
)
from callwright.free_text.recover import RecoveredCall, TextSegment, recover
from callwright.schema.keywords import properties
from callwright.schema.plain import tool_schema
from callwright.streaming.reader import Markers, Parse, StreamReader, emit_until, read_blanks, read_until
from callwright.tolerant_json.codec import NotJsonError, decode
from callwright.tolerant_json.passthrough import JsonTerminators, collect_json, member_follows, pass_json
from callwright.tolerant_json.wrappers import without

STOPS: Final = (END, RETURN, CALL, ENDOFTEXT)
ANY = Markers(*CONTROLS)
# How the next message begins if a server has removed control tokens.
MARKS: Final = (*(f"assistant{word}" for word in (*CHANNELS, "code{", CHANNEL)), "assistant to=")
NEXT = Markers(*MARKS, *CONTROLS)
# The ends of a text with its tokens, or with those of the next message but `<|start|>`.
KEPT = Markers(f"assistant{CHANNEL}", "assistant to=", START, *STOPS)
_BODY_ENDS: Final = ("", START, *STOPS)
BODY_END = Markers(START, *STOPS)
# Bodies whose end decides their kind (wrapped calls, messages in a tool's name) are held up to this size.
MAX_BODY = 4_194_304
# `<|call|>` is the closer of a call; the other stop tokens mean that the output was cut.
_CUTS = tuple(stop for stop in STOPS if stop != CALL)
_JSON_STOPS = JsonTerminators(*CONTROLS, then=(START, *STOPS), ends=_CUTS, begins=CONTROLS)
_BRACE_OR_END = Markers("{", START, *STOPS)
_MAKERS: Final[Mapping[str, type[ContentDelta] | type[ReasoningDelta]]] = {"analysis": ReasoningDelta}
# Lookahead for the first key of arguments, and for the text before the arguments of one call of several.
_MAX_FIRST_KEY = 200
_MAX_USE = 400
_FIRST_KEY = re.compile(r'\s*"((?:[^"\\]|\\.){0,100})"\s*:|\s*(\})')
_MEMBER = re.compile(r"[\"']\s*+:").search
_USES = re.compile(r'\s*(?:\{\s*"tool_uses"\s*:\s*)?\[')
_USE = re.compile(r'\{\s*"recipient_name"\s*:\s*"([^"\\]*)"\s*,\s*"parameters"\s*:\s*(?=\{)')
_USE_BEGIN = Markers("{", "]", *CONTROLS)
_USES_END = Markers("}", *CONTROLS)


def json_value(text: str) -> object:
    """The value of a JSON text, or None if it is not JSON."""
    try:
        return decode(text)
    except NotJsonError:
        return None


class _Use(msgspec.Struct):
    """One of several calls in the body of `multi_tool_use.parallel`."""

    recipient_name: str
    parameters: msgspec.Raw = msgspec.Raw(b"{}")


class Bodies:
    """Reads bodies from a source and counts the calls among them."""

    def __init__(self, source: StreamReader, tools: Toolset) -> None:
        self.source = source
        self.emit = source.emit
        self.markup = source.markup
        self.tools = tools
        self.calls = 0
        self.spaced = False  # the detokeniser puts a space after every control token
        self.ends = ANY  # what ends a message
        self._begun: set[type] = set()
        self._demands = tools.choice == "required" or isinstance(tools.choice, NamedTool)

    def lose_tokens(self) -> None:
        """Expect headers without control tokens from now on."""
        if self.ends is not NEXT:
            self.emit(Problem("control_tokens_stripped", "the server has removed control tokens from the output"))
            self.ends = NEXT

    def unless_header(self, token: str) -> str:
        """The token that ended a message; `""` if a header begins with it, which is then unread."""
        if token in _BODY_ENDS:
            return token
        self.source.unread(token)
        return ""

    # --- text ---

    def maker(self, channel: str) -> type[ContentDelta] | type[ReasoningDelta]:
        """The event for the text of a channel."""
        return _MAKERS.get(channel, ContentDelta)

    def reads_required(self, channel: str) -> bool:
        """Whether a text is read for the call that is required."""
        return channel == "final" and self._demands and not self.calls

    def say(self, channel: str, text: str) -> None:
        """The first text of a message; a second message of its kind begins on a new line."""
        make = self.maker(channel)
        if text:
            self.emit(make("\n" + text if make in self._begun else text))
            self._begun.add(make)

    def text(self, channel: str, end: Markers = BODY_END) -> Parse[str]:
        """Stream a body up to a marker of `end` and answer that."""
        if self.reads_required(channel):
            return (yield from self._read_required_call(channel, end))
        while True:
            text, token = self.source.scan(end)
            if text:
                self.say(channel, text)
            if token or (self.source.ended and self.source.done):
                return token
            yield
            if text:
                return (yield from self.more_text(channel, end))

    def _read_required_call(self, channel: str, end: Markers) -> Parse[str]:
        """Read an answer in text when a call is required: models write the call into it as plain JSON."""
        text, token = yield from read_until(self.source, end, MAX_BODY)
        pieces = recover(text, self.tools)
        for piece in pieces:
            match piece:
                case TextSegment(words, problem):
                    said = words if len(pieces) == 1 else words.strip()
                    lead, _, tail = words.partition(said) if said else (words, "", "")
                    self.markup(lead)
                    self.say(channel, said)
                    self.markup(tail)
                    if problem:
                        self.emit(problem)
                case RecoveredCall(name, arguments):
                    self.emit(Problem("call_in_text", "the call is in the answer", call=self.calls))
                    for problem in piece.problems:
                        self.emit(msgspec.structs.replace(problem, call=self.calls))
                    self.whole_call(name, arguments, complete=piece.complete)
                    self.markup(piece.text)
        return token

    def more_text(self, channel: str, end: Markers = BODY_END) -> Parse[str]:
        """Continue a text that `say` began."""
        return emit_until(self.source, end, self.maker(channel))

    # --- calls ---

    def call(self, name: str, *, certain: bool = True) -> Parse[str]:
        """Read the body of a call and return the token that ended it. Not `certain`: the tool is ambiguous."""
        self.markup((yield from read_blanks(self.source)))
        several = self.next_call(name) is None
        if not several and self.peek() not in ("{", "["):
            tool = self.tools.get(name)
            if tool is not None and tool.custom is None:
                certain = (yield from self._words_before(name)) and certain
        if several:
            token = yield from self.several()
        elif self.peek() in ("{", "["):
            token = yield from self.json_arguments(name, certain=certain)
        else:
            token = yield from self._raw_arguments(name, certain=certain)
        if not token:
            token = yield from self.behind_arguments()
        if token not in _BODY_ENDS:
            self.source.unread(token)  # the next message begins, whose start is missing
        else:
            self.markup(token)
        if token in (END, RETURN) and not self.spaced:  # LLM-jp ends all but the last of parallel calls so
            self.emit(Problem("wrong_stop", f"a call closed by {token}", call=self._last()))
        elif token and token not in STOPS:
            self.emit(Problem("missing_stop", f"{token} inside a call", call=self._last()))
        return token

    def _words_before(self, name: str) -> Parse[bool]:
        """Report text before the arguments of a function, if arguments follow it.

        False if they may not belong to this call: after members without their brace, or after the header of another
        message.
        """
        pieces: list[str] = []
        while True:
            text, token = yield from read_until(self.source, _BRACE_OR_END, MAX_BODY)
            pieces.append(text)
            if token != "{":
                self.source.unread("".join(pieces) + token)
                return True
            if (yield from self._begins_arguments(name)):
                self.source.unread(token)
                words = "".join(pieces)
                detail = "text before the arguments"
                self.emit(Problem("arguments_trailing_text", detail, call=self.calls, text=words))
                return _MEMBER(words) is None and not any(control in words for control in CONTROLS)
            pieces.append(token)

    def _begins_arguments(self, name: str) -> Parse[bool]:
        """Whether the arguments of a tool continue here, after their brace. For a tool that takes only one text, words
        with a brace in them are that text.
        """
        source = self.source
        tool = self.tools.get(name)
        declared = properties(tool_schema(tool))
        while True:
            begin = source.ahead(_MAX_FIRST_KEY)
            if found := _FIRST_KEY.match(begin):
                return not declared if found[2] else len(declared) != 1 or found[1] in declared
            if (begin.strip() and begin.lstrip()[0] != '"') or not source.more(_MAX_FIRST_KEY):
                return False
            yield

    def behind_arguments(self) -> Parse[str]:
        """Read the text after arguments, up to a control token or a header without any, which is unread."""
        trailing, token = yield from read_until(self.source, self.ends, MAX_BODY)
        self.trailing(trailing)
        return self.unless_header(token) if token in MARKS else token

    def held_arguments(self) -> Parse[tuple[str, bool]]:
        """Hold the arguments that begin here; returns them and whether they are closed."""
        value, (is_closed, token, _) = yield from collect_json(self.source, _JSON_STOPS, MAX_BODY)
        self.source.unread(token)
        return value, is_closed

    def peek(self) -> str:
        """The next character, `""` if it has not arrived."""
        return self.source.text[self.source.at : self.source.at + 1]

    def next_call(self, name: str) -> int | None:
        """The number of the next call under this name; None if the name wraps any number of calls."""
        return None if name == PARALLEL and name not in self.tools else self.calls

    def whole_call(self, name: str, body: str, *, complete: bool = True) -> None:
        """Emit a call whose arguments were all read; not `complete`: the arguments are ambiguous."""
        arguments = body.strip()
        lead, _, tail = body.partition(arguments)
        self.markup(lead)
        index = self._start(name)
        self.emit(ArgumentsDelta(index, arguments))
        self.emit(CallEnded(index, complete=complete))
        self.markup(tail)

    def json_arguments(self, name: str, *, certain: bool = True) -> Parse[str]:
        """Stream a call whose arguments begin here as JSON.

        Control tokens in its strings are content; any other control token ends it and is returned.
        """
        index = self._start(name)
        closed, token, is_sure = yield from pass_json(self.source, _JSON_STOPS, partial(ArgumentsDelta, index), index)
        is_whole = not (yield from member_follows(self.source)) if closed else is_sure
        self.emit(CallEnded(index, complete=certain and is_whole))
        return token

    def several(self) -> Parse[str]:
        """Stream the calls in the body of a wrapper call, each separately."""
        source = self.source
        opening = yield from self._ahead_as(_USES, "{[")
        if not opening:
            body, (_, token, _) = yield from collect_json(source, _JSON_STOPS, MAX_BODY)
            self.emit(Problem("malformed_call", f"{PARALLEL} without its list of calls", text=body))
            return token
        self.markup(opening.group())
        token = ""
        while not token:
            words, token = yield from read_until(source, _USE_BEGIN, MAX_BODY)
            self._between(words.replace(",", " "), words)
            if token == "{":
                source.unread(token)
                token = yield from self._use()
            elif token == "]":
                self.markup(token)
                if not opening.group().strip().startswith("{"):
                    return ""
                words, token = yield from read_until(source, _USES_END, MAX_BODY)
                self._between(words, words)
                if token == "}":
                    self.markup(token)
                    return ""
            elif source.done:
                break
        self.emit(Problem("json_repaired", f"{PARALLEL} without the end of its list", call=self._last()))
        return token

    def _use(self) -> Parse[str]:
        """Read one of several calls. Its arguments are streamed if its name precedes them."""
        source = self.source
        if head := (yield from self._ahead_as(_USE, "{")):
            self.markup(head.group())
            token = yield from self.json_arguments(self._used(head[1]))
            if token:
                return token
            words, token = yield from read_until(source, _USES_END, MAX_BODY)
            self._between(words, words)
            if token != "}":
                return token
            self.markup(token)
            return ""
        item, (_, token, _) = yield from collect_json(source, _JSON_STOPS, MAX_BODY)
        try:
            use = decode(item, _Use)
        except NotJsonError as error:
            self.emit(Problem("malformed_call", f"{PARALLEL}: {error}", text=item))
            return token
        arguments = bytes(use.parameters).decode()
        self.whole_call(self._used(use.recipient_name), arguments)
        # The arguments were emitted verbatim; the rest of the item is structure.
        self.markup(without(item, [arguments]) if "parameters" in item else item)
        return token

    def _used(self, recipient: str) -> str:
        """The tool that one of several calls names."""
        name, bent = resolve(recipient, self.tools)
        if bent:
            self.emit(Problem(bent, f"recipient {recipient!r}", call=self.calls))
        return name

    def _between(self, words: str, written: str) -> None:
        """Handle text between several calls, or after the arguments of one."""
        if words.strip():
            self.emit(Problem("arguments_trailing_text", "text between calls", call=self._last(), text=written))
        else:
            self.markup(written)

    def _ahead_as(self, pattern: re.Pattern[str], begins: str) -> Parse[re.Match[str] | None]:
        """Read a match that begins with one of these characters; None if there is no match."""
        source = self.source
        while True:
            ahead = source.ahead(_MAX_USE)
            if found := pattern.match(ahead):
                source.at += found.end()
                return found
            head = ahead.lstrip()
            if (head and head[0] not in begins) or not source.more(_MAX_USE):
                return None
            yield

    def held_object(self, limit: int) -> Parse[tuple[str, str]]:
        """Hold a body that begins as an object, up to its token or `limit` characters; see `read_until`."""
        value, (closed, token, _) = yield from collect_json(self.source, _JSON_STOPS, limit)
        if not closed:
            return value, token
        rest, token = yield from read_until(self.source, BODY_END, limit - len(value))
        return value + rest, token

    def trailing(self, text: str) -> None:
        """Handle text between the arguments and the end of the message."""
        if text.strip():
            kind: ProblemKind = "arguments_trailing_text"
            self.emit(Problem(kind, "text after the arguments", call=self._last(), text=text))
        else:
            self.markup(text)

    def discard(self, text: str) -> None:
        """Report and drop text after a call."""
        words = text
        for stop in STOPS:
            words = words.replace(stop, "")
        if words.strip():
            self.emit(Problem("text_after_call_discarded", "text after a call", text=text))
            return
        self.markup(text)
        if text.strip():
            self.emit(Problem("redundant_stop", "a stop token after a closed call"))

    def _raw_arguments(self, name: str, *, certain: bool) -> Parse[str]:
        index = self._start(name)
        empty = True
        while True:
            text, token = self.source.scan(BODY_END)
            if text:
                self.emit(ArgumentsDelta(index, text))
                empty = False
            if token or (self.source.ended and self.source.done):
                break
            yield
        cut = not token
        if empty and not cut and self.tools.takes_nothing(name):
            self.emit(ArgumentsDelta(index, "{}"))
        self.emit(CallEnded(index, complete=certain and not cut))
        return token

    def _last(self) -> int | None:
        """The number of the call before, if there is one."""
        return self.calls - 1 if self.calls else None

    def _start(self, name: str) -> int:
        self.emit(CallStarted(self.calls, name))
        self.calls += 1
        return self.calls - 1
