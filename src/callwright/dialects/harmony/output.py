"""Reads the output of a Harmony model, by the text of its control tokens.

The recipient, not the channel, makes a message a call; the last known channel counts; a body that begins as JSON is
read with its strings, so that control tokens in a string are content; after the first call only further calls
count, any other text is discarded. Each way in which models deviate from the format is a kind of problem.
"""

import re
from typing import Literal

import msgspec
from msgspec import Struct

from callwright.calls.toolset import Toolset
from callwright.dialects.harmony.bodies import ANY, BODY_END, KEPT, MARKS, MAX_BODY, NEXT, STOPS, Bodies, json_value
from callwright.dialects.harmony.header import Header, read_header, resolve
from callwright.dialects.harmony.stripped import (
    begins_stripped,
    begins_text,
    holds_stripped,
    mentions_stripped,
    read_stripped,
    read_text,
    skip_analysis,
)
from callwright.dialects.harmony.tokens import CALL, CHANNEL, CHANNELS, CONSTRAIN, MESSAGE, START, STRIPPED
from callwright.events import Markup, Problem, ProblemKind
from callwright.reading.text.answer_text import AnswerText
from callwright.reading.text.foreign import Formats
from callwright.reading.text.foreign_in_text import ForeignInText
from callwright.reading.text.other_answers import reads_others
from callwright.streaming.reader import Markers, Parse, StreamReader, read_blanks, read_until, silent_reader

# Text without a header is held until it is known whether a message follows; more than this is an answer and flows.
# At the begin of a message less is held: the server may have parsed Harmony itself and forward bare text.
_MAX_HEADERLESS = 65_536
_MAX_BARE = 256
# Real headers have at most some 150 characters; a longer one lacks its `<|message|>`.
_MAX_HEADER = 2_000
# A body that may be a call whose name was lost is held this long.
_MAX_GUESSED = 16_384
_MAX_FIRST_KEY = 200

_HEADER_END = Markers(MESSAGE, START, *STOPS)
_NEVER = Markers()
_HEADER_LIKE = re.compile(rf"\s*+(?:assistant)?\s*+(?:{'|'.join(CHANNELS)})?\s*+(?:to=\S++(?:\s++\w++)?)?\s*+\Z")
# The text before the first token of a header without `<|start|>`, if the message is the model's own.
_UNSTARTED = re.compile(r"\s*+(?:assistant\s*+)?(?:to=\S++(?:\s++\w++)?\s*+)?\Z")
_FIRST_KEY = re.compile(r'\s*\{\s*(?:"((?:[^"\\]|\\.){0,100})"|\})')
# After the last `<|channel|>` of a header that lacks its `<|message|>`: the channel, a content type, the text.
_UNHEADED = re.compile(
    rf"\s*+({'|'.join(CHANNELS)})(\s*+(?:<\|constrain\|>\s*+\w*+|(?:json|code)(?=\s*+[{{\[]))?\s*+)(.*)\Z", re.DOTALL
)
_NEXT_HEADER = re.compile(rf"assistant(?:\s+to=\S+?)?\s*{re.escape(CHANNEL)}")
_FAILED_START = re.compile(rf"(?:\s|json|code|{'|'.join(CHANNELS)})*\Z")
# A call without `<|message|>`: the arguments follow its header directly.
_HEADED_ARGUMENTS = re.compile(r".*to=\S+?\s*+(?:(?:<\|constrain\|>\s*+)?(?:json|code)\s*+)?(?=\{)", re.DOTALL)

# Position of the reader: after the prompt's `<|start|>assistant`, after a `<|start|>`, or between two messages.
Place = Literal["assistant", "start", "boundary"]


# How a message without control tokens may begin.
_STRIPPED = (*MARKS, *CHANNELS, "to=")
_OWN = (START, CHANNEL, MESSAGE, CONSTRAIN, *STRIPPED)


def parse(text: AnswerText, start: str, formats: Formats) -> Parse[None]:
    """Events of a Harmony output.

    `start`: `assistant` (the prompt ended `<|start|>assistant`), `message` (at the begin of a message), `reasoning` (in
    an open analysis message).
    """
    return _Reader(text.source, text.tools).read(text, start, formats)


class _Pending(Struct, frozen=True):
    """Text whose meaning hangs on whether another message follows: a channel, or None for a problem only."""

    text: str
    kind: ProblemKind
    if_followed: str | None
    if_last: str | None


class _Reader:
    def __init__(self, source: StreamReader, tools: Toolset) -> None:
        self.source = source
        self.emit, self.markup = source.emit, source.markup
        self.tools = tools
        self.bodies = Bodies(source, tools)
        self.pending: _Pending | None = None
        self.opening = True
        self.headless = ""  # the beginning of an answer without a header

    def read(self, text: AnswerText, start: str, formats: Formats) -> Parse[None]:
        if (yield from reads_others(text, start, formats, own=_OWN, headers=False)):
            return
        place: Place = "boundary" if start == "message" else "assistant"
        if start == "reasoning":
            place = self._close((yield from self._text("analysis")))
        while (place == "start" or not self.source.done) and not self.bodies.calls:  # a header that was begun ends, too
            if (yield from self._begins_stripped()):
                place = yield from self._read_stripped()
            else:
                place = yield from self._one(place)
            self.opening = False
        if self.pending is not None:
            self._settle(self.pending, followed=False)
        if self.bodies.calls:
            yield from self._after_call(place)
        elif self.headless:
            ForeignInText(text, formats).name_in(self.headless)

    def _is_stripped(self, read: str) -> bool:
        """Whether this text, after the first message, begins a message without control tokens; then it is unread."""
        if self.opening:
            return False
        is_stripped = begins_stripped(silent_reader(read)) is True
        if is_stripped:
            self.source.unread(read)
        return is_stripped

    def _begins_stripped(self) -> Parse[bool]:
        while self.opening or self.bodies.ends is NEXT:
            answer = begins_stripped(self.source)
            if answer is not None:
                return answer
            yield
        return False

    def _read_stripped(self) -> Parse[Place]:
        """Read a message without control tokens."""
        if self.pending is not None:
            self._settle(self.pending, followed=True)
        return self._close((yield from read_stripped(self.bodies)))

    # --- one message ---

    def _one(self, place: Place) -> Parse[Place]:
        """Read from one message's begin to the next one's."""
        bare = self.opening and place == "boundary"
        lead, token = yield from read_until(self.source, ANY, _MAX_BARE if bare else _MAX_HEADERLESS)
        if self.opening and not token and self.source.done and mentions_stripped(lead):
            return self._close((yield from self._read_mentions(lead)))
        if token in (CHANNEL, CONSTRAIN, MESSAGE):
            header, written, token = yield from self._header(lead, token, place)
            if header is None:
                return (yield from self._without_message_token(written, token, has_role=place != "assistant"))
            return (yield from self._message(header, written))
        if lead.lstrip().startswith(_STRIPPED) and self._is_stripped(lead + token):
            return (yield from self._read_stripped())
        if token == START:
            if place == "start":
                self.emit(Problem("malformed_header", f"{START} twice", text=lead))
            elif lead.strip():
                self._stray(lead, place)
            else:
                self.markup(lead)
                if self.opening and place == "assistant":
                    self.emit(Problem("malformed_header", f"{START} where the prompt had one"))
            self.emit(Markup(START))
            return "start"
        yield from self._headless(lead, token, place)
        return "boundary"

    def _read_mentions(self, text: str) -> Parse[str]:
        """Read the first message of a whole output without control tokens, in which there may be headers."""
        self.source.unread(text)
        if holds_stripped(text, self.tools):
            self.bodies.lose_tokens()
            skip_analysis(self.bodies)
            return read_text(self.bodies, "analysis")
        self.emit(Problem("missing_header", "text without a header, read as the answer"))
        return read_text(self.bodies, "final")

    def _header(self, lead: str, token: str, place: Place) -> Parse[tuple[Header | None, str, str]]:
        """Read the rest of a header that continues with `token`.

        Returns the header, or None without its `<|message|>`, its text, and the token that ended it.
        """
        if place == "boundary" and not self.opening:
            self.emit(Problem("missing_start", f"a message began without {START}"))
        written = lead + token
        if place != "start" and not _HEADER_LIKE.match(lead):
            self._stray(lead, place)
            written = token
        if token != MESSAGE:
            rest, token = yield from read_until(self.source, _HEADER_END, _MAX_HEADER)
            written += rest + token
        if self.pending is not None:
            self._settle(self.pending, followed=True)
        if token != MESSAGE:
            return None, written.removesuffix(token), token
        header = read_header(written.removesuffix(MESSAGE), self.tools, has_role=place != "assistant")
        if header.channel and CHANNEL not in written:
            self.bodies.ends = NEXT
        self.emit(Markup(written))
        return header, written, token

    def _headless(self, lead: str, token: str, place: Place) -> Parse[None]:
        """Handle a message or an output that ended before any header."""
        if place == "start" or (place == "assistant" and lead.strip() and _HEADER_LIKE.match(lead)):
            if self.pending is not None:
                self._settle(self.pending, followed=True)
            if not token:
                self.emit(Problem("incomplete_header", "the output was cut in a header", text=lead))
            else:
                self.emit(Problem("malformed_header", "a header without channel and body", text=lead))
        elif not lead.strip():
            self.markup(lead)
            if token and not self.opening:
                self.emit(Problem("redundant_stop", f"{token} where no message was open"))
        elif (place == "assistant" or self.opening) and token:
            self.pending = _Pending(lead, "missing_header", if_followed="analysis", if_last="final")
        else:
            if self.pending is not None:
                self._settle(self.pending, followed=True)
            self.emit(Problem("missing_header", "text without a header, read as the answer"))
            self.bodies.say("final", lead)
            self.headless = self.headless or (lead if self.source.done else lead[:_MAX_BARE])
            if not token and not self.source.done:
                token = yield from self.bodies.more_text("final", ANY)
        self.markup(token)

    def _stray(self, text: str, place: Place) -> None:
        """Handle text before a message: at the start of the output it is reasoning without a header."""
        if _HEADER_LIKE.match(text):
            self.emit(Problem("malformed_header", "a header that was begun and dropped", text=text))
        elif place == "assistant" or self.opening:
            self.emit(Problem("missing_header", "text without a header before a message, read as reasoning"))
            self.bodies.say("analysis", text)
        else:
            self.emit(Problem("stray_text", "text between two messages", text=text))

    def _settle(self, pending: _Pending, *, followed: bool) -> None:
        """Emit a pending text on its channel, now that the next message is known."""
        self.pending = None
        channel = pending.if_followed if followed else pending.if_last
        if channel is None:
            self.emit(Problem("malformed_header", "a message that was begun and dropped", text=pending.text))
        else:
            self.emit(Problem(pending.kind, "a message without its whole header"))
            self.bodies.say(channel, pending.text)
            self.headless = self.headless or (pending.text if channel == "final" else "")

    def _message(self, header: Header, written: str) -> Parse[Place]:
        """Read the body after a header."""
        self.bodies.spaced = self.bodies.spaced or header.spaced
        blanks = ""
        if header.hidden:
            header, blanks = yield from self._addressed(header)
        for kind in header.problems:
            call = self.bodies.next_call(header.name) if header.name and not header.role else None
            self.emit(Problem(kind, f"header {written!r}", call=call))
        if header.role:
            return (yield from self._foreign(header, blanks))
        if header.name:
            self.markup(blanks)
            return _place((yield from self._call(header)))
        if blanks:
            self.bodies.say(header.channel or "final", blanks)
            return self._close((yield from self.bodies.more_text(header.channel or "final")))
        if self.bodies.spaced:
            yield from self._skip_one_space()
        if self.tools.ordered and (yield from self._may_be_call()):
            return (yield from self._guess(header))
        return self._close((yield from self._text(header.channel or "final")))

    def _text(self, channel: str) -> Parse[str]:
        """Read the text of a message that has a header."""
        return read_text(self.bodies, channel, NEXT if self.bodies.ends is NEXT else KEPT)

    def _addressed(self, header: Header) -> Parse[tuple[Header, str]]:
        """Resolve a header with a name in the wrong place: it is a call only if arguments follow.

        Returns the header and the white space read after it.
        """
        blanks = yield from read_blanks(self.source)
        if self.bodies.peek() not in ("{", "[", "<", ""):
            header = msgspec.structs.replace(header, name="", problems=("unknown_channel",))
        return header, blanks

    def _close(self, token: str) -> Place:
        self.markup(token)
        if token == START:
            self.emit(Problem("missing_stop", f"{START} inside a message"))
        return _place(token)

    def _skip_one_space(self) -> Parse[None]:
        """Skip a space: LLM-jp's detokeniser puts one after every control token."""
        while self.source.more(1):
            yield
        if self.source.text.startswith(" ", self.source.at):
            self.emit(Markup(self.source.take(self.source.at + 1)))

    # --- messages with something missing ---

    def _may_be_call(self) -> Parse[bool]:
        """Whether the body begins as an object whose first key is a parameter of some tool, or which has none."""
        source = self.source
        while True:
            begin = source.ahead(_MAX_FIRST_KEY)
            head = begin.lstrip()
            if found := _FIRST_KEY.match(begin):
                return found[1] is None or self.tools.declares(found[1])
            if (head and head[0] != "{") or not source.more(_MAX_FIRST_KEY):
                return False
            yield

    def _guess(self, header: Header) -> Parse[Place]:
        """Read a body as a call if there is evidence for a call and its arguments fit exactly one tool."""
        blanks = yield from read_blanks(self.source)
        body, token = yield from self.bodies.held_object(_MAX_GUESSED)
        channel = header.channel or "final"
        value = json_value(body)
        # An empty object is weak evidence.
        hint = channel == "commentary" and bool(value)
        evidence = token == CALL or hint or (header.evidence and channel != "final")
        whole = bool(token) or self.source.done
        fitting = self.tools.fitting(value) if evidence and whole else []
        if len(fitting) == 1:
            self.emit(
                Problem("recipient_guessed_by_schema", f"only {fitting[0]!r} takes these arguments", self.bodies.calls)
            )
            self.markup(blanks)
            self.bodies.whole_call(fitting[0], body)
        else:
            self.source.unread(blanks + body + token)
            token = yield from self.bodies.text(channel)
        return self._close(token)

    def _foreign(self, header: Header, blanks: str) -> Parse[Place]:
        """A message in another's name: a call if its role is a tool and it is closed as one, else imagined."""
        blanks += yield from read_blanks(self.source)
        body, token = (
            (yield from self.bodies.held_object(MAX_BODY))
            if self.bodies.peek() == "{"
            else (yield from read_until(self.source, BODY_END, MAX_BODY))
        )
        name, _ = resolve(header.role, self.tools)
        if token == CALL and name in self.tools and isinstance(json_value(body), dict):
            self.emit(Problem("malformed_header", f"the tool {name!r} as role", call=self.bodies.calls))
            self.bodies.whole_call(name, blanks + body)
        else:
            self.emit(Problem("imagined_message", f"a message in the name of {header.role!r}", text=blanks + body))
        return self._close(token)

    def _without_message_token(self, text: str, token: str, *, has_role: bool) -> Parse[Place]:
        """A header that ended with a stop token, another header, or the output."""
        if self._said_before_next(text, token):
            return "boundary"
        header = read_header(text, self.tools, has_role=has_role)
        if header.name and (head := _HEADED_ARGUMENTS.match(text)):
            self.emit(Markup(head.group()))
            call = self.bodies.next_call(header.name)
            self.emit(Problem("missing_message_token", f"a call without {MESSAGE}", call=call))
            self.source.unread(text[head.end() :] + token)
            return _place((yield from self._call(header)))
        found = _UNHEADED.match(text.rpartition(f"{CHANNEL}")[2])
        if not token and self.source.done and not (found and begins_text(found[3]) and not header.role):
            self.emit(Problem("incomplete_header", "the output was cut in a header", text=text))
            return "boundary"
        endless = not token and not self.source.done  # more than a header can have
        if token == START:
            self.emit(Problem("malformed_header", "a message that was begun and dropped", text=text))
        elif header.name:
            kind: ProblemKind = "malformed_call" if token == CALL and header.name in self.tools else "malformed_header"
            self.emit(Problem(kind, "a recipient without arguments", text=text))
        elif found and not header.role and not _FAILED_START.match(found[3]):
            channel, blanks, said = found.groups()
            self.markup(text.removesuffix(said))
            if blanks or endless:
                self.emit(Problem("missing_message_token", f"a message without {MESSAGE}"))
                self.bodies.say(channel, said)
                if endless:
                    token = yield from self.bodies.more_text(channel)
            else:
                self.pending = _Pending(said, "missing_message_token", if_followed=None, if_last=channel)
        else:
            self.emit(Problem("malformed_header", "a header without a body", text=text))
        self.markup(token)
        return _place(token)

    def _said_before_next(self, text: str, token: str) -> bool:
        """Whether a header is a message and the header of the next, without a token between the two."""
        next_ = _NEXT_HEADER.search(text, 1)
        before = _UNHEADED.match(text[: next_.start()].rpartition(CHANNEL)[2]) if next_ else None
        if not (next_ and before and before[3].strip()):
            return False
        self.source.unread(text[next_.start() :] + token)
        self.markup(text[: next_.start()].removesuffix(before[3]))
        self.emit(Problem("missing_message_token", f"a message without {MESSAGE}"))
        self.bodies.say(before[1], before[3])
        return True

    # --- after the first call ---

    def _after_call(self, place: Place) -> Parse[None]:
        """Read further calls. Any other text is discarded: the model assumes that the tool has answered."""
        while not self.source.done:
            if (yield from self._begins_stripped()):
                place = yield from self._read_stripped()
                continue
            written = ""
            bare = place != "start"  # the header lacks its `<|start|>`
            if bare:
                written, place = yield from self._begin_behind()
                bare = place != "start"
                if bare and not written:
                    continue
            token = MESSAGE
            if not written.endswith(MESSAGE):
                rest, token = yield from read_until(self.source, _HEADER_END, _MAX_HEADER)
                written += rest
            written = written.removesuffix(MESSAGE)
            place = _place(token)
            head = None if token == MESSAGE else _HEADED_ARGUMENTS.match(written)
            has_role = not bare or self._names_role(written)
            header = read_header(head.group() if head else written, self.tools, has_role=has_role)
            blanks = ""
            if token == MESSAGE and header.hidden:
                header, blanks = yield from self._addressed(header)
            if header.name and not header.role and (token == MESSAGE or (head and not header.noise)):
                if bare:
                    call = self.bodies.next_call(header.name)
                    self.emit(Problem("missing_start", f"a call without {START}", call=call))
                place = yield from self._next_call(header, written, token, blanks, head)
                continue
            if token == MESSAGE:
                body, token = yield from read_until(self.source, BODY_END, MAX_BODY)
                place = _place(token)
                written += MESSAGE + blanks + body
            self.bodies.discard(written + token)
            if header.role:
                yield from self._discard_rest()

    def _discard_rest(self) -> Parse[None]:
        """Discard the rest: the model plays other parts now, and no call in it is meant for us."""
        while not self.source.done:
            text, _ = yield from read_until(self.source, _NEVER, MAX_BODY)
            self.bodies.discard(text)

    def _begin_behind(self) -> Parse[tuple[str, Place]]:
        """Skip to the next message after a call. Returns the text already read of a header without `<|start|>`."""
        said: list[str] = []
        unstarted = _HEADER_LIKE if self.bodies.ends is NEXT else _UNSTARTED
        # At a mark that begins no header without tokens, one with tokens begins.
        ends = ANY if self.source.text.startswith(MARKS, self.source.at) else self.bodies.ends
        while True:
            text, token = yield from read_until(self.source, ends, MAX_BODY)
            if token and token in MARKS:
                self.source.unread(token)
                self.bodies.discard("".join((*said, text)))
                return "", "boundary"
            begins = token in (CHANNEL, CONSTRAIN, MESSAGE)
            if begins and (unstarted.match(text) or self._names_role(text)):
                self.bodies.discard("".join(said))
                return text + token, "boundary"
            said.append(text)
            if begins or token in STOPS:
                said.append(token)
                continue
            self.bodies.discard("".join(said))
            self.markup(token)
            return "", _place(token)

    def _names_role(self, lead: str) -> bool:
        """Whether a header without its `<|start|>` begins with a role: the model's, or a tool's as its output would."""
        words = lead.partition("<|")[0].split()
        if not words or words[0].startswith("to="):
            return False
        is_tool = words[0].startswith("functions.") or resolve(words[0], self.tools)[0] in self.tools
        return is_tool or words[0] == "assistant"

    def _next_call(
        self, header: Header, written: str, token: str, blanks: str, head: re.Match[str] | None
    ) -> Parse[Place]:
        """Read a further call; `head` is its header if that lacks its `<|message|>`."""
        if head:
            self.source.unread(written[head.end() :] + token)
            self.emit(Markup(head.group()))
            call = self.bodies.next_call(header.name)
            self.emit(Problem("missing_message_token", f"a call without {MESSAGE}", call=call))
        else:
            self.emit(Markup(written + token + blanks))
        for kind in header.problems:
            self.emit(Problem(kind, f"header {written!r}", call=self.bodies.next_call(header.name)))
        if self.bodies.spaced:
            yield from self._skip_one_space()
        return _place((yield from self._call(header)))

    def _call(self, header: Header) -> Parse[str]:
        """Read the body of a call. It is uncertain if its header has further words and names no known tool."""
        known = not header.noise or header.name in self.tools or self.bodies.next_call(header.name) is None
        return self.bodies.call(header.name, certain=known)


def _place(token: str) -> Place:
    return "start" if token == START else "boundary"
