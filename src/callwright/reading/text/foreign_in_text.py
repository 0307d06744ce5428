"""Calls in the markup of another family, in the text of an answer: read with all that follows them, and judged."""

import html
import re
from collections.abc import Sequence
from typing import Final

from callwright.calls.toolset import Toolset
from callwright.events import Problem
from callwright.free_text.intent import find_runs, verdict
from callwright.free_text.recover import shown_problems
from callwright.reading.text.answer_text import REMEMBERED, AnswerText
from callwright.reading.text.foreign import (
    Formats,
    Reading,
    Way,
    names_tool,
    numbered_from,
    read_foreign,
    takes_as_much,
    wrong_with,
)
from callwright.reading.text.trial import TrialSpan
from callwright.schema.keywords import properties
from callwright.streaming.reader import Parse

# The distance within which the names of a tool and of a parameter must follow, and the number of searches per answer.
_MAX_NAME_AHEAD: Final = 200
_MAX_CALL_AHEAD: Final = 600
_MAX_FOREIGN: Final = 8
# A code block with which an answer begins.
_FENCE: Final = re.compile(r"\s*(?P<ticks>```|~~~)[\w+-]*[ \t]*\n\s*")
# A line that begins with tags, as formats have them around calls, and the word after them; also in a fence or a list.
_TAGGED: Final = re.compile(
    r"""(?:\A|\n)\s*+(?:(?:(?P<fence>```\w*)|[-*]{1,2})\s*+)?"""
    r"""(?:\]?(?:<[^<>\n]{1,80}>|\[[A-Z_ -]{3,40}\])\[?\s*+(?:\w++\s*+(?=[<\]])|\w++ (?=\w++=))?){1,12}"""
    r"""[\[{\s]*(?:["']?\w{2,20}["']?\s*[:=]\s*(?:["'][\w.-]*["']\s*,\s*)?){0,3}["']?[\w.-]*"""
)
_WORD: Final = re.compile(r"[\w.-]+")
_KEY: Final = re.compile(r"""([\w.-]++)\s*+["'=:<>]""")
# The characters of tags and JSON, by those that look like them.
_WIDE: Final = str.maketrans("＜＞", "<>")
_QUOTES: Final = str.maketrans("“”", '""')
# Characters of lookahead for a header at the beginning of an answer.
_MAX_HEADER: Final = 300


class ForeignInText:
    """Reads foreign calls in the text of an answer. `left`: the number of searches left."""

    def __init__(self, text: AnswerText, formats: Formats) -> None:
        self._text = text
        self._formats = formats
        self.left = 0 if text.alone else _MAX_FOREIGN
        self._own = text.layout

    def header(self, own: tuple[str, ...], begins: tuple[str, ...] = ()) -> Parse[Sequence[Way]]:
        """In which ways calls with which the answer begins may be read, that have a header and no tag before it; none
        if it begins with a tag of its `own`, or as its own calls do: with one of `begins`, if there are any. Nothing is
        read.
        """
        source, tools = self._text.source, self._text.tools
        header = ""
        ways: Sequence[Way] = ()
        firsts = self._formats.header_firsts(tools.names) if self.left else ""
        while firsts:
            begin = source.ahead(_MAX_HEADER).lstrip()
            if begin and (begin[0] not in firsts or begin.startswith((*own, *begins))):
                break
            header, ways, may_be = self._formats.header_at(begin, tools)
            if header or not may_be or not source.more(_MAX_HEADER):
                break
            yield
        # A format whose own calls begin so reads them itself.
        if not header or (not begins and any(way.form.layout == self._own and not way.lead for way in ways)):
            return ()
        return ways

    def own_tag(self, blanks: str, tag: str) -> Parse[Sequence[Way]]:
        """The ways to read calls after a tag of the format itself that is not followed by one of its calls."""
        ways = [way for way in self._formats.openings[tag] if way.is_sure and way.form.layout != self._own]
        source = self._text.source
        while not ways and source.more(_MAX_CALL_AHEAD):
            yield
        if not ways and self.left:
            self._note(blanks, tag + source.ahead(_MAX_CALL_AHEAD), None)
        return ways

    def may_come(self, opening: str) -> Parse[bool]:
        """Whether to look for foreign calls after this opening."""
        text = self._text
        source = text.source
        while source.more(_MAX_NAME_AHEAD):
            yield
        ahead = source.ahead(_MAX_NAME_AHEAD)
        begins = not text.before or text.at_line_start(opening)
        if not self.left or not (begins or any(name in ahead for name in text.tools.names)):
            return False
        self.left -= 1
        return True

    def read(self, opening: str, ways: Sequence[Way], *, strict: bool) -> bool:
        """Read calls after an `opening` on trial. Without any it is False, and nothing is read. `strict`: text that
        cannot be read without any problem is read in another way.
        """
        text = self._text
        ways = [way for way in ways if way.lead or way.form.layout != self._own]
        blanks = opening[: len(opening) - len(opening.lstrip())]
        begin = text.source.at - len(opening) + len(blanks)
        written = text.source.text[begin:]
        reading = read_foreign(written, ways, text.tools)
        if reading is None or not (reading.good and reading.end) or (strict and (reading.bad or reading.problems)):
            self._note(blanks, written, reading)
            return False
        self._tell(reading, blanks, begin)
        return True

    def _tell(self, reading: Reading, blanks: str, begin: int) -> None:
        """Emit the calls that were read at this place, after some `blanks`."""
        text = self._text
        text.markup(blanks)
        trial = text.trial
        assert trial is not None  # see `AnswerReader`
        first = len(trial.events)
        text.emit(Problem("foreign_format", f"a call as {reading.way.form.name} writes it", call=text.calls))
        for event in numbered_from(reading.events, text.calls):
            text.emit(event)
        if trial.source is text.source:
            span = TrialSpan(
                begin, begin + reading.end, first, len(trial.events), own=False, is_sure=reading.way.is_sure
            )
            trial.spans.append(span)
        text.source.at = begin + reading.end
        text.calls += reading.good + reading.bad
        text.call_begins()

    def _note(self, blanks: str, written: str, reading: Reading | None) -> None:
        """Note the problem of a text that begins like a call but is not one. If it may only be shown, it is not
        confirmed with the model.
        """
        text = self._text
        begins = not text.before or text.at_line_start(blanks)
        problem = wrong_with(written, reading, text.tools, begins=begins)
        if text.unread is not None or problem is None:
            return
        end = reading.end if reading is not None else len(written.rstrip())
        runs = find_runs(written, [(0, end)], text.before, text.tools.is_text)
        meant = verdict(runs, demanded=text.tools.choice != "auto", names=text.tools.names)
        if meant == "ambiguous" and problem.kind != "unknown_tool":
            problem = Problem("incomplete_arguments", f"{problem.detail}; it may only be shown")
        if meant != "text":
            text.note_unread(problem)

    def name_in(self, said: str) -> None:
        """Name a possible call in an answer that is text, for a format that looks for none in it."""
        text = self._text
        text.begun, text.before = said[:REMEMBERED], said[-REMEMBERED:]
        for problem in shown_problems(said, text.tools) if self.left else ():
            text.emit(problem)
            text.settle()
        if text.tools.ordered:
            self.tell_unread()

    def tell_unread(self) -> None:
        """At the end of an answer, name calls that could not be read: without their tokens, or of unknown tools."""
        text = self._text
        said = text.before.lstrip()
        if self.left and not text.calls and said and (ways := self._formats.unoffered_header(said, text.tools)):
            reading = read_foreign(said, ways, text.tools)
            if reading is not None and (reading.way.is_sure or takes_as_much(reading, text.tools)):
                self._note("", said, reading)
        if self.left and not (text.calls or text.unread or text.is_settled):
            text.unread = self._name_unmarked()
        if text.unread is not None:
            self._text.emit(text.unread)

    def _name_unmarked(self) -> Problem | None:
        """The problem of an answer that is, or ends with, what may be a call without its marks."""
        text, formats = self._text, self._formats
        if name := formats.stripped_call(text.begun, text.before, text.tools):
            return Problem("malformed_call", f"what may be a call of {name!r}, without its control tokens")
        for said in (text.begun, text.before):
            name, is_fenced = _tagged_call(said, text.tools)
            if is_fenced and not (text.code.in_fence or text.before.rstrip().endswith(("```", "~~~"))):
                return Problem("ambiguous_call", f"what may be a call of {name!r} in a code block, with text after it")
            if name:
                return Problem("malformed_call", f"what may be a call of {name!r}, in tags of no known format")
        if any((plain := _plain(said)) != said and _is_call(plain, text.tools) for said in (text.begun, text.before)):
            return Problem("malformed_call", "what may be a call with other characters in place of its quotes")
        if text.has_strays and (name := names_tool(text.begun, text.tools, begins=False)):
            return Problem("malformed_call", f"what may be a call of {name!r}, some of whose tokens are missing")
        fence = _FENCE.match(text.begun)
        if fence and text.before.rstrip().endswith(fence["ticks"]):
            inner = text.begun[fence.end() :]
            if (
                formats.stripped_call(inner, "", text.tools)
                or formats.header_at(inner, text.tools)[0]
                or _is_call(inner, text.tools)
            ):
                return Problem("malformed_call", "what may be a call in a code block of another language")
        return None


def _plain(said: str) -> str:
    """A text without escapes, and with the usual characters for those that look alike."""
    said = html.unescape(said).translate(_WIDE)
    return said.replace('\\"', '"') if '"' in said else said.translate(_QUOTES)


def _is_call(said: str, tools: Toolset) -> bool:
    """Whether a text, of which the end may be missing, has a call in JSON that is not only shown."""
    return bool(shown_problems(said, tools))


def _tagged_call(said: str, tools: Toolset) -> tuple[str, bool]:
    """The tool that a text names in or after tags at the beginning of a line, before one of its parameters, or `""`;
    and whether the tags begin a code block. They may be misspelled or escaped: `<tool_cal>`, `&lt;tool_call&gt;`.
    """
    said = _plain(said)
    for line in _TAGGED.finditer(said):
        for word in _WORD.finditer(said, line.start(), line.end()):
            tool = tools.get(tools.resolve_name(word[0]))
            if tool and not properties(tool.parameters).keys().isdisjoint(_KEY.findall(said, word.end())):
                return tool.name, bool(line["fence"])
    return "", False
