"""Recognises the declared dialect that a chat template follows, by its output.

The same short conversations are rendered by the template and by every dialect, in each of its flavours. A dialect fits
if it renders the same calls, apart from insignificant differences: white space, the spacing and order of JSON, ids, an
empty thought. If several fit, the one with the most similar turns and outputs wins. A template that shows tools
and drops the calls of a history is compared by how it shows the tools.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache, lru_cache
from typing import Any, Final, Literal, get_args, get_type_hints

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from callwright.chat_template.find_calls import region
from callwright.chat_template.probes import (
    FIRST,
    OUTPUT,
    SAID,
    SECOND,
    USER,
    Message,
    Probes,
    RenderMessages,
    Telling,
    assistant,
    probes_of,
    render_with,
)
from callwright.chat_template.read_back import reads_back
from callwright.chat_template.renderer import TemplateFailureError
from callwright.chat_template.repeats import common_end, common_start, pieces, special
from callwright.chat_template.sources import ChatTemplate
from callwright.conversation import AssistantTurn, Call
from callwright.dialects.base import dialect_names, get_dialect, read_options
from callwright.errors import CallwrightError, ConfigError
from callwright.openai_format.messages import read_conversation

# Tools that are shown this much like a dialect's are shown as the dialect shows them.
_ALIKE: Final = 0.8
# Minimum length of the text around tools, without their JSON, that identifies a dialect.
_TELLING: Final = 100
# Weight of equal turns; equal dialogs and equal texts around tools weigh 1 each.
_TURNS: Final = 0.3
# A smaller difference does not decide between two dialects.
_EQUAL: Final = 0.005
_IDS: Final = frozenset(("id", "tool_call_id", "call_id"))
_ID: Final = re.compile(rf"{FIRST.id}|{SECOND.id}|\bcall\d{{5}}\b")
_SPACE: Final = re.compile(r"\s+")
_DECODER: Final = json.JSONDecoder()


class Recognised(Struct, frozen=True):
    """A dialect that a template follows. `options` name its flavour, if it is not the usual one. `by` is the
    evidence: the same `calls`, the same `tools` if no calls are shown, or that only this dialect `reads` the calls.
    `turns`: the turns are the same, too; else they are the template's own. `rivals` are other dialects that fit as
    well.
    """

    dialect: str
    options: tuple[tuple[str, object], ...]
    by: Literal["calls", "tools", "reads"]
    turns: bool
    rivals: tuple[str, ...] = ()


class Unrecognised(Struct, frozen=True):
    """No dialect is known that a template follows. `calls` is how it shows a call; empty if it shows none."""

    calls: str


class Shown(Struct, frozen=True):
    """The probes as rendered by a template or a dialect. `asked` is a question, `tools` the text that tools add to it,
    `said` an answer in text, `one` and `two` are answers with one and two calls, `dialog` is everything after the
    user's text if calls have outputs. Each is empty if the template refuses it or does not show it.
    """

    asked: str
    tools: str
    said: str
    one: str = ""
    two: str = ""
    dialog: str = ""

    def calls(self, answer: str) -> str:
        """The calls in an answer, without insignificant text."""
        return _plain(region(answer, self.said or SAID))

    def turn_mark(self) -> str:
        """The mark that begins a question, without which turns are not known."""
        return next(reversed(special(self.asked.rpartition(USER)[0])), "")


class _Flavour(Struct, frozen=True):
    """A dialect in one of its flavours: how it writes one call and two, the marks of its turns, and its text
    around tools, without their JSON.
    """

    dialect: str
    options: tuple[tuple[str, object], ...]
    shown: Shown
    one: frozenset[str]
    two: frozenset[str]
    known: frozenset[str]
    tools: str


class _Fit(Struct, frozen=True):
    """How well a dialect fits: whether two calls are the same, too, and how alike the rest is."""

    both: bool
    alike: float
    flavour: _Flavour


@lru_cache(maxsize=64)
def recognise(given: ChatTemplate) -> Recognised | Unrecognised:
    """The dialect that a template follows. Raises `ConfigError` for one that cannot be rendered, and if jinja2 is not
    installed.
    """
    return recognise_by_rendering(render_with(given.template, given.bos_token, given.eos_token))


def recognise_by_rendering(render: RenderMessages) -> Recognised | Unrecognised:
    """The same for a template that this function renders. Raises `ConfigError`."""
    shown = _render_samples(probes_of(render))
    if not shown.asked:
        raise ConfigError("The chat template cannot be rendered.")
    found = _by_calls(shown) or _by_reading(shown) if shown.one else _by_tools(shown)
    return found or Unrecognised(shown.one)


def _by_calls(shown: Shown) -> Recognised | None:
    one, two = shown.calls(shown.one), shown.calls(shown.two)
    found: list[_Fit] = []
    for flavour in _flavours():
        known = flavour.known.union(special(shown.said))
        if any(_ends(one, text, known) for text in flavour.one):
            both = any(_ends(two, text, known) for text in flavour.two)
            found.append(_fit(shown, flavour, both=both))
    return _best(found, shown, "calls")


def _by_reading(shown: Shown) -> Recognised | None:
    """The dialect that reads the calls, if only one does: several dialects can read a form that is foreign to all."""
    readers = {
        name
        for name in dialect_names()
        for calls in [get_dialect(name).calls]
        if reads_back(calls, region(shown.one, shown.said or SAID), [FIRST])
        and (not shown.two or reads_back(calls, region(shown.two, shown.said or SAID), [FIRST, SECOND]))
    }
    if len(readers) != 1:
        return None
    return _best([_fit(shown, one) for one in _flavours() if one.dialect in readers], shown, "reads")


def _by_tools(shown: Shown) -> Recognised | None:
    """The dialect that shows tools the same way. If its text around them is short, the turns must match, too."""
    told = _without_objects(shown.tools)
    found = [
        _fit(shown, flavour)
        for flavour in _flavours()
        if (len(flavour.tools) >= _TELLING or _have_same_turns(flavour.shown, shown))
        and _alike(told, flavour.tools) >= _ALIKE
    ]
    return _best(found, shown, "tools") if told else None


def _best(found: Sequence[_Fit], shown: Shown, by: Literal["calls", "tools", "reads"]) -> Recognised | None:
    if not found:
        return None
    best = max(found, key=lambda fit: (fit.both, fit.alike))
    rivals = {
        fit.flavour.dialect
        for fit in found
        if fit.both == best.both and best.alike - fit.alike < _EQUAL and fit.flavour.dialect != best.flavour.dialect
    }
    turns = _have_same_turns(shown, best.flavour.shown)
    return Recognised(best.flavour.dialect, best.flavour.options, by, turns, tuple(sorted(rivals)))


def _fit(shown: Shown, flavour: _Flavour, *, both: bool = True) -> _Fit:
    other = flavour.shown
    alike = _alike(shown.dialog, other.dialog) if shown.dialog else 0.0
    alike += _alike(_without_objects(shown.tools), flavour.tools) + _TURNS * _have_same_turns(shown, other)
    return _Fit(both, alike, flavour)


def _have_same_turns(one: Shown, other: Shown) -> bool:
    return bool(one.turn_mark()) and one.turn_mark() == other.turn_mark()


def _ends(text: str, calls: str, known: frozenset[str]) -> bool:
    """Whether a text is these calls, optionally followed by marks that end a turn or begin the next."""
    behind = text.removeprefix(calls)
    marks = special(behind)
    return text.startswith(calls) and behind == "".join(marks) and known.issuperset(marks)


def _alike(one: str, other: str) -> float:
    """How alike two texts are, from 0 to 1."""
    return SequenceMatcher(None, pieces(_normal(one)), pieces(_normal(other)), autojunk=False).ratio()


# --- rendering ---


def _render_samples(probes: Probes) -> Shown:
    asked, said = _text(probes), probes.answer(said=SAID) or ""
    one = probes.answer(FIRST) or ""
    if FIRST.name not in one:
        return Shown(asked, _tools(probes, asked), said)
    two = probes.answer(FIRST, SECOND) or ""
    dialog = _dialog(probes, asked, FIRST, SECOND) or _dialog(probes, asked, FIRST) or one
    return Shown(asked, _tools(probes, asked), said, one, two, dialog)


def _dialog(probes: Probes, asked: str, *calls: Call) -> str:
    outputs = [{"role": "tool", "tool_call_id": call.id, "content": OUTPUT} for call in calls]
    whole = _text(probes, assistant(*calls), *outputs, answers=True)
    return whole[len(common_start(asked, whole)) :]


def _tools(probes: Probes, tooled: str) -> str:
    """What tools add to a prompt."""
    bare = _text(probes, tools=False)
    if bare == tooled:
        return ""
    rest = tooled[len(common_start(bare, tooled)) :]
    return rest[: len(rest) - len(common_end(bare, rest))]


def _text(probes: Probes, *messages: Message, tools: bool = True, answers: bool = False) -> str:
    try:
        return probes.text(*messages, tools=tools, answers=answers)
    except TemplateFailureError:
        return ""


def _flavours() -> Iterator[_Flavour]:
    """Every dialect in each of its flavours."""
    for name in dialect_names():
        yield from _flavours_of(name)


@cache
def _flavours_of(name: str) -> tuple[_Flavour, ...]:
    found: list[_Flavour] = []
    named = get_args(get_type_hints(get_dialect(name).options).get("flavour"))
    usual = msgspec.structs.asdict(get_dialect(name).options()).get("flavour")
    for options in [{"flavour": flavour} for flavour in named] or [{}]:
        shown = _render_samples(Probes(rendered_by(name, options), Telling(objects=False)))
        if shown.one:
            one, two = ({shown.calls(shown.one)}, {shown.calls(shown.two)})
            for calls, written in (((FIRST,), one), ((FIRST, SECOND), two)):
                written |= {_write_calls(name, calls), _write_calls(name, [replace(call, id="") for call in calls])}
            told = {} if options.get("flavour") == usual else options
            words = _without_objects(shown.tools)
            known = frozenset((*get_dialect(name).stops, *special(shown.dialog)))
            shape = frozenset(one), frozenset(two), known
            found.append(_Flavour(name, tuple(told.items()), shown, *shape, words))
    return tuple(found)


def _write_calls(name: str, calls: Iterable[Call]) -> str:
    return _plain(get_dialect(name).write(AssistantTurn(calls=[*calls])))


def rendered_by(name: str, options: Mapping[str, object]) -> RenderMessages:
    """A dialect in the place of a template."""
    dialect = get_dialect(name)

    def render(messages: Sequence[Mapping[str, Any]], tools: Any, answers: bool) -> str:
        given = read_options(dialect, {**options, "add_generation_prompt": answers})
        try:
            return dialect.render(read_conversation([*messages], tools, None), given).text
        except CallwrightError as error:
            raise TemplateFailureError(str(error), refused=True) from error

    return render


# --- normal form ---


def _plain(text: str) -> str:
    """A text in its normal form without white space and empty thoughts."""
    text = _SPACE.sub("", _normal(text))
    for begin, end in _thoughts():
        text = text.replace(begin + end, "").removeprefix(end)
    return text


@cache
def _thoughts() -> tuple[tuple[str, str], ...]:
    """The marks around a thought, of all dialects; the longest first, as one may hold another."""
    marks = [get_dialect(name).prompt.marks.thought for name in dialect_names()]
    found = {(_SPACE.sub("", mark[0]), _SPACE.sub("", mark[1])) for mark in marks if mark is not None}
    return tuple(sorted(found, key=lambda pair: (-len(pair[0]), pair)))


def _normal(text: str) -> str:
    """A text with each JSON object written in one way, and without ids."""
    return _ID.sub("", _each_object(text, _in_one_way))


def _without_objects(text: str) -> str:
    """The text around tools: without the JSON objects, which are the tools."""
    return _each_object(text, lambda _: "{}")


def _each_object(text: str, write: Callable[[Any], str]) -> str:
    """A text with its JSON objects written anew. Python's quotes count as those of JSON."""
    text = text.replace("'", '"')
    parts: list[str] = []
    at = 0
    while (begin := text.find("{", at)) >= 0:
        parts.append(text[at:begin])
        try:
            value, at = _DECODER.raw_decode(text, begin)
            parts.append(write(value))
        except ValueError:
            parts.append("{")
            at = begin + 1
    return "".join(parts) + text[at:]


def _in_one_way(value: Any) -> str:
    return json.dumps(_without_ids(value), ensure_ascii=False, sort_keys=True)


def _without_ids(value: Any) -> Any:
    match value:
        case dict():
            return {key: _without_ids(inner) for key, inner in value.items() if key not in _IDS}
        case list():
            return [*map(_without_ids, value)]
    return value
