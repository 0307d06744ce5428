"""Calls in the markup of another model family than the one being read: models write markup from their training, and
servers leave in the text what their own parsers refused.

How calls may begin is derived from the layouts of all formats (`Formats`), at the first answer for which tools are
offered. A text with such a beginning is read as each of these formats; the best reading wins. Its calls are used if at
least one is complete, names an offered tool exactly and has arguments that fit. Otherwise the problem is reported.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Final

import msgspec

from callwright.calls.toolset import Toolset
from callwright.events import ArgumentsDelta, CallEnded, CallStarted, ContentDelta, Event, Markup, Problem
from callwright.layout.calls import CallLayout, JsonArguments, Slot, TaggedArguments, filled, object_of, pieces_of
from callwright.reading.text.answer_text import AnswerText
from callwright.reading.text.trial import fitted_calls
from callwright.schema.keywords import properties
from callwright.streaming.reader import Parse, StreamReader
from callwright.tolerant_json.markers import MARKS

# A tag of a layout: `<tool_call>`, `<function=` and `<invoke name="` before a name (`\0`),
# `[TOOL_CALLS]`, `functools[`, and a word that begins a layout, as in `Action:`.
_TAG: Final = re.compile(r'(?:\]<\]|(?<!\[)<)[^\s<>\0/][^<>\0]*?(?:>|=(?="?\0)"?)|\[[A-Z_]+\]|\w+\[(?=\{)|\A[A-Z]\w+:')
# This many characters after the name show that it is in a header.
_HEADER_TAIL: Final = 2
_NAME: Final = re.compile(r"[^\s<>(){}\[\]:|=\"'`,]*")
# The latest reading is cached for texts of up to this many characters.
_MAX_KEPT: Final = 65_536
# The most formats that one text is read as.
_MAX_WAYS: Final = 9
# The most characters between the opening of a call and its tool's name.
_MAX_NAME: Final = 200
# A control token of a layout, the text of a placeholder, and the marks of the two placeholders that are known.
_TOKEN: Final = re.compile(r"<[^<>\0\2]*>|\[[A-Z_]+\]|\]<\][^<>\0\2]*\[>\[")
_READ_AS_JSON = re.compile(r'"(?:name|tool)"').search
_CLOSER: Final = re.compile(r"</[^<>\0]+>")
_ANY_SLOT: Final = r'[^"\s]{0,40}'
_MARK: Final = re.compile(r"[\0\2\3]")
# The most characters between a tool's name and a parameter's name in a call.
_MAX_PARAMETER: Final = 400


class Form(msgspec.Struct, frozen=True, eq=False):
    """A format of calls, of a dialect or of none. `read` reads an answer in it. `is_sure`: its openings mean nothing
    else.
    """

    name: str
    layout: CallLayout
    read: Callable[[AnswerText, str], Parse[None]]
    is_sure: bool = True


class Way(msgspec.Struct, frozen=True, eq=False):
    """A form that may begin with some opening. `lead` are the tags of the form that were left out before that."""

    form: Form
    is_sure: bool
    lead: str = ""


class Reading(msgspec.Struct, frozen=True):
    """The calls with which a text begins, as events, read in one way up to `end`, at which other words follow. `good`
    is the number of valid ones, `bad` of the others.
    """

    way: Way
    events: Sequence[Event]
    end: int
    good: int
    bad: int

    @property
    def problems(self) -> int:
        """How many problems there are."""
        return sum(isinstance(event, Problem) for event in self.events)

    @property
    def arguments(self) -> str:
        """The arguments of the first call."""
        return "".join([event.text for event in self.events if isinstance(event, ArgumentsDelta) and not event.index])

    @property
    def worth(self) -> tuple[int, int, int]:
        """Sort key for choosing the better of two readings."""
        return self.good, -self.bad, -self.problems


# --- how calls begin ---


class Formats:
    """All known formats, returned by `load`, and how their calls may begin, cached on first use."""

    def __init__(self, load: Callable[[], Sequence[Form]]) -> None:
        self._load = load
        self.foreign_to = lru_cache(maxsize=256)(self._foreign_to)
        self.header_firsts = lru_cache(maxsize=64)(self._header_firsts)

    @cached_property
    def _forms(self) -> Sequence[Form]:
        return self._load()

    @cached_property
    def openings(self) -> Mapping[str, tuple[Way, ...]]:
        """By the opening of a call or of a block of calls: the ways to read it."""
        found: dict[str, list[Way]] = {}
        for form in self._forms:
            for tag in (*_tags(form.layout), *form.layout.variants):
                found.setdefault(tag, []).append(Way(form, form.is_sure and not tag.endswith(":")))
        return {tag: tuple(ways) for tag, ways in sorted(found.items())}

    @cached_property
    def known_openings(self) -> tuple[str, ...]:
        """Openings of calls of any format."""
        return tuple(dict.fromkeys((*MARKS, *self.openings)))

    def _foreign_to(self, tags: tuple[str, ...]) -> tuple[str, ...]:
        """The openings of calls that are not a format's own tags, and not a longer or shorter form of one."""
        return tuple(
            mark
            for mark in self.known_openings
            if not any(mark.startswith(tag) or tag.startswith(mark) for tag in tags)
        )

    @cached_property
    def _headers(self) -> Mapping[str, Mapping[str, tuple[Way, ...]]]:
        """The headers of calls without the tags before them: the text before the name of the tool, then the beginning
        of the text after it, without white space, and the ways to read that.
        """
        found: dict[str, dict[str, tuple[Way, ...]]] = {}
        for form in self._forms:
            layout = form.layout
            for begin in (
                dict.fromkeys((layout.open + layout.begin, layout.begin)) if _has_plain_name(layout.begin) else ()
            ):
                written = _head(begin).partition("\0")[0]
                tags = list(_TAG.finditer(written + "\0"))
                at = tags[-1].end() if tags else 0
                lead, before = written[:at], written[at:].lstrip()
                if lead.endswith(("=", '"')) or '"' in before:
                    continue  # an attribute holds the name
                tail = "".join(_behind_name(layout).split())[:_HEADER_TAIL]
                for word in dict.fromkeys((before, before.rpartition(" ")[2])):
                    way = Way(form, form.is_sure and not lead and "<" in tail, lead + before.removesuffix(word))
                    tails = found.setdefault(word, {})
                    tails[tail] = (*tails.get(tail, ()), way)
        return found

    def _header_firsts(self, names: tuple[str, ...]) -> frozenset[str]:
        """The first characters of a header of a call of one of these tools."""
        return frozenset(before[0] for before in self._headers if before) | frozenset(name[0] for name in names if name)

    def header_at(self, begin: str, tools: Toolset) -> tuple[str, tuple[Way, ...], bool]:
        """The header of a call of one of these tools with which a text begins, and the ways to read it; else whether
        there may be one when more of the text is there.
        """
        may_be = False
        for before, tails in self._headers.items():
            if not begin.startswith(before):
                may_be = may_be or before.startswith(begin)
                continue
            name = _NAME.match(begin, len(before)).group()  # type: ignore[union-attr]  # matches always
            rest = begin[len(before) + len(name) :]
            behind = "".join(rest.split())
            if name in tools and (found := [ways for tail, ways in tails.items() if behind.startswith(tail)]):
                return before + name, found[0], False
            if name in tools:
                may_be = may_be or any(tail.startswith(behind) for tail in tails)
            if not rest:
                may_be = may_be or any(known.startswith(name) for known in tools.names)
        return "", (), may_be

    @cached_property
    def _stripped_calls(self) -> tuple[str, ...]:
        r"""Patterns of the start of calls whose control tokens a server removed, from the name of the tool (`\0`) to
        that of the first parameter (`\2`) or the first member of an object (`\3`), derived from the layouts.
        """
        found = set[str]()
        for form in self._forms:
            layout = form.layout
            match layout.arguments:
                case JsonArguments():
                    first = " {\3"
                case TaggedArguments(begin=begin):
                    first = _with_marks(begin, "key", "\2").partition("\2")[0] + "\2"
                case _:
                    continue
            written = _with_marks(layout.open + layout.begin, "name", "\0") + first
            left = _TOKEN.sub("", written).strip()
            in_a_tag = "<" in left.partition("\0")[0]
            if left != written.strip() and not in_a_tag and not _READ_AS_JSON(left):
                found.add("".join(map(_pattern_of, re.split(r"(\s+|\x01)", left))))
        return tuple(sorted(found))

    def stripped_call(self, begin: str, end: str, tools: Toolset) -> str:
        """The tool with whose call an answer begins, or ends on lines of its own, that has lost its control tokens;
        `""` for none.
        """
        last = end.rstrip().endswith(("}", ">", "]"))  # prose after it shows it
        for tool in tools:
            if tool.name not in begin and tool.name not in end:
                continue
            keys = "|".join(map(re.escape, properties(tool.parameters))) or "(?!)"
            named = {"\0": re.escape(tool.name), "\2": f"(?:{keys})", "\3": rf'\s*(?:"(?:{keys})|\}}\s*\Z)'}
            for written in self._stripped_calls:
                call = rf"[\s>]*{_MARK.sub(lambda mark: named[mark[0]], written)}"  # noqa: B023
                if re.match(call, begin) or (last and any(re.search(rf"[\n>]{call}", said) for said in (begin, end))):
                    return tool.name
        return ""

    def unoffered_header(self, said: str, tools: Toolset) -> tuple[Way, ...]:
        """The ways to read a text that begins with the header of a call of no offered tool: `to=f<|`, `[f(`."""
        for before, tails in self._headers.items():
            if said.startswith(before) and (name := _NAME.match(said, len(before)).group()):  # type: ignore[union-attr]  # matches always
                if name in tools:
                    continue
                behind = "".join(said[len(before) + len(name) : _MAX_PARAMETER].split())
                for tail, ways in tails.items():
                    if tail and behind.startswith(tail) and (before or tail[0] in "<{"):
                        return ways
        return ()

    def tagged_arguments(self, text: str, name: str, tools: Toolset) -> tuple[str, str] | None:
        """The arguments of a call of this tool as JSON, and the format in whose tags `text` has them; None if it is in
        none or ends in a value, or they do not fit.
        """
        if not text.rstrip().endswith((">", "[")):
            return None
        values = {"name": name, "number": "0", "index": "1", "id": ""}
        for form in self._forms:
            layout = form.layout
            match layout.arguments:
                case TaggedArguments(begin=begin) if text.lstrip().startswith(_literal(begin).strip()):
                    around = (filled(part, values) for part in (layout.open + layout.begin, layout.end + layout.close))
                    reading = _read(text.strip().join(around), Way(form, True), tools)
                    if reading.good == 1 and not reading.bad:
                        return reading.arguments, form.name
        return None


def _literal(written: str) -> str:
    """The literal text with which a layout begins."""
    first = pieces_of(written)[0]
    return first if isinstance(first, str) else "\0"


def _head(written: str) -> str:
    """The beginning of a layout, up to the last place for the name of the tool, each of which is `\\0`."""
    texts = [piece if isinstance(piece, str) else "\0" if piece.what == "name" else "" for piece in pieces_of(written)]
    head = "".join(texts).lstrip()
    return head[: head.rfind("\0") + 1]


def _tags(layout: CallLayout) -> Iterator[str]:
    """The tags before the name of a tool that open a call, or all of them."""
    closing = layout.end + layout.close
    for number, tag in enumerate(_TAG.findall(_head(layout.open + layout.begin))):
        if not number or tag not in closing:
            yield tag


def lone_closer(text: str, layout: object, *, is_all: bool) -> str:
    """A closing tag of a layout that the text does not open, or `""`. `is_all`: there is no text before it."""
    if "</" not in text or not isinstance(layout, CallLayout):
        return ""
    tags = layout.arguments.begin + layout.arguments.end if isinstance(layout.arguments, TaggedArguments) else ""
    closers = dict.fromkeys(map(str, _CLOSER.findall(tags + layout.end + layout.close)))
    if not is_all and sum(map(text.count, closers)) > 1:
        return ""  # these end a call that may begin before the text
    for closer in closers:
        opening = closer.replace("</", "<", 1).removesuffix(">")
        if text.count(closer) > text.count(opening):
            return closer
    return ""


def _pattern_of(part: str) -> str:
    """A pattern of a part of a layout. A line feed in white space has to be there: it parts no words of a sentence."""
    if part.isspace():
        return r"\s*\n\s*" if "\n" in part else r"\s*"
    return _ANY_SLOT if part == "\1" else re.escape(part)


def _with_marks(written: str, what: str, mark: str) -> str:
    """A part of a layout with `mark` for placeholders of one kind, in quotes if they are JSON; others are `\\1`."""
    texts = []
    for piece in pieces_of(written):
        if isinstance(piece, str):
            texts.append(piece)
        elif piece.what != what:
            texts.append("\1")
        else:
            texts.append(f'"{mark}"' if piece.form else mark)
    return "".join(texts)


def _has_plain_name(begin: str) -> bool:
    """Whether a call's beginning has the tool's name as plain text, not as JSON."""
    slots = [piece for piece in pieces_of(begin) if isinstance(piece, Slot) and piece.what == "name"]
    return bool(slots) and not slots[0].form


def _behind_name(layout: CallLayout) -> str:
    """The literal text that follows the tool's name in a call, up to the first variable part."""
    pieces = iter(pieces_of(layout.begin))
    for piece in pieces:
        if isinstance(piece, Slot) and piece.what == "name":
            break
    behind = next(pieces, None)
    if isinstance(behind, str):
        text, is_all = behind, next(pieces, None) is None
    else:
        text, is_all = "", behind is None
    if is_all and isinstance(layout.arguments, JsonArguments):
        return text + "{"
    if is_all and isinstance(layout.arguments, TaggedArguments):
        return text + _literal(layout.arguments.begin)
    return text


# --- reading ---


class _WordsFollowError(Exception):
    """Raised if words follow the calls with which a text begins."""


def read_foreign(text: str, ways: Sequence[Way], tools: Toolset) -> Reading | None:
    """The best reading of the calls with which a text begins; None if nothing reads as a call."""
    return (_kept if len(text) <= _MAX_KEPT else _best)(text, tuple(ways), tools)


def _best(text: str, ways: tuple[Way, ...], tools: Toolset) -> Reading | None:
    best: Reading | None = None
    for way in likeliest(text, ways):
        reading = _read(text, way, tools)
        if reading.good + reading.bad and (best is None or reading.worth > best.worth):
            best = reading
        if best is not None and best.good and not (best.bad or best.problems):
            break
    return best


# Text read on trial is read again once its kind is known.
_kept = lru_cache(maxsize=8)(_best)


def likeliest(text: str, ways: tuple[Way, ...], at: int = 0) -> Sequence[Way]:
    """The ways to read a text from `at` on, those first of whose layout it has most."""
    if len(ways) < 2:
        return ways
    longest = max(len(head) for way in ways for head in _heads(way))
    return _by_begin("".join(text[at : at + _MAX_PARAMETER].split())[:longest], ways)


@lru_cache(maxsize=256)
def _by_begin(begin: str, ways: tuple[Way, ...]) -> Sequence[Way]:
    # A call that was cut, or that differs soon, agrees with as much of a layout as it has.
    def agreed(way: Way) -> int:
        return max((_common(head, begin) for head in _heads(way)), default=0)

    return sorted(ways, key=agreed, reverse=True)[:_MAX_WAYS]


def _common(one: str, other: str) -> int:
    """The number of characters in which two texts begin alike."""
    shorter = min(len(one), len(other))
    return next((place for place in range(shorter) if one[place] != other[place]), shorter)


@lru_cache(maxsize=512)
def _heads(way: Way) -> Sequence[str]:
    """The beginnings of calls and blocks of calls of a way, up to the name of the tool, without white space."""
    layout = way.form.layout
    heads = (_head(head).partition("\0")[0] for head in (layout.open + layout.begin, layout.begin))
    return ["".join(head.split()) for head in heads]


def _read(text: str, way: Way, tools: Toolset) -> Reading:
    """The calls with which a text begins, up to other words."""
    events: list[Event] = []
    called = False

    def watch(event: Event) -> None:
        nonlocal called
        if isinstance(event, CallStarted):
            called = True
        if isinstance(event, ContentDelta) and event.text.strip():
            raise _WordsFollowError(event.text)
        events.append(event)

    whole = way.lead + text
    source = StreamReader(watch)
    source.push(whole)
    source.end()
    end = len(whole)
    try:
        for _ in way.form.read(AnswerText(source, tools, way.form.layout, alone=True), "assistant"):
            raise AssertionError("the text is all there")
    except _WordsFollowError as follow:
        words = str(follow)
        end = whole.rfind(words, 0, source.place)
        while end > 0 and whole.endswith(words, 0, end):  # the last of them is the beginning of a mark
            end -= len(words)
        if end < 0:  # with line feeds that the model did not write
            end = max(0, whole.rfind(words.strip(), 0, source.place))
    if not called:
        return Reading(way, (), 0, 0, 0)
    calls = sum(isinstance(event, CallStarted) for event in events)
    good = len(valid_calls(events, tools))
    return Reading(way, _without(events, way.lead), end - len(way.lead), good, calls - good)


def _without(events: Sequence[Event], lead: str) -> list[Event]:
    """The events of a text without its `lead`, which the model has not written."""
    out: list[Event] = []
    for event in events:
        if lead and isinstance(event, Markup):
            size = len(lead) - len(lead.removeprefix(event.text)) or len(event.text) - len(
                event.text.removeprefix(lead)
            )
            lead, event = lead[size:], Markup(event.text[size:])
        out.append(event)
    return out


# --- the readings ---


def wrong_with(text: str, reading: Reading | None, tools: Toolset, *, begins: bool) -> Problem | None:
    """The problem of a text that begins like a call without a valid one; None if nothing shows that it is a call: it
    neither reads as one nor has the name of an offered tool nearby, followed by the name of a parameter. `begins`:
    it begins a line.
    """
    if reading is None:
        name = names_tool(text, tools, begins=begins)
        return Problem("malformed_call", f"what may be a call of {name!r} is in no known format") if name else None
    kind = reading.way.form.name
    for _, name, fitted in fitted_calls(reading.events, tools):
        if tools.resolve_name(name) not in tools:
            if reading.end < len(text.rstrip()) and not _has_arguments(reading):
                return None  # a word between tags, in a sentence
            return Problem("unknown_tool", f"no tool is called {name!r}, of which this is a call as {kind} writes it")
        if fitted is not None:
            told = "; ".join(f"{fault.path}: {fault.message}" for fault in fitted.faults[:3])
            return Problem("invalid_arguments", f"the arguments of {name!r} do not fit: {told}")
        return Problem("malformed_call", f"a call of {name!r} as {kind} writes it, which is not whole")
    return None


def takes_as_much(reading: Reading, tools: Toolset) -> bool:
    """Whether some tool has all parameters that the first call gives, which are some: who is called may be a slip."""
    keys = object_of(reading.arguments).keys()
    return bool(keys) and any(keys <= properties(tool.parameters).keys() for tool in tools)


def _has_arguments(reading: Reading) -> bool:
    return any(isinstance(event, ArgumentsDelta) and event.text.strip("{} \n") for event in reading.events)


def names_tool(text: str, tools: Toolset, *, begins: bool) -> str:
    """The tool named near the beginning of a text and followed by one of its parameters, or `""`. For a tool without
    parameters its name is enough if the text `begins` a line.
    """
    for name in tools.names:
        at = text.find(name, 0, _MAX_NAME + len(name))
        if at < 0 or "`" in text[:at]:
            continue
        tool = tools.get(name)
        own = properties(tool.parameters) if tool else {}
        behind = text[at + len(name) : at + len(name) + _MAX_PARAMETER]
        if behind[:1] == " " and behind[1:2].isalpha():
            continue  # a sentence about the tool
        if any(key in behind for key in own) or (begins and not own):
            return name
    return ""


def numbered_from(events: Iterable[Event], first: int) -> Iterator[Event]:
    """Events whose calls are counted from 0, counted from `first`."""
    for event in events:
        if isinstance(event, CallStarted | ArgumentsDelta | CallEnded):
            yield msgspec.structs.replace(event, index=first + event.index)
        elif isinstance(event, Problem) and event.call is not None:
            yield msgspec.structs.replace(event, call=first + event.call)
        else:
            yield event


def valid_calls(events: Iterable[Event], tools: Toolset) -> list[int]:
    """The indices of the calls that are whole, of offered tools by their exact names, and valid after repair."""
    return [index for index, _, fitted in fitted_calls(events, tools) if fitted and not fitted.faults]
