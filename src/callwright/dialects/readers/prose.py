"""Parses answers in free text: prose, code, reasoning, and calls without markers.

Text streams. If a part may be a call in JSON, the rest of the answer is buffered and judged as a whole, see
`callwright.free_text.recover`. So is a call in a format's own markup, unless its place shows that it is meant
(`callwright.free_text.places`): then it streams. The parser of a format with markers is a subclass.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Final

from callwright.calls.toolset import Toolset
from callwright.dialects.readers.closed_thought import calls_at_end, is_over
from callwright.dialects.readers.code_context import CodeContext
from callwright.dialects.readers.foreign import Way, known_openings, lone_closer, openings
from callwright.dialects.readers.foreign_in_text import ForeignInText
from callwright.dialects.readers.json_in_text import JsonInText
from callwright.dialects.readers.marks import BRACES, FENCES, Marks, all_ends, is_token, markers
from callwright.dialects.readers.trial import Trial, TrialSpan
from callwright.events import (
    CallStarted,
    ContentDelta,
    Event,
    Markup,
    Problem,
    ReasoningDelta,
    TextEvent,
)
from callwright.free_text.intent import find_runs, is_announcement, verdict
from callwright.free_text.places import begins_apart
from callwright.free_text.recover import RecoveredCall, TextSegment, recover
from callwright.prompt import holds_broken
from callwright.stream_reader import Markers, Parse, StreamReader, comes_next, emit_text_until, read_blanks, read_until
from callwright.tolerant_json.markers import MARKS

__all__ = ["ProseReader", "is_token"]

_BOM: Final = "\ufeff"
# At most this much is held back as a possible call; what is longer is text.
_MAX_HELD: Final = 4_194_304
_EVERYTHING = Markers()
_REMEMBERED: Final = 400  # characters before a call, by which it is judged: "I'll look that up."


class ProseReader:
    """Parses one answer. Subclasses override `_marked`, which reads the text after an opening tag. `calls` counts the
    calls. `reads_headers`: foreign calls may begin an answer without a mark; in some formats own calls do.
    """

    reads_headers = True

    def __init__(self, source: StreamReader, tools: Toolset, marks: Marks = Marks()) -> None:  # noqa: B008  # frozen
        self.source = source
        self.emit: Callable[[Event], object] = source.emit
        self.markup: Callable[[str], object] = source.markup
        self.tools = tools
        self.calls = 0
        self.tags = marks.tags
        self.thoughts: Mapping[str, str] = dict(marks.thoughts)
        self._ends = all_ends(marks.ends)
        self._make: Callable[[str], TextEvent] = ContentDelta
        self._code = CodeContext()
        self.before = ""  # the end of the text so far
        self.begun = ""  # its begin
        self._apart = False  # a call stands between the text so far and what comes
        self._apart_by = ""  # white space to stand there, where a thought does
        self._control = marks.control
        self.trial: Trial | None = None  # held text is being parsed as if its tags were meant
        self._shows = False  # held text is being parsed whose tags are only shown
        self._is_first = True  # nothing was said before a thought
        self._unclosed: set[str] = set()  # ends of thoughts that do not come any more
        self.replays = False  # held text is being parsed again
        self.rest = ""  # the part of it that is parsed after it
        self.in_json = JsonInText(self)
        self.foreign = ForeignInText(self)
        self._in_text, self._in_thought = markers(marks, has_tools=bool(tools.ordered))

    def read(self, start: str) -> Parse[None]:
        """Read the whole answer. `start` is `reasoning` if the prompt left reasoning open. Then this is empty."""
        try:
            yield from self._answer(start)
        finally:
            self.let_go()

    def _answer(self, start: str) -> Parse[None]:
        yield from self.skip(_BOM)
        if start == "reasoning":
            opening, close = next(iter(self.thoughts.items()))
            yield from self.skip_blanks()
            yield from self.skip(opening)
            yield from self._think(close)
        yield from self._parts()
        if self.tools.ordered and (self.foreign.unread is not None or not self.calls):
            self.foreign.tell_unread()

    def _parts(self) -> Parse[None]:
        """Read the parts of an answer, to its end."""
        if self.tools.ordered and not (self.before or self._shows):
            if (yield from self.in_json.begins_held()):
                yield from self.in_json.held("")
            elif self.reads_headers:
                yield from self.foreign.begins_with_header()
        while not self.source.done:
            blanks, marker = yield from emit_text_until(self.source, self._in_text, self.say)
            if marker:
                yield from self._part(blanks, marker)

    def _part(self, blanks: str, marker: str) -> Parse[None]:
        """Read what a marker behind `blanks` begins."""
        shown = self._shows and marker not in self.thoughts and marker not in self.thoughts.values()
        if shown or self._code.inside(blanks):
            self.emit(self.say(blanks + marker))
        elif marker in self.tags:
            yield from self._own_tag(blanks, marker)
        elif marker in self.thoughts:
            yield from self._thought(blanks, marker)
        elif marker in self.thoughts.values():
            self._apart_by = ""
            self.lone_close(blanks + marker)
            yield from self.skip_blanks()
        elif marker in self._ends:
            yield from self._end_token(blanks + marker)
        elif marker in FENCES and self.at_line_start(blanks):
            yield from self.in_json.fence(blanks, marker)
        elif marker in BRACES:
            self.source.at -= 1
            yield from self.value(blanks)
        elif marker in known_openings():
            behind = yield from read_blanks(self.source)
            is_json = marker in MARKS and self.source.text.startswith(("{", "[", "`"), self.source.at)
            self.source.unread(behind)
            if (yield from self.foreign.calls(blanks + marker, openings().get(marker, ()), strict=is_json)):
                return
            behind = yield from read_blanks(self.source)
            if self.source.text.startswith(("{", "[", "<", "`"), self.source.at):
                yield from self.in_json.held(blanks + marker + behind)
            else:  # the marker is only mentioned
                self.emit(self.say(blanks + marker + behind))
        else:
            self.emit(self.say(blanks + marker))

    def _end_token(self, token: str) -> Parse[None]:
        """A stop token is no content at the end of the answer; inside a line of text it is only mentioned."""
        behind = yield from read_blanks(self.source)
        self.emit(self.say(token + behind) if self._is_word(token, behind) else Markup(token + behind))

    def _is_word(self, token: str, blanks: str) -> bool:
        """Whether the line continues after a token and these blanks, with no other token: then it is a word of it."""
        return "\n" not in blanks and self.source.ahead(1) not in ("", "<", token.lstrip()[0])

    def value(self, lead: str) -> Parse[None]:
        """Read what a brace or bracket behind `lead` begins: a call, data or text."""
        yield from self.in_json.value(lead)

    def _marked(self, blanks: str, tag: str) -> Parse[None]:
        """Read what follows an opening tag; for formats that have one."""
        self.emit(self.say(blanks + tag))
        yield from ()

    # --- own tags ---

    def _own_tag(self, blanks: str, tag: str) -> Parse[None]:
        """A tag of the format itself: read at once where it is certain, else with all that follows it."""
        if holds_broken(self.before):
            self.emit(self.say(blanks + tag))  # a text that the prompt has broken is repeated
        elif tag in openings() and self.tools.ordered and (yield from self._is_foreign(blanks, tag)):
            return
        else:
            yield from self._judge(blanks, tag, self._marked(blanks, tag))

    def _judge(self, blanks: str, opening: str, read: Parse[None], *, own: bool = True) -> Parse[None]:
        """Read a call behind its `opening` where it is certain, else judge it with all that follows. `own`: it is
        marked.
        """
        if not self._is_certain(blanks, own=own):
            yield from self.doubtful(blanks + opening, own=own)
            return
        source, trial, calls = self.source, self.trial, self.calls
        begin, first = source.at - len(opening), len(trial.events) if trial else 0
        yield from read
        if trial and trial.source is source and self.calls > calls:
            trial.spans.append(TrialSpan(begin, source.at, first, len(trial.events)))

    def _is_foreign(self, blanks: str, tag: str) -> Parse[bool]:
        """Whether an own tag goes on as another family's that looks the same; then its calls are read."""
        inner = yield from read_blanks(self.source)
        own = self.source.text.startswith("`", self.source.at) or (yield from self._may_begin_call(tag))
        self.source.unread(inner)
        return not own and (yield from self.foreign.own_tag(blanks, tag))

    def _is_certain(self, blanks: str, *, own: bool) -> bool:
        """Whether what may begin a call here does, whatever follows."""
        return (
            self.trial is not None
            or self._apart
            or not self.tools.ordered
            or self.tools.choice != "auto"
            or (own and self._control and begins_apart(self.before + blanks))
            or not self.before.strip()
            or is_announcement(self.before + blanks, self.tools.names)
        )

    def doubtful(self, opening: str, *, own: bool) -> Parse[None]:
        """Hold the rest of an answer whose tags may be talked about, read it on trial, and judge what it holds."""
        held, _ = yield from read_until(self.source, _EVERYTHING, _MAX_HELD)
        text = opening + held
        before = (self.calls, self._apart, self._apart_by, self.before, copy(self._code))
        left = self.foreign.left
        trial = self._try(text)
        found = find_runs(text, trial.places(len(text)), before[3], self.tools.is_text)
        demanded = self.tools.choice != "auto"
        names = {event.name for event in trial.events if isinstance(event, CallStarted)}
        is_sure = demanded or all(trial.spans[number].is_sure for run in found.runs for number in run)
        own = own and all(trial.spans[number].own for run in found.runs for number in run)
        decided = verdict(found, own=own, demanded=demanded, names=names) if is_sure else "ambiguous"
        meant = not trial.spans or decided == "certain"
        begin = trial.spans[found.runs[0][0]].begin if meant and found.runs else 0
        if meant and begin == (trial.spans[0].begin if trial.spans else 0):
            for event in trial.events:
                self.emit(event)
            return
        self.calls, self._apart, self._apart_by, self.before, self._code = before
        self.foreign.left = left
        self.show(text[:begin] if meant else text)
        if meant:
            for event in self._try(text[begin:]).events:
                self.emit(event)
            return
        for number in (number for run in found.runs for number in run):
            for problem in trial.doubts(number, self.tools):
                self.emit(problem)
                self.foreign.settle()

    def _try(self, text: str) -> Trial:
        """Read held text with all its tags taken as meant; nothing goes out."""
        emit, markup, outer = self.emit, self.markup, self.trial
        self.trial = trial = Trial([], [])
        self.emit = trial.events.append
        self.replay(text)
        self.emit, self.markup, self.trial = emit, markup, outer
        return trial

    def read_on_trial(self, begin: int, end: int, events: Sequence[Event], way: Way) -> None:
        """Take calls that were read in another way from a part of the text."""
        trial = self.trial
        assert trial is not None
        first = len(trial.events)
        for event in events:
            self.emit(event)
        if trial.source is self.source:
            trial.spans.append(TrialSpan(begin, end, first, len(trial.events), own=False, is_sure=way.is_sure))
        self.source.at = end

    # --- text ---

    def say(self, text: str) -> TextEvent:
        """The event for a text. Content before and behind a call is separated by a blank line."""
        if self._apart:
            if text.isspace():
                return Markup(text)
            self._apart = False
            if self.before:
                said = text.lstrip()
                self.markup(text[: len(text) - len(said)])
                text = f"\n\n{said}"
        self._code.feed(text)
        self.before = (self.before + text)[-_REMEMBERED:]
        if len(self.begun) < _REMEMBERED and self._make is ContentDelta:
            self.begun += text[:_REMEMBERED]
        if self._apart_by:
            text, self._apart_by = self._apart_by + text, ""
        return self._make(text)

    def leave_gap(self, blanks: str) -> None:
        """Note white space beside what is no content. Of both sides one stays between the words, a line break first."""
        if self._apart or not self.before or (self._apart_by and ("\n" in self._apart_by or "\n" not in blanks)):
            return
        self.before = self.before.removesuffix(self._apart_by) + blanks
        self._code.feed(blanks)
        self._apart_by = blanks

    def at_line_start(self, blanks: str) -> bool:
        return "\n" in blanks or self._code.at_line_start

    def go_on_from(self, other: "ProseReader") -> None:
        """Take over the answer where another reader is, with all that it knows of it."""
        if other.calls > self.calls:
            self.foreign.settle()
        self.source, self.emit, self.markup = other.source, other.emit, other.markup
        self.calls, self.before = other.calls, other.before
        self._apart, self._apart_by, self._code, self._make = other._apart, other._apart_by, other._code, other._make

    def let_go(self) -> None:
        """Empty this: it reads no more. Parts of it hold it, so it would wait for the collector of garbage."""
        vars(self).clear()

    def call_begins(self) -> None:
        """Note that a call begins here: text behind it stands apart, and reasoning may begin again."""
        self._apart, self._apart_by = True, ""
        if self.foreign.unread is not None:
            self.foreign.call_begins()

    def skip_blanks(self) -> Parse[None]:
        self.markup((yield from read_blanks(self.source)))

    def held_blanks(self) -> Parse[str]:
        return read_blanks(self.source)

    def skip(self, literal: str) -> Parse[None]:
        while self.source.more(len(literal)) and literal.startswith(self.source.text[self.source.at :]):
            yield
        if self.source.text.startswith(literal, self.source.at):
            self.emit(Markup(self.source.take(self.source.at + len(literal))))

    def comes(self, literal: str) -> Parse[bool]:
        return comes_next(self.source, literal)

    def empty_call(self, opening: str, closer: str) -> None:
        """A call's `opening` with its `closer` right behind it: nothing to show."""
        self.emit(Markup(opening + self.source.take(self.source.at + len(closer))))
        self.emit(Problem("malformed_call", "a call with nothing in it"))

    def lone_end(self, blanks: str, tag: str) -> Parse[None]:
        """A closing tag without its opening one: one too many behind a call, else a mention, or a stray token."""
        if self._apart:
            self.emit(Markup(blanks + tag))
            self.emit(Problem("markup_repaired", f"{tag} closes nothing", call=self.calls - 1 if self.calls else None))
            yield from self.skip_blanks()
        else:
            yield from self.no_call(blanks, tag)

    def no_call(self, blanks: str, tag: str) -> Parse[None]:
        """A tag of a call where no call is: a word that was mentioned, or a stray token."""
        if self._control and is_token(tag):
            yield from self.stray(blanks, tag)
        else:
            self.emit(self.say(blanks + tag))

    def stray(self, blanks: str, token: str) -> Parse[None]:
        """A control token of a call where no call is: no content, unless it is a word of a sentence."""
        behind = yield from read_blanks(self.source)
        if blanks and not self.at_line_start(blanks) and self._is_word(token, behind):
            self.emit(self.say(blanks + token + behind))
            return
        self.leave_gap(blanks)
        self.markup(blanks)
        self.emit(Problem("control_tokens_stripped", "a token of a call where no call is", text=token))
        self.leave_gap(behind)
        self.markup(behind)

    # --- thoughts ---

    def _thought(self, blanks: str, opening: str) -> Parse[None]:
        """What may open a thought. Within a line it does only if it is closed."""
        close = self.thoughts[opening]
        if not (self._apart or self.at_line_start(blanks)) and not (yield from self._is_closed(close)):
            self.emit(self.say(blanks + opening))
            return
        yield from self._thinks(blanks, opening)

    def _thinks(self, blanks: str, opening: str) -> Parse[None]:
        """Read a thought, and the white space on both sides."""
        self.leave_gap(blanks)
        self.emit(Markup(blanks + opening))
        yield from self._think(self.thoughts[opening])

    def _is_closed(self, close: str) -> Parse[bool]:
        """Whether this end of a thought comes; nothing is read."""
        if close in self._unclosed:
            return False
        thought, end = yield from read_until(self.source, Markers(close), _MAX_HELD)
        self.source.unread(thought + end)
        if not end:
            self._unclosed.add(close)
        return bool(end)

    def _think(self, close: str) -> Parse[None]:
        """Read reasoning to its end. A call in it counts only if the reasoning is never closed and ends with it."""
        yield from self.skip_blanks()
        self._make, code, self._code = ReasoningDelta, self._code, CodeContext()
        before, self.before = self.before, ""
        apart, self._apart = self._apart, False
        self._is_first = not (before.strip() or self.calls)
        gap, self._apart_by = self._apart_by, ""
        while not self.source.done:
            blanks, marker = yield from emit_text_until(self.source, self._in_thought[close], self.say)
            if marker == close or marker in self._ends:
                self.emit(Markup(blanks + marker))
                break
            if marker and (yield from self._draft(blanks + marker, close)):
                break
        thought, is_all = self.before, len(self.before) < _REMEMBERED
        if self._control and (closer := lone_closer(thought, self.source.layout, is_all=is_all)):
            self.emit(Problem("control_tokens_stripped", "the end of a call in a thought without one", text=closer))
        self._make, self._code, self.before = ContentDelta, code, before
        self._apart = apart or self._apart
        self._apart_by = "" if self._apart else gap
        behind = yield from read_blanks(self.source)
        self.leave_gap(behind)
        self.markup(behind)

    def _draft(self, opening: str, close: str) -> Parse[bool]:
        """Buffer a possible call in reasoning to the end of the reasoning. Returns whether that has come."""
        marker = opening.strip()
        if marker in BRACES:
            self.source.at -= 1
            opening = opening.removesuffix(marker)
            if not (yield from self._bracket_names_call()):
                self.emit(self.say(opening + self.source.take(self.source.at + 1)))
                return False
        elif marker in self.tags:
            opening += yield from read_blanks(self.source)
            if not (yield from self._may_begin_call(marker)):
                self.emit(self.say(opening))
                return False
        held, end = yield from read_until(self.source, Markers(close, *self._ends), _MAX_HELD)
        text = opening + held
        problem: Problem | None = None
        if end != close:
            at = self._last_call(text)
        elif self._is_first and (yield from is_over(self.source, self._ends)):
            at, problem = calls_at_end(self, text, self._last_call(text))
        else:
            at = len(text)
        thought = text[:at].rstrip()
        shown = recover(text, self.tools, before=self.before) if end != close and at == len(text) else ()
        if thought:
            self.emit(self.say(thought))
        self.markup(text[len(thought) : at])
        for piece in shown:
            if isinstance(piece, TextSegment) and piece.problem:
                self.emit(piece.problem)
        if problem is not None:
            self.emit(problem)
        if at < len(text):
            self._make, self._code, self.before = ContentDelta, CodeContext(), ""
            self.replay(text[at:])
        self.markup(end)
        return True

    def read_in_thought(self, text: str) -> Sequence[Event]:
        """The events of a part of a thought, read as if it stood behind that."""
        left, calls, code, before = self.foreign.left, self.calls, self._code, self.before
        self._make, self._code, self.before = ContentDelta, CodeContext(), ""
        events = self._try(text).events
        self.foreign.left, self.calls, self._code, self.before = left, calls, code, before
        self._make, self._apart, self._apart_by = ReasoningDelta, False, ""
        return events

    def _bracket_names_call(self) -> Parse[bool]:
        """Whether a bracket that comes next opens a call without a tag."""
        return (yield from self.in_json.names_call())

    def _may_begin_call(self, tag: str) -> Parse[bool]:
        """Whether the inside of a call follows this tag; for formats that can tell."""
        yield from ()
        return True

    def _last_call(self, text: str) -> int:
        """Where the calls at the end of unclosed reasoning begin; the length of the text if there are none."""
        pieces = recover(text, self.tools, before=self.before)
        at = len(text)
        for piece in reversed(pieces):
            if not isinstance(piece, RecoveredCall):
                break
            at = text.rfind(piece.text, 0, at) if piece.text else at
        return at

    def lone_close(self, written: str) -> None:
        """A closing tag of reasoning alone: all text before it was reasoning, unless a call came first."""
        self.emit(Markup(written))
        if self.before and not self.calls:
            detail = f"{written.strip()} without its opener: what stood before it was thought"
            self.emit(Problem("unopened_reasoning", detail))
            self.before = ""
            self._code = CodeContext()

    def show(self, text: str) -> None:
        """Emit held text whose tags are only shown."""
        self._shows = True
        self.replay(text)
        self._shows = False

    def replay(self, text: str) -> None:
        """Parse held text again, as what it turned out to be, then what was left over from it."""
        outer, markup, replays, self.replays = self.source, self.markup, self.replays, True
        while text:
            self.rest = ""
            self.source = StreamReader(self.emit)
            self.markup = self.source.markup
            self.source.push(text)
            self.source.end()
            if self.trial and self.trial.source is None:
                self.trial.source = self.source
            elif not self._shows:
                self.markup(self.source.blanks())
            for _ in self._parts():
                raise AssertionError("held text is whole")
            text = self.rest
        self.source, self.markup, self.replays = outer, markup, replays
