"""Reads an output by its template: text of each field as it streams, calls by `calls`.

Output that departs from its template is read like the other formats: text outside of fields is content, a call in a
thought that is never closed is a call, a marker in code is a mention.
"""

from collections.abc import Callable
from typing import Final

from callwright.calls.toolset import Toolset
from callwright.events import ContentDelta, Event, Markup, Problem, ReasoningDelta
from callwright.reading.text.code_context import CodeContext
from callwright.response_template.calls import CallReader, hold
from callwright.response_template.declaration import Field, Role
from callwright.response_template.plan import Mark, ReadingPlan
from callwright.response_template.watch import Found
from callwright.streaming.reader import Parse, StreamReader, ending_blanks

_EVENTS: Final[dict[Role, Callable[[str], Event]]] = {"content": ContentDelta, "reasoning": ReasoningDelta}


class TemplateReader:
    """Reads one answer."""

    def __init__(self, source: StreamReader, tools: Toolset, plan: ReadingPlan) -> None:
        self._source = source
        self._emit = source.emit
        self._tools = tools
        self._plan = plan
        self._calls = 0
        self._said: set[Role] = set()
        self._code = CodeContext()

    def read(self, start: str) -> Parse[None]:
        """Read the whole answer. `start`: `reasoning` when the prompt left it open."""
        thought = next(self._plan.template.of("reasoning"), None)
        begins = True
        if start == "reasoning" and thought is not None:
            yield from self._skip_again(thought)
            yield from self._field(thought)
            begins = False
        while begins or not self._source.done:
            yield from self._outside(start=begins)
            begins = False

    def _skip_again(self, field: Field) -> Parse[None]:
        """Skip the beginning of a thought if the model repeats it after its prompt."""
        assert field.open is not None
        source, literals = self._source, field.open.texts
        longest = max(map(len, literals), default=0)
        source.markup(source.blanks())
        while source.more(longest) and any(text.startswith(source.ahead(longest)) for text in literals):
            yield
            source.markup(source.blanks())
        again = next((text for text in literals if source.text.startswith(text, source.at)), "")
        source.markup(source.take(source.at + len(again)))

    def _outside(self, *, start: bool) -> Parse[None]:
        """Text outside of fields, up to the start of the next field and through it."""
        text = _Text(self._say, self._source, self._plan.template.implicit)
        watching = self._plan.outside.begin(start=start)
        while True:
            said, found = watching.scan(self._source)
            text.say(said)
            if found is None:
                if self._source.done:
                    text.end()
                    return
                yield
                continue
            kind, field = found.kind
            if (kind == "lone" or (field and field.role == "calls")) and self._is_mention(kind, field, text.held):
                text.say(found.text)
            elif kind == "open" and field and field.role == "calls":
                refused = yield from self._call(field, found)
                if not refused:
                    text.end()
                    return
                text.say(refused)
            else:
                text.end()
                self._source.markup(found.text)
                if kind == "open" and field:
                    yield from self._field(field)
                elif kind == "lone":
                    self._lone(field, found.text)
                return
            watching = self._plan.outside.begin()

    def _is_mention(self, kind: str, field: Field | None, blanks: str) -> bool:
        """Whether a marker is only mentioned: in code, or the end of a call without a call."""
        if self._code.inside(blanks):
            return True
        return kind == "lone" and field is not None and field.role == "calls" and not self._calls

    def _lone(self, field: Field | None, written: str) -> None:
        """The end of a thought without its beginning: the text before it was a thought, unless it contained a call."""
        if field is not None and field.role == "reasoning" and "content" in self._said and not self._calls:
            detail = f"{written.strip()} without its opener: what stood before it was thought"
            self._emit(Problem("unopened_reasoning", detail))
            self._said.discard("content")
            self._code = CodeContext()

    def _field(self, field: Field) -> Parse[None]:
        """A field of text, up to its end."""
        source, watch = self._source, self._plan.inside[field.name]
        text, watching = _Text(self._say, source, field), watch.begin()
        while True:
            said, found = watching.scan(source)
            text.say(said)
            if found is None:
                if source.done:
                    text.end()
                    return
                yield
                continue
            if found.kind.kind == "open":
                if (yield from self._draft(field, found, text)):
                    return
                watching = watch.begin()
                continue
            text.end()
            self._emit(Markup(found.text))
            return

    def _draft(self, thought: Field, opening: Found[Mark], text: "_Text") -> Parse[bool]:
        """A possible call in a thought: a draft if the thought continues to its end. True when it is over."""
        held, close = yield from hold(self._source, self._plan.closes[thought.name])
        if close is None and self._source.ended:
            text.end()
            self._source.unread(opening.text + held)
            return True
        text.say(opening.text + held)
        if close is None:
            return False
        text.end()
        self._emit(Markup(close.text))
        return True

    def _call(self, field: Field, opening: Found[Mark]) -> Parse[str]:
        """A field of calls; returns its text if it contains none."""
        reader = CallReader(self._source, self._tools, self._plan, field, self._calls)
        yield from reader.read(opening)
        self._calls = reader.calls
        return reader.refused

    def _say(self, field: Field | None, text: str, *, begins: bool) -> None:
        """Emit text of a field; outside all fields it is content. If it `begins`, it is separated from earlier text."""
        role = field.role if field else "content"
        make = _EVENTS.get(role)
        if make is None:
            self._source.markup(text)
            return
        if begins and role in self._said:
            text = ("\n\n" if field is None or field.join is None else field.join) + text
        if role == "content":
            self._code.feed(text)
        self._emit(make(text))
        self._said.add(role)


class _Text:
    """The text of one field. If the field is stripped, the white space at its ends is structure."""

    def __init__(self, say: Callable[..., None], source: StreamReader, field: Field | None) -> None:
        self.held = ""
        self._say = say
        self._source = source
        self._field = field
        self._strips = field is None or field.args.strip
        self._begun = False

    def say(self, text: str) -> None:
        """Add text."""
        if self._strips:
            if not self._begun:
                bare = text.lstrip()
                self._source.markup(text[: len(text) - len(bare)])
                text = bare
            text = self.held + text
            self.held = ending_blanks(text)
            text = text[: len(text) - len(self.held)]
        if text:
            self._say(self._field, text, begins=not self._begun)
            self._begun = True

    def end(self) -> None:
        """End the field."""
        self._source.markup(self.held)
