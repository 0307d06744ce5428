"""Reads the calls of DSML, by whatever token their tags begin with; see `_dsml.py`.

Tags between other bars than those of the token are read, too: models and servers write characters that look alike.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from typing import Final

from callwright.events import Problem
from callwright.layout.calls import CallLayout, TaggedArguments
from callwright.reading.tagged.call import TaggedCall
from callwright.reading.tagged.calls import TaggedCalls
from callwright.reading.tagged.lexer import TagLexer
from callwright.reading.tagged.marks import parameter_marks
from callwright.reading.tagged.tags import ParameterTags
from callwright.reading.text.answer_text import AnswerText
from callwright.reading.text.call_reader import CallReader
from callwright.streaming.reader import Markers, Parse, read_until
from callwright.tolerant_json.codec import NotJsonError, decode

TOKEN: Final = "｜DSML｜"
_END: Final = "<｜end▁of▁sentence｜>"


# What models and servers write for the bars of a token: other characters that look alike, or each of them twice.
_BARS: Final = tuple(bar * size for bar in "|｜‖∣" for size in (1, 2))


def odd_openings(word: str) -> tuple[str, ...]:
    """The possible starts of a tag between other bars than `｜`, or without bars."""
    lefts = [f"<{bar}{word}" for bar in _BARS if bar != "｜"] + [f"< {bar} {word}" for bar in "|｜"]
    return (*lefts, *(f"<｜{word}{bar}" for bar in ("|", "‖", "∣", "｜｜")), f"<{word}")


@cache
def dsml_layout(calls: str, lead: str, no_arguments: str = "", token: str = TOKEN, gap: str = "\n\n") -> CallLayout:
    """How a version writes its calls, `gap` before them."""
    line = "" if no_arguments else "\n"  # after a parameter, or between two of them
    return CallLayout(
        open=f"{gap}<{token}{calls}>\n",
        begin=f'<{token}{lead}invoke name="${{name}}">\n',
        arguments=TaggedArguments(
            begin=f'<{token}{lead}parameter name="${{key}}" string="${{type}}">',
            end=f"</{token}{lead}parameter>{line}",
            between=no_arguments,
            types={"string": "true", "": "false"},
        ),
        end=f"{no_arguments}</{token}{lead}invoke>\n",
        close=f"</{token}{calls}>",
        # Without its token a tag of a version without `lead` is one of Claude's.
        variants=(*odd_openings(token.strip("｜")), *([f'<{lead}invoke name="'] if lead else ())),
    )


@cache
def dsml_tags(calls: str, lead: str, token: str = TOKEN) -> ParameterTags:
    """The tags of a version. The name in the opening tag of a block may be lost."""
    begin, end = f"<{token}{calls}>", f"</{token}{calls}>"
    return ParameterTags.of(dsml_layout(calls, lead, token=token), blocks=((begin, end), (f"<{token}", end)))


_BAR: Final = r"[|｜‖∣]{1,2}"
_BLOCKS: Final = "function_calls|tool_calls|calls|tool_use"


def _odd_pattern(word: str) -> str:
    """A token between any bars, with white space on all sides of these or none; or without bars."""
    return rf"(?:{_BAR}{word}{_BAR}| {_BAR} {word} {_BAR} |{word} ?)"


_EVERYTHING: Final = Markers()
_MAX_HELD: Final = 4_194_304
# Maximum lookahead, over a tag and the next one, to decide whether it opens a call.
_MAX_OPENING: Final = 120
# The rest of the opening tag of a block under a name of no version, as `toolcalls` (vllm-project/vllm#51914). V3.2's
# name stays text in V4, as in vLLM (tests/tool_parsers/test_deepseekv4_tool_parser.py).
_OTHER_BLOCK: Final = re.compile(r"(?P<name> ?(?!function_calls>)[A-Za-z_]{1,40}>)\s*")


@cache
def _any_bars(word: str) -> re.Pattern[str]:
    """A tag of the format between any bars; the group is its token."""
    token = _odd_pattern(word)
    return re.compile(
        rf"(?<=<)({token})(?= ?(?:(?:{_BLOCKS})>|(?:invoke|parameter)\s))"
        rf"|(?<=</)({token})(?= ?(?:{_BLOCKS}|invoke|parameter)>)"
    )


@cache
def _opens_call(word: str) -> re.Pattern[str]:
    """The begin of a call, with or without the tag of its block, between any bars."""
    tag = rf"<({_odd_pattern(word)}) ?"
    block = rf"<(?P<block>{_odd_pattern(word)}) ?(?:{_BLOCKS})>\s*"
    return re.compile(rf"(?:{block})?{tag}invoke\s+name=")


@cache
def _beside(
    tags: ParameterTags, kin: ParameterTags | None, token: str, ends: tuple[str, ...], *, odd: bool
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """The stop tokens besides these tags, the openers of calls from `kin`, and the openers between other bars."""
    own = dict(tags.blocks)
    others = (*[begin for begin, _ in kin.blocks], kin.call) if kin else ()
    # The closing tags of all versions: after a call, none of them is text.
    closers = (f"</{token}{name}>" for name in ("function_calls", "tool_calls", " calls", "calls"))
    stops = (*ends, *[tag for tag in closers if tag not in own.values()])
    return stops, tuple(tag for tag in others if tag not in own), odd_openings(token.strip("|｜‖∣")) if odd else ()


class DsmlCalls(TaggedCalls):
    """Finds calls whose parameters declare whether they are text.

    `names` are those of the blocks and the leads of a version, and of one whose calls are read, too. `token` begins its
    tags. A call between other bars is read once all of the answer is there: any tag may have any bars. `odd` is whether
    such are looked for.
    """

    def __init__(
        self,
        text: AnswerText,
        names: Sequence[tuple[str, str]],
        token: str = TOKEN,
        ends: tuple[str, ...] = (_END,),
        *,
        odd: bool = True,
    ) -> None:
        tags, *kin = (dsml_tags(*name, token) for name in names)
        stops, also, self._odd_openings = _beside(tags, kin[0] if kin else None, token, ends, odd=odd)
        marks = parameter_marks(tags, ends=stops, also=(*also, *self._odd_openings))
        super().__init__(_Call(text, TagLexer(text, marks)))
        self._names, self._token, self._stops = names, token, ends
        self._foreign = also

    @cached_property
    def _kin(self) -> "DsmlCalls":
        """The reader of calls with the tags of the other version."""
        return DsmlCalls(self.text, self._names[1:], self._token, self._stops, odd=False)

    def _odd_token(self, tag: str) -> Parse[str]:
        """The token, between other bars, of the call that `tag` opens; `""` if it opens none of these."""
        while self.text.source.more(_MAX_OPENING):
            yield
        word = self._token.strip("|｜‖∣")
        found = _opens_call(word).match(tag + self.text.source.ahead(_MAX_OPENING))
        if found is None or {*filter(None, found.groups())} == {self._token}:
            return ""
        return found["block"] or found[2]

    def _between_other_bars(self, blanks: str, tag: str, token: str) -> Parse[CallReader]:
        """Hold the rest of an answer with a call between other bars, and put all tags between those of its first one.
        Returns the reader for them.
        """
        text = self.text
        word, lead = self._token.strip("|｜‖∣"), self._names[0][1]
        # The blank after a token without bars is that of the lead, if there is one.
        if lead or not token.startswith(word):
            token = token.strip()
        held, _ = yield from read_until(text.source, _EVERYTHING, _MAX_HELD)
        odd: list[str] = []

        def respelled(found: re.Match[str]) -> str:
            odd.extend([found[0]] if found[0] != token else [])
            return token + lead if found[0].endswith(" ") else token

        rest = _any_bars(word).sub(respelled, tag + held)
        text.emit(Problem("markup_repaired", f"the tags of a call begin with {token!r}"))
        text.markup(blanks)
        text.markup("".join(odd))  # what others begin with
        source, begin = text.source, max(0, text.source.at - len(tag + held))
        source.text, source.at = source.text[:begin] + rest + source.text[source.at :], begin
        return DsmlCalls(text, self._names, token, self._stops, odd=False)

    def may_begin_call(self, tag: str) -> Parse[bool]:
        """Whether a call follows a tag, of either version or between other bars."""
        if tag in self._odd_openings:
            return (yield from self._odd_token(tag)) != ""
        if tag in self._foreign:
            return (yield from self._kin.may_begin_call(tag))
        begins = yield from super().may_begin_call(tag)
        if not begins and tag == f"<{self._token}":
            begins = (yield from self._other_block())[0] is not None
        return begins

    def marked(self, blanks: str, tag: str) -> Parse[CallReader | None]:
        """Read a tag, and its calls. After a call between other bars another reader continues."""
        text = self.text
        if self._odd_openings and not tag.startswith("</"):
            if token := (yield from self._odd_token(tag)):
                return (yield from self._between_other_bars(blanks, tag, token))
            if tag in self._odd_openings:
                text.emit(text.say(blanks + tag))
                return None
        if tag not in self._foreign:
            return (yield from super().marked(blanks, tag))
        inner = yield from text.held_blanks()
        if (yield from self.may_begin_call(tag)):
            text.call_begins()
            opens_block = tag != self._kin.form.call
            text.markup(blanks + tag + inner if opens_block else blanks)
            yield from self._kin._calls("" if opens_block else tag)
        else:
            text.emit(text.say(blanks + tag + inner))
        return None

    def _unknown_block(self, blanks: str, tag: str, inner: str) -> Parse[None]:
        """A block under another name, if a call follows its opening tag; else text."""
        text = self.text
        calls, rest, name = (yield from self._other_block()) if not inner else (None, "", "")
        if calls is None:
            yield from super()._unknown_block(blanks, tag, inner)
            return
        text.emit(Problem("markup_repaired", f"{tag}{name} opens a block of calls"))
        text.markup(blanks + tag + text.take(rest))
        yield from calls._calls("")
        if (yield from text.comes(end := f"</{self._token}{name}")):
            text.markup(text.take(end))

    def _other_block(self) -> "Parse[tuple[DsmlCalls | None, str, str]]":
        """The reader of the call after the opening tag of a block under another name, if one follows; the rest of that
        tag with the white space after it, and the name. Nothing is read.
        """
        source = self.text.source
        if self._token != TOKEN:  # between other bars, where each version is tried, the name identifies it
            return None, "", ""
        while source.more(_MAX_OPENING):
            yield
        if found := _OTHER_BLOCK.match(ahead := source.ahead(_MAX_OPENING)):
            for calls in (self, self._kin) if len(self._names) > 1 else (self,):
                if ahead.startswith(calls.form.call, found.end()):
                    return calls, found.group(), found["name"]
        return None, "", ""

    def no_call(self, blanks: str, tag: str) -> Parse[None]:
        """A tag without a call. An opening tag is the name of a token in brackets, and such names are discussed."""
        if tag.startswith("</"):
            yield from super().no_call(blanks, tag)
        else:
            self.text.emit(self.text.say(blanks + tag))


class _Call(TaggedCall):
    """A call whose parameters declare whether they are text."""

    def _read_key(self) -> Parse[tuple[str, Mapping[str, str]] | None]:
        """The name of a parameter, and the attributes of its tag; None if the output ended before the value."""
        head = yield from super()._read_key()
        kind = head[1].get("string") if head else None
        if kind not in (None, "true", "false"):
            self.sink.sure = False  # the attribute is named already
        return head

    def _flows(self, key: str, rest: Mapping[str, str]) -> bool:
        """Whether a value is streamed: a text is, if the schema allows one."""
        kind, writer = rest.get("string"), self.sink.writer
        return writer.allows_text(key) if kind == "true" else kind != "false" and writer.is_text(key)

    def _cast_value(self, key: str, text: str, rest: Mapping[str, str]) -> str:
        """The JSON of a held value, which stays as it is if the schema does not want a string. Text is no value if the
        tag claims JSON.
        """
        sink, writer = self.sink, self.sink.writer
        claims_json = rest.get("string") == "false"
        as_it_is = writer.is_untyped(writer.schema(key)) or not writer.is_text(key)
        if claims_json and _is_json(text, scalars=as_it_is):
            return text.strip()
        value = writer.cast_to_schema(text, writer.schema(key))
        if claims_json and not writer.is_text(key) and sink.sure and value[0] == '"':
            sink.doubt(f"the JSON of {key!r} cannot be read", "non_json_arguments")
        return value


def _is_json(text: str, *, scalars: bool) -> bool:
    """Whether a text is JSON; without `scalars`, only a string or null."""
    if not scalars and text.strip()[:1] not in ('"', "n"):
        return False
    try:
        decode(text)
    except NotJsonError:
        return False
    return True
