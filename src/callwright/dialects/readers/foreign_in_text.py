"""Calls in the markup of another family, in the text of an answer: read with all that follows them, and judged."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from callwright.dialects.readers.foreign import WholeText, counted_from, read_foreign
from callwright.dialects.readers.trial import doubts
from callwright.events import CallStarted, Problem
from callwright.free_text.intent import find_runs, verdict
from callwright.stream_reader import Markers, Parse, read_until

if TYPE_CHECKING:
    from callwright.dialects.readers.prose import ProseReader

__all__ = ["ForeignInText"]

# The name of a tool follows so soon; and so often is looked for foreign calls in one answer.
_MAX_NAME_AHEAD: Final = 200
_MAX_FOREIGN: Final = 4
_MAX_HELD: Final = 4_194_304
_EVERYTHING: Final = Markers()


class ForeignInText:
    """Reads foreign calls for the reader of an answer. `left`: so often may still be looked for some."""

    def __init__(self, text: "ProseReader") -> None:
        self._text = text
        self.left = 0 if isinstance(text.source, WholeText) else _MAX_FOREIGN

    def calls(self, opening: str, dialects: Sequence[str]) -> Parse[bool]:
        """Read calls in another family's markup, and what follows them. False, and nothing is read, if there are
        none.
        """
        text = self._text
        source, tools = text.source, text.tools
        while source.more(_MAX_NAME_AHEAD):
            yield
        ahead = source.ahead(_MAX_NAME_AHEAD)
        if not self.left or not any(name in ahead for name in tools.names):
            return False
        self.left -= 1
        held, _ = yield from read_until(source, _EVERYTHING, _MAX_HELD)
        written = opening.lstrip() + held
        found = read_foreign(written, dialects, tools)
        if found is None:
            source.unread(held)
            return False
        runs = find_runs(written, [(0, len(written) - len(found.behind))], text.before, tools.is_text)
        meant = verdict(runs, demanded=tools.choice != "auto", names=tools.names)
        if meant != "certain":
            text.show(opening + held)
            for problem in doubts(found.events, tools) if meant == "ambiguous" else ():
                text.emit(problem)
            return True
        text.emit(Problem("foreign_format", f"a call as {found.dialect} writes it", call=text.calls))
        text.markup(opening[: len(opening) - len(opening.lstrip())])
        for event in counted_from(found.events, text.calls):
            text.emit(event)
        text.calls += sum(isinstance(event, CallStarted) for event in found.events)
        text.call_begins()
        if found.behind:
            text.emit(text.say(found.behind))
        return True
