"""Reads answers in free text: prose, code, reasoning, and calls without markers. It knows no format.

Text streams. If a part may be a call in JSON, the rest of the answer is held and judged as a whole, see
`callwright.free_text.recover`. So is a call in a format's own markup, unless its place shows that it is meant
(`callwright.free_text.places`): then it streams. The calls after a format's tags are read by its `CallReader`.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Final, Literal

from callwright.events import CallStarted, ContentDelta, Event, Markup, Problem, ReasoningDelta
from callwright.free_text.intent import Runs, find_runs, is_announcement, is_showing, verdict
from callwright.free_text.places import begins_apart
from callwright.free_text.recover import RecoveredCall, recover
from callwright.prompt import holds_broken
from callwright.reading.text.answer_text import REMEMBERED, AnswerText
from callwright.reading.text.call_reader import CallReader
from callwright.reading.text.closed_thought import calls_at_end, find_doubts, is_over
from callwright.reading.text.code_context import CodeContext
from callwright.reading.text.foreign import Formats, Way, lone_closer
from callwright.reading.text.foreign_in_text import ForeignInText
from callwright.reading.text.json_in_text import JsonInText
from callwright.reading.text.marks import BRACES, FENCES, Marks, all_ends, markers
from callwright.reading.text.trial import Trial, TrialSpan, doubts
from callwright.streaming.reader import Markers, Parse, StreamReader, emit_text_until, read_blanks, read_until
from callwright.tolerant_json.markers import MARKS
from callwright.tolerant_json.wrappers import is_cut_fence

_BOM: Final = "\ufeff"
# The most text held back as a possible call; longer candidates are text.
_MAX_HELD: Final = 4_194_304
_EVERYTHING = Markers()


class AnswerReader:
    """Reads one answer; its calls are read by `calls`, and those of all known `formats`."""

    def __init__(self, calls: CallReader, formats: Formats) -> None:
        self.text = calls.text
        self._formats = formats
        self._foreign = ForeignInText(self.text, formats)
        self._in_json = JsonInText(self.text)
        self._shows = False  # held text is being read, and its tags are only shown
        self._is_first = True  # no text before a thought
        self._thoughts_read: Literal["", "empty", "text"] = ""  # what thoughts were read
        self._unclosed: set[str] = set()  # ends of thoughts that do not occur any more
        self._replays = False  # held text is being read again
        self._rest = ""  # the part of it that is read after it
        self._use(calls)

    def _use(self, calls: CallReader) -> None:
        """Use this reader of calls from now on: for another spelling, or the state before a trial."""
        marks = calls.marks
        self.calls = calls
        self._marks: Marks = marks
        self.text.control = marks.control
        self._thoughts: Mapping[str, str] = dict(marks.thoughts)
        self._ends = all_ends(marks.ends)
        foreign = self._formats.foreign_to(marks.tags) if self.text.tools.ordered else None
        self._in_text, self._in_thought = markers(marks, foreign)

    def read(self, start: str) -> Parse[None]:
        """Read the whole answer. `start`: see `callwright.prompt.Prompt`."""
        text = self.text
        yield from self.calls.begin(start)
        yield from text.skip(_BOM)
        if start == "reasoning":
            opening, close = next(iter(self._thoughts.items()))
            yield from text.skip_blanks()
            yield from text.skip(opening)
            yield from self._think(close)
        yield from self._parts()
        self.calls.end()
        if text.tools.ordered and (text.unread is not None or not text.calls):
            self._foreign.tell_unread()

    def _parts(self) -> Parse[None]:
        """Read the parts of an answer, to its end."""
        text = self.text
        begins = True  # a call may need no marker here
        while True:
            if begins and text.tools.ordered and not (text.before or self._shows):
                if (yield from self._in_json.begins_held()):
                    self._again((yield from self._in_json.read_held("", self.calls)))
                elif ways := (yield from self._foreign.header(self._marks.tags, self.calls.begins)):
                    yield from self._foreign_calls("", ways)
            begins = False
            if text.source.done:
                return
            blanks, marker = yield from emit_text_until(text.source, self._in_text, text.say)
            if marker:
                yield from self._part(blanks, marker)
                is_thought = marker in self._thoughts or marker in self._thoughts.values()
                if begins := is_thought and not (text.before or text.calls):
                    yield from self.calls.begin("assistant")

    def _part(self, blanks: str, marker: str) -> Parse[None]:
        """Read a marker after `blanks`, and the part that it begins."""
        text = self.text
        is_thought = marker in self._thoughts or marker in self._thoughts.values()
        if marker in self._marks.structure and (yield from self.calls.structure(blanks, marker)):
            return
        if self._shows and not is_thought:
            text.emit(text.say(blanks + marker))
        elif text.code.inside(blanks):
            yield from self._in_code(blanks, marker)
        elif marker in self._marks.tags:
            yield from self.own_tag(blanks, marker)
        elif marker in self._thoughts:
            yield from self._thought(blanks, marker)
        elif is_thought:
            yield from self._lone_close(blanks + marker)
        elif marker in self._ends:
            if not (yield from self.calls.stop_token(blanks + marker)):
                yield from text.stop_token(blanks + marker)
        elif marker in FENCES and text.at_line_start(blanks):
            opening = yield from self._in_json.fence(blanks, marker, self._marks.tags)
            is_tag = text.source.text.startswith(self._marks.tags, text.source.at)
            if opening and text.source.text.startswith(BRACES, text.source.at) and not is_tag:
                yield from self._value(opening)
            elif opening:
                yield from self._fenced(opening)
        elif marker in BRACES:
            text.source.at -= 1
            yield from self._value(blanks)
        elif marker in self._formats.known_openings:
            yield from self._foreign_mark(blanks, marker)
        else:
            text.emit(text.say(blanks + marker))

    def _foreign_mark(self, blanks: str, marker: str) -> Parse[None]:
        """The opening of a call in another format: calls, JSON, or a mention."""
        text = self.text
        behind = yield from read_blanks(text.source)
        is_json = marker in MARKS and text.source.text.startswith(("{", "[", "`"), text.source.at)
        text.source.unread(behind)
        if (yield from self._foreign_calls(blanks + marker, self._formats.openings.get(marker, ()), strict=is_json)):
            return
        behind = yield from read_blanks(text.source)
        if text.source.text.startswith(("{", "[", "<", "`"), text.source.at):
            self._again((yield from self._in_json.read_held(blanks + marker + behind, self.calls)))
        else:  # the marker is only mentioned
            text.emit(text.say(blanks + marker + behind))

    def _in_code(self, blanks: str, marker: str) -> Parse[None]:
        """A marker in code or a quotation is text. A call of several lines is judged with all of them."""
        text = self.text
        if marker in self._marks.tags and text.tools.ordered and text.trial is None and not text.code.in_fence:
            behind = yield from read_blanks(text.source)
            if "\n" in behind:
                yield from self._doubtful(blanks + marker + behind, own=True)
                return
            text.source.unread(behind)
        text.emit(text.say(blanks + marker))

    def _fenced(self, opening: str) -> Parse[None]:
        """Read a fence with own tags, with which an answer begins. If it is cut, calls in it stay text."""
        text = self.text
        if text.trial is None and text.tools.ordered and text.tools.choice == "auto":
            rest, _ = yield from read_until(text.source, _EVERYTHING, _MAX_HELD)
            text.source.unread(rest)
            if is_cut_fence(opening + rest):
                events = self._tried(rest)
                text.emit(text.say(opening + text.take(rest)))
                for problem in doubts(events, text.tools):
                    text.emit(problem)
                    text.settle()
                return
        self._again((yield from self._in_json.read_held(opening, self.calls)))

    def _value(self, lead: str) -> Parse[None]:
        """Read a brace or bracket after `lead`: a call, data or text."""
        if (opening := (yield from self.calls.bare_call(lead))) is not None:
            yield from self._judge(lead, opening, self.calls.read_bare(lead + opening), own=False)
        else:
            self._again((yield from self._in_json.value(lead, self.calls)))

    def _lone_close(self, written: str) -> Parse[None]:
        """A closing tag of reasoning without an opening one. After a thought in a channel it has no meaning."""
        self.text.gap = ""
        if self._marks.channel and self._thoughts_read:
            self.text.emit(Markup(written))
        else:
            self.text.lone_close(written)
        yield from self.text.skip_blanks()

    # --- own tags ---

    def own_tag(self, blanks: str, tag: str) -> Parse[None]:
        """A tag of the format itself: read immediately if it is certain, else with the rest of the answer."""
        text = self.text
        if holds_broken(text.before):
            text.emit(text.say(blanks + tag))  # it repeats a text in which the prompt has broken tags
        elif not (tag in self._formats.openings and text.tools.ordered and (yield from self._is_foreign(blanks, tag))):
            yield from self._judge(blanks, tag, self._marked(blanks, tag))

    def _marked(self, blanks: str, tag: str) -> Parse[None]:
        """Read an own tag that is meant, and the call or thought after it."""
        text = self.text
        if tag not in self._thoughts:
            if (other := (yield from self.calls.marked(blanks, tag))) is not None:
                self._use(other)
        elif (
            not (channel := self._marks.channel)
            or text.apart
            or text.at_line_start(blanks)
            or (yield from text.comes(channel))
        ):
            yield from self._thinks(blanks, tag)
        else:
            text.emit(text.say(blanks + tag))

    def _judge(self, blanks: str, opening: str, read: Parse[None], *, own: bool = True) -> Parse[None]:
        """Read a call after its `opening` if it is certain, else judge it with the rest of the answer. `own`: it is
        marked.
        """
        text = self.text
        if not _is_certain(text, blanks, own=own):
            yield from self._doubtful(blanks + opening, own=own)
            return
        source, trial, calls = text.source, text.trial, text.calls
        begin, first = source.at - len(opening), len(trial.events) if trial else 0
        yield from read
        if trial and trial.source is source and text.calls > calls:
            trial.spans.append(TrialSpan(begin, source.at, first, len(trial.events)))

    def _is_foreign(self, blanks: str, tag: str) -> Parse[bool]:
        """Whether an own tag begins another family's call, because the tags look the same; then it is read."""
        source = self.text.source
        inner = yield from read_blanks(source)
        own = source.text.startswith("`", source.at) or (yield from self.calls.may_begin_call(tag))
        source.unread(inner)
        if own:
            return False
        ways = yield from self._foreign.own_tag(blanks, tag)
        return bool(ways) and (yield from self._foreign_calls(blanks + tag, ways, own=True))

    def _foreign_calls(
        self, opening: str, ways: Sequence[Way], *, own: bool = False, strict: bool = False
    ) -> Parse[bool]:
        """Read calls in another family's markup after its `opening`, and the rest of the answer. False, and nothing is
        read, if there is no such call. `own`: the opening is the format's own; `strict`: see `ForeignInText.read`.
        """
        if not (yield from self._foreign.may_come(opening)):
            return False
        if self.text.trial is not None:
            return self._foreign.read(opening, ways, strict=strict)
        yield from self._doubtful(opening, own=own)
        return True

    # --- doubt ---

    def _doubtful(self, opening: str, *, own: bool) -> Parse[None]:
        """Hold the rest of an answer if its tags may be quoted, read it on trial, and judge its calls."""
        text = self.text
        rest, _ = yield from read_until(text.source, _EVERYTHING, _MAX_HELD)
        held = opening + rest
        before = (text.calls, text.apart, text.gap, text.before, copy(text.code))
        left, calls = self._foreign.left, copy(self.calls)
        trial = self._try(held)
        found = find_runs(held, trial.places(len(held)), before[3], text.tools.is_text)
        meant = _is_meant(trial, found, own=own, demanded=text.tools.choice != "auto")
        begin = trial.spans[found.runs[0][0]].begin if meant and found.runs else 0
        if meant and begin == (trial.spans[0].begin if trial.spans else 0):
            for event in trial.events:
                text.emit(event)
            return
        text.calls, text.apart, text.gap, text.before, text.code = before
        self._foreign.left = left
        self._use(calls)
        self._shows = True
        self._replay(held[:begin] if meant else held)
        self._shows = False
        if meant:
            for event in self._try(held[begin:]).events:
                text.emit(event)
            return
        for number in (number for run in found.runs for number in run):
            for problem in trial.doubts(number, text.tools):
                text.emit(problem)
                text.settle()

    def _try(self, held: str) -> Trial:
        """Read held text with all its tags taken as meant; no event is emitted."""
        text = self.text
        emit, outer = text.emit, text.trial
        text.trial = trial = Trial([], [])
        text.emit = trial.events.append
        self._replay(held)
        text.emit, text.trial = emit, outer
        return trial

    def _again(self, held: str) -> None:
        """Read held text again. If this is called while held text is read again, then after that text, not inside."""
        if self._replays and self.text.source.done:
            self._rest = held
        else:
            self._replay(held)

    def _replay(self, held: str) -> None:
        """Read held text again, now that its meaning is known, then the rest of it."""
        text = self.text
        outer, replays, self._replays = text.source, self._replays, True
        while held:
            self._rest = ""
            text.source = source = StreamReader(text.emit)
            source.push(held)
            source.end()
            if text.trial and text.trial.source is None:
                text.trial.source = source
            elif not self._shows:
                text.markup(source.blanks())
            for _ in self._parts():
                raise AssertionError("held text is whole")
            held = self._rest
        text.source, self._replays = outer, replays

    # --- thoughts ---

    def _thought(self, blanks: str, opening: str) -> Parse[None]:
        """A possible opening of a thought. Within a line it is one only if it is closed."""
        text, close = self.text, self._thoughts[opening]
        if not (text.apart or text.at_line_start(blanks)) and not (yield from self._is_closed(close)):
            text.emit(text.say(blanks + opening))
            return
        yield from self._thinks(blanks, opening)

    def _thinks(self, blanks: str, opening: str) -> Parse[None]:
        """Read a thought, and the white space on both sides."""
        self.text.leave_gap(blanks)
        self.text.emit(Markup(blanks + opening))
        yield from self._think(self._thoughts[opening])

    def _is_closed(self, close: str) -> Parse[bool]:
        """Whether this end of a thought occurs later; nothing is read."""
        if close in self._unclosed:
            return False
        thought, end = yield from read_until(self.text.source, Markers(close), _MAX_HELD)
        self.text.source.unread(thought + end)
        if not end:
            self._unclosed.add(close)
        return bool(end)

    def _think(self, close: str) -> Parse[None]:
        """Read reasoning to its end. A call in it counts only if the reasoning is never closed and ends with it."""
        text = self.text
        self._thoughts_read = self._thoughts_read or "empty"
        if self._marks.channel:
            yield from _skip_openers(text, next(iter(self._thoughts)), self._marks.channel)
        yield from text.skip_blanks()
        text.make, code, text.code = ReasoningDelta, text.code, CodeContext()
        before, text.before = text.before, ""
        apart, text.apart = text.apart, False
        self._is_first = not (before.strip() or text.calls)
        gap, text.gap = text.gap, "\n" if self._thoughts_read == "text" else ""
        while not text.source.done:
            blanks, marker = yield from emit_text_until(text.source, self._in_thought[close], text.say)
            if marker == close or marker in self._ends:
                text.emit(Markup(blanks + marker))
                break
            if marker and (yield from self._draft(blanks + marker, close)):
                break
        thought, is_all = text.before, len(text.before) < REMEMBERED
        self._thoughts_read = "text" if thought.strip() else self._thoughts_read
        if self._marks.control and (closer := lone_closer(thought, text.layout, is_all=is_all)):
            text.emit(Problem("control_tokens_stripped", "the end of a call in a thought without one", text=closer))
        text.make, text.code, text.before = ContentDelta, code, before
        text.apart = apart or text.apart
        text.gap = "" if text.apart else gap
        behind = yield from read_blanks(text.source)
        text.leave_gap(behind)
        text.markup(behind)

    def _draft(self, opening: str, close: str) -> Parse[bool]:
        """Hold a possible call in reasoning to the end of the reasoning. Returns whether that was reached."""
        text, source, marker = self.text, self.text.source, opening.strip()
        if marker in self._marks.end_thoughts:
            source.unread(opening)
            return True
        if marker in self._marks.structure and (yield from self.calls.structure(opening.removesuffix(marker), marker)):
            return False
        if marker in BRACES:
            source.at -= 1
            opening = opening.removesuffix(marker)
            if not ((yield from self.calls.bracket_names_call()) or (yield from self._in_json.names_call())):
                text.emit(text.say(opening + source.take(source.at + 1)))
                return False
        elif marker in self._marks.tags:
            opening += yield from read_blanks(source)
            if not (yield from self.calls.may_begin_call(marker)):
                text.emit(text.say(opening))
                return False
        held, end = yield from read_until(source, Markers(close, *self._ends), _MAX_HELD)
        held = opening + held
        tags = (*self._marks.tags, *self._formats.known_openings)
        problems: list[Problem] = []
        at = len(held)
        if end != close:
            at = _last_call(held, self.calls, text)
            problems = find_doubts(held, tags, text, self._tried) if at == len(held) else []
        elif self._is_first and (yield from is_over(source, self._ends)):
            at, problem = calls_at_end(held, _last_call(held, self.calls, text), tags, text, self._tried)
            problems = [problem] if problem else []
        if thought := held[:at].rstrip():
            text.emit(text.say(thought))
        text.markup(held[len(thought) : at])
        for problem in problems:
            text.emit(problem)
        if at < len(held):
            text.make, text.code, text.before = ContentDelta, CodeContext(), ""
            self._replay(held[at:])
        text.markup(end)
        return True

    def _tried(self, part: str) -> Sequence[Event]:
        """The events of a part of an answer, read as if it were all of it."""
        text = self.text
        left, calls = self._foreign.left, copy(self.calls)
        before = (text.calls, text.code, text.before, text.make, text.apart, text.gap)
        text.make, text.code, text.before = ContentDelta, CodeContext(), ""
        events = self._try(part).events
        self._use(calls)
        self._foreign.left = left
        text.calls, text.code, text.before, text.make, text.apart, text.gap = before
        return events


def _last_call(held: str, calls: CallReader, text: AnswerText) -> int:
    """The index of the calls at the end of unclosed reasoning; the length of the text if there is no call."""
    if (own := calls.last_call(held)) is not None:
        return own
    at = len(held)
    for piece in reversed(recover(held, text.tools, before=text.before)):
        if not isinstance(piece, RecoveredCall):
            break
        at = held.rfind(piece.text, 0, at) if piece.text else at
    return at


def _is_certain(text: AnswerText, blanks: str, *, own: bool) -> bool:
    """Whether a possible call is certain, without a look at the rest of the answer."""
    return (
        text.trial is not None
        or text.apart
        or not text.tools.ordered
        or text.tools.choice != "auto"
        or (
            own
            and text.control
            and begins_apart(text.before + blanks)
            and not is_showing(text.before, text.tools.names)
        )
        or not text.before.strip()
        or is_announcement(text.before + blanks, text.tools.names)
    )


def _skip_openers(text: AnswerText, opening: str, channel: str) -> Parse[None]:
    """Skip openers of a thought that were written twice, and the name of its channel."""
    yield from text.skip_blanks()
    while (yield from text.comes(opening)):
        text.emit(Markup(text.take(opening)))
    yield from text.skip(channel)


def _is_meant(trial: Trial, found: Runs, *, own: bool, demanded: bool) -> bool:
    """Whether the calls of held text are meant, for certain. `own`: the tag that opens it is the format's; `demanded`:
    the request demands a call.
    """
    spans = [trial.spans[number] for run in found.runs for number in run]
    if not (demanded or all(span.is_sure for span in spans)):
        return not trial.spans
    names = {event.name for event in trial.events if isinstance(event, CallStarted)}
    own = own and all(span.own for span in spans)
    return not trial.spans or verdict(found, own=own, demanded=demanded, names=names) == "certain"
