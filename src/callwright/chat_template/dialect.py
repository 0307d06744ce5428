"""A dialect derived from a chat template by rendering probes, and checked against the rendered texts.

A form of calls that was found counts only if a call that the template writes is read back as it was. Other
cases that are not (several calls, texts with quotes and line feeds, numbers, lists, objects, a text before them) are
reported. If no call is read back, or a template shows none, the tools and calls are described in the prompt, as in the
dialect `json`; the turns are still the template's.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from callwright.chat_template.call_readers import ToldCalls, reader_of
from callwright.chat_template.find_calls import FoundCalls, find_calls, region
from callwright.chat_template.find_turns import FoundTurns, find_turns, marks_in
from callwright.chat_template.probes import (
    FIRST,
    SAID,
    SECOND,
    USER,
    Probes,
    RenderMessages,
    Telling,
    probes_of,
    render_with,
)
from callwright.chat_template.prompt import TemplateOptions, TemplatePrompt, ToldOptions
from callwright.chat_template.read_back import reads_back
from callwright.chat_template.renderer import TemplateFailureError
from callwright.chat_template.repeats import special
from callwright.chat_template.sources import ChatTemplate, read_template
from callwright.conversation import Call
from callwright.dialects.base import (
    TEMPLATE_PREFIX,
    CallFormat,
    Dialect,
    ParsedBy,
    TurnMarks,
    add_dialect,
    dialect_names,
    get_dialect,
)
from callwright.errors import ConfigError
from callwright.reading.text.marks import is_token

_TOLD: Final = "json"
_TOLD_GAP: Final = "\n\n"
_NESTED: Final = '{"zeta": "a \\"b\\"\\nc", "sigma": 7, "theta": true, "rho": ["x", 2], "phi": {"deep": null}}'
_SEVERAL: Final = "two calls"
CASES: Final[Mapping[str, Sequence[Call]]] = {
    "one call": (FIRST,),
    _SEVERAL: (FIRST, SECOND),
    "no arguments": (Call(FIRST.name, "{}", id=FIRST.id),),
    "values of every type": (Call(FIRST.name, _NESTED, id=FIRST.id),),
}
_NEEDED: Final = ("one call",)
_THINK: Final = ("<think>", "</think>")


class TemplateFindings(Struct, frozen=True):
    """The properties found in a template. `calls`: None if they are described in the prompt, and `why` is the reason;
    `differs` names the cases in which the template's text is not read back, or not written, the same. `shows_tools`:
    the template shows them; else they are described in the prompt.
    """

    telling: Telling
    turns: FoundTurns
    calls: FoundCalls | None
    reader: CallFormat | ParsedBy | None
    shows_tools: bool
    why: str = ""
    differs: tuple[str, ...] = ()


def template_dialect(template: str | Path | ChatTemplate) -> Dialect:
    """The dialect of a model by its chat template: Jinja's text, as transformers and llama.cpp run it, or a path to a
    file or folder that holds one. It is registered by its name in this process.

    Raises `ConfigError` if there is no template, or it cannot be rendered.
    """
    if isinstance(template, Path):
        template = read_template(template)
    return _template_dialect(ChatTemplate(template) if isinstance(template, str) else template)


@lru_cache(maxsize=64)
def _template_dialect(given: ChatTemplate) -> Dialect:
    known = "\0".join((given.template, given.bos_token, given.eos_token, *given.tokens))
    name = TEMPLATE_PREFIX + hashlib.sha256(known.encode(errors="surrogatepass")).hexdigest()[:12]
    return add_dialect(dialect_of(name, given, find_format(given)))


def find_format(given: ChatTemplate) -> TemplateFindings:
    """Analyse a template. Raises `ConfigError` for one that cannot be rendered."""
    render = render_with(given.template, given.bos_token, given.eos_token)
    return find_by_rendering(render, marks_in(given.template), given.eos_token, given.tokens)


def find_by_rendering(
    render: RenderMessages, words: Sequence[str], eos_token: str = "", tokens: Sequence[str] = ()
) -> TemplateFindings:
    """Analyse a template rendered by this function; `words` are the marks in its own text. Raises `ConfigError`."""
    probes = probes_of(render)
    try:
        bare, tooled = probes.text(tools=False), probes.text()
    except TemplateFailureError as error:
        raise ConfigError(f"The chat template cannot be rendered: {error}") from error
    if USER.lower() not in bare.lower():
        raise ConfigError("The chat template does not show what the user says.")
    shows = bare != tooled
    turns = find_turns(probes, words)
    if not probes.shows_calls():
        why = "it shows no calls" if shows else "it shows neither tools nor calls"
        return TemplateFindings(probes.telling, turns, None, None, shows_tools=False, why=why)
    found = _find_format(probes, turns, eos_token, tokens)
    if isinstance(found, str):
        return TemplateFindings(probes.telling, turns, None, None, shows_tools=False, why=found)
    calls, reader, differs = found
    why = "" if shows else "it shows no tools: they are described in words"
    return TemplateFindings(probes.telling, turns, calls, reader, shows_tools=shows, why=why, differs=differs)


def _find_format(
    probes: Probes, turns: FoundTurns, eos_token: str, tokens: Sequence[str]
) -> tuple[FoundCalls, CallFormat | ParsedBy, tuple[str, ...]] | str:
    """How calls are written and read, and what does not come back as it was; or why that is not known."""
    calls = find_calls(probes, turns.thought)
    known = _declared(probes)
    if calls is None and known is None:
        return "it writes calls in a way that is not known"
    ends = (*turns.stops, *filter(None, [eos_token]))
    unread = ""
    # where two calls are not read back, one at a time may be
    for found in (calls, replace(calls, layout=replace(calls.layout, several=False))) if calls else ():
        reader = reader_of(found.layout, _is_token(tokens), _thoughts(turns), ends, turns.answer or ())
        if reader is None:
            break
        differs = tuple(_differs(probes, found, reader))
        if unread := next((case for case in differs if case in _NEEDED), ""):
            break
        if _SEVERAL not in differs:
            return found, reader, differs
    if known is None:
        return f"what it writes is not read back: {unread}" if unread else "calls that are written so are not read"
    calls = FoundCalls(known.layout)
    return calls, known, tuple(_differs(probes, calls, known))


def _declared(probes: Probes) -> CallFormat | ParsedBy | None:
    """The declared format that writes calls as the template does, if there is one: some have a notation of their own,
    in which a new model may write, too.
    """
    said = probes.answer(said=SAID) or SAID
    told = [(calls, probes.answer(*calls)) for calls in ((FIRST,), (FIRST, SECOND))]
    written = [(calls, region(answer, said).strip()) for calls, answer in told if answer is not None]
    for name in dialect_names():
        calls = get_dialect(name).calls
        if written and all(_is_written(calls.layout.text(given).strip(), text) for given, text in written):
            return calls
    return None


def _is_written(calls: str, text: str) -> bool:
    """Whether a text is these calls, optionally followed by marks that end the turn."""
    behind = text.removeprefix(calls)
    return text.startswith(calls) and behind == "".join(special(behind))


def _thoughts(turns: FoundTurns) -> tuple[tuple[str, str], ...]:
    """The tags around reasoning: those of the template, and those that models write with any template."""
    found = [(turns.thought[0].strip(), turns.thought[1].strip())] if turns.thought else []
    return tuple(dict.fromkeys([*found, _THINK]))


def _is_token(tokens: Sequence[str]) -> Callable[[str], bool]:
    known = frozenset(tokens)
    return known.__contains__ if known else _looks_like_a_token


def _looks_like_a_token(tag: str) -> bool:
    """Whether a tag does not occur in ordinary text, unlike words without brackets (`Action:`)."""
    return bool(special(tag)) and is_token(tag)


def _differs(probes: Probes, calls: FoundCalls, reader: CallFormat | ParsedBy) -> Iterator[str]:
    """The cases that do not come back as they were."""
    said = probes.answer(said=SAID) or SAID
    beside = probes.answer(FIRST, said=SAID) or ""
    shown = SAID in beside and beside.find(SAID) < beside.find(FIRST.name)
    if shown and not reads_back(reader, region(beside, said), [FIRST], SAID):
        yield "a text before a call"
    for case, given in CASES.items():
        if len(given) > 1 and not calls.layout.several:
            continue
        answer = probes.answer(*given)
        if answer is None:
            continue
        written = region(answer, said)
        if not reads_back(reader, written, given):
            yield case
        elif written.strip() != calls.layout.text(given).strip():
            yield f"{case} (written otherwise)"


def _summary(found: TemplateFindings) -> str:
    if found.calls is None:
        return f"{found.why.removeprefix('it ')}: tools and calls are described in words"
    if not found.shows_tools:
        return "shows calls but no tools: they are described in words"
    return "shows tools and calls"


def dialect_of(name: str, given: ChatTemplate, found: TemplateFindings) -> Dialect:
    fixed = {"bos_token": given.bos_token, "eos_token": given.eos_token}
    turns = found.turns
    calls = found.calls or FoundCalls(get_dialect(_TOLD).calls.layout, _TOLD_GAP)
    controls = tuple(dict.fromkeys([*turns.tokens, *given.tokens, *filter(None, fixed.values())]))
    marks = TurnMarks(thought=turns.thought, answer=turns.answer, controls=controls)
    prompt = TemplatePrompt(
        template=given.template,
        fixed=tuple(fixed.items()),
        telling=found.telling,
        controls=controls,
        turn_marks=marks,
        calls=calls.layout,
        told=found.calls is None,
        shows_tools=found.shows_tools,
        gap=calls.gap,
        system=turns.system,
        lead=turns.lead,
    )
    return Dialect(
        name=name,
        model_families="the model of a chat template",
        source=f"its chat template, which {_summary(found)}",
        stops=tuple(dict.fromkeys([*turns.stops, *filter(None, [given.eos_token])])),
        options=ToldOptions if found.calls is None else TemplateOptions,
        prompt=prompt,
        calls=found.reader or ToldCalls(calls.layout, _thoughts(turns), turns.answer or ()),
        is_slow=True,
    )
