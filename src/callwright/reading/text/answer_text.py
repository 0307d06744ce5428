"""The state of an answer while it is read: its source, the sink of its events, and the end of the text so far.

The reader of the answer and the readers of calls share one. It knows no format.
"""

import re
from collections.abc import Callable
from typing import Final

from callwright.calls.toolset import Toolset
from callwright.events import CallStarted, ContentDelta, Event, Markup, Problem, TextEvent
from callwright.layout.calls import CallLayout
from callwright.reading.text.code_context import CodeContext
from callwright.reading.text.marks import is_token
from callwright.reading.text.trial import Trial
from callwright.streaming.reader import Parse, StreamReader, comes_next, read_blanks

# A call is judged by this many characters before it: "I'll look that up."
REMEMBERED: Final = 400
_ANY_TAG: Final = re.compile(r"[<\[][^<>\[\]]*[>\]]")


class AnswerText:
    """One answer. `calls` counts its calls; `before` is the end of its text so far, `begun` the beginning.

    `apart`: a call is between the text so far and the next text. `gap`: the white space between them if it is a
    thought. `make` makes the event of a text, `trial` is set while held text is read as if its tags were meant.
    `unread` is the problem of a possible call that was not read, `is_settled` whether one was reported. `has_strays`:
    there are control tokens without a call. `control`: the format's tags are control tokens. `layout` is that of its
    calls. `alone`: calls of other formats are not searched for.
    """

    def __init__(
        self, source: StreamReader, tools: Toolset, layout: CallLayout | None = None, *, alone: bool = False
    ) -> None:
        self.source = source
        self.emit: Callable[[Event], object] = source.emit
        self.tools = tools
        self.layout = layout
        self.alone = alone
        self.control = True
        self.calls = 0
        self.before = ""
        self.begun = ""
        self.apart = False
        self.gap = ""
        self.code = CodeContext()
        self.make: Callable[[str], TextEvent] = ContentDelta
        self.trial: Trial | None = None
        self.unread: Problem | None = None
        self.is_settled = False
        self.has_strays = False
        self._said = ""  # the end of the text before it

    # --- text ---

    def say(self, text: str) -> TextEvent:
        """The event for a text. Content before and after a call is separated by a blank line."""
        if self.apart:
            if text.isspace():
                return Markup(text)
            self.apart = False
            if self.before:
                said = text.lstrip()
                self.markup(text[: len(text) - len(said)])
                text = f"\n\n{said}"
        self.code.feed(text)
        self.before = (self.before + text)[-REMEMBERED:]
        if len(self.begun) < REMEMBERED and self.make is ContentDelta:
            self.begun += text[:REMEMBERED]
        if self.gap:
            text, self.gap = self.gap + text, ""
        return self.make(text)

    def markup(self, text: str) -> None:
        """Emit markers of the format, which are not content, if there are any."""
        if text:
            self.emit(Markup(text))

    def leave_gap(self, blanks: str) -> None:
        """Note white space next to markup. That of one side is preserved between the words, preferably a line break."""
        if self.apart or not self.before or (self.gap and ("\n" in self.gap or "\n" not in blanks)):
            return
        self.before = self.before.removesuffix(self.gap) + blanks
        self.code.feed(blanks)
        self.gap = blanks

    def at_line_start(self, blanks: str) -> bool:
        """Whether a line begins after these blanks."""
        return "\n" in blanks or self.code.at_line_start

    def call_begins(self) -> None:
        """Note that a call begins here: text after it is separate, and reasoning may begin again."""
        self.apart, self.gap = True, ""
        # If only tags are between them, this is the call that was not read.
        if self.unread is not None and not _ANY_TAG.sub("", self.before.removeprefix(self._said)).strip():
            self.unread = None

    def start_call(self, name: str, id_: str | None = None) -> int:
        """Start a call of this tool, with the id that the model gave it. Returns the number of the call."""
        self.call_begins()
        index = self.calls
        self.calls += 1
        self.emit(CallStarted(index, name, id=id_))
        return index

    def note_unread(self, problem: Problem) -> None:
        """Note the problem of a possible call here that is not read."""
        self.unread, self._said = problem, self.before

    def settle(self) -> None:
        """The call that was not read has been reported."""
        self.unread, self.is_settled = None, True

    # --- reading ---

    def skip_blanks(self) -> Parse[None]:
        """Read white space that belongs to the format."""
        self.markup((yield from read_blanks(self.source)))

    def held_blanks(self) -> Parse[str]:
        """Read white space that may belong to the format or to the text."""
        return read_blanks(self.source)

    def comes(self, literal: str) -> Parse[bool]:
        """Whether a literal is next; nothing is read."""
        return comes_next(self.source, literal)

    def take(self, literal: str) -> str:
        """Read the literal that is next."""
        return self.source.take(self.source.at + len(literal))

    def skip(self, literal: str) -> Parse[None]:
        """Read a marker if it is next; a partial control token at the end of the answer is not content."""
        source = self.source
        while source.more(len(literal)) and literal.startswith(source.text[source.at :]):
            yield
        if source.text.startswith(literal, source.at):
            self.emit(Markup(self.take(literal)))
        elif self.control and source.ended and literal.startswith(source.text[source.at :]):
            self.markup(source.take(len(source.text)))

    # --- tags without a call ---

    def empty_call(self, opening: str, closer: str) -> None:
        """A call's `opening` followed immediately by its `closer`: nothing to show."""
        self.emit(Markup(opening + self.take(closer)))
        self.emit(Problem("malformed_call", "a call with nothing in it"))

    def lone_end(self, blanks: str, tag: str) -> Parse[None]:
        """A closing tag without its opening one: one too many after a call, else a mention, or a stray token."""
        if self.apart:
            self.emit(Markup(blanks + tag))
            self.emit(Problem("markup_repaired", f"{tag} closes nothing", call=self.calls - 1 if self.calls else None))
            yield from self.skip_blanks()
        else:
            yield from self.no_call(blanks, tag)

    def no_call(self, blanks: str, tag: str) -> Parse[None]:
        """A tag without a call: a word that was mentioned, or a stray token."""
        if self.control and is_token(tag):
            yield from self.stray(blanks, tag)
        else:
            self.emit(self.say(blanks + tag))

    def stray(self, blanks: str, token: str) -> Parse[None]:
        """A control token without a call: not content, unless it is a word of a sentence."""
        behind = yield from read_blanks(self.source)
        if blanks and not self.at_line_start(blanks) and self._is_word(token, behind):
            self.emit(self.say(blanks + token + behind))
            return
        self.has_strays = True
        self.leave_gap(blanks)
        self.markup(blanks)
        self.emit(Problem("control_tokens_stripped", "a token of a call where no call is", text=token))
        self.leave_gap(behind)
        self.markup(behind)

    def stop_token(self, token: str) -> Parse[None]:
        """A stop token is not content at the end of the answer; inside a line of text it is only mentioned."""
        behind = yield from read_blanks(self.source)
        self.emit(self.say(token + behind) if self._is_word(token, behind) else Markup(token + behind))

    def _is_word(self, token: str, blanks: str) -> bool:
        """Whether text continues on the line after a token and these blanks: then the token is a word of it."""
        return "\n" not in blanks and self.source.ahead(1) not in ("", "<", token.lstrip()[0])

    def lone_close(self, written: str) -> None:
        """A closing tag of reasoning alone: all text before it was reasoning, unless it held a call."""
        self.emit(Markup(written))
        if self.before and not self.calls:
            detail = f"{written.strip()} without its opener: what stood before it was thought"
            self.emit(Problem("unopened_reasoning", detail))
            self.before = ""
            self.code = CodeContext()
