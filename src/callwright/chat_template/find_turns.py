"""Finds the marks in a chat template around the parts of an answer (reasoning, text), and the end of a turn."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from callwright.chat_template.probes import FIRST, OUTPUT, SAID, SECOND, THOUGHT, USER, Probes, assistant
from callwright.chat_template.renderer import TemplateFailureError
from callwright.chat_template.repeats import common_start, special

_WORDS: Final = (FIRST.name, SECOND.name, "zeta", "omega", "kappa", SAID, THOUGHT, OUTPUT, USER)
_SHAPED: Final = re.compile(r"<[|｜][^\s<>{}]{1,64}[|｜]>")
_THINK: Final = ("<think>", "</think>")
_MAX_STOP: Final = 32


class FoundTurns(Struct, frozen=True):
    """The marks of turns. `thought` surrounds reasoning, `answer` a text. `stops` end a turn. `tokens` look like tokens
    in the prompts. `system`: the template takes a system message. `lead` is the begin of an answer that is missing
    from the template's generation prompt.
    """

    thought: tuple[str, str] | None
    answer: tuple[str, str] | None
    stops: tuple[str, ...]
    tokens: tuple[str, ...]
    system: bool
    lead: str = ""


def marks_in(template: str) -> tuple[str, ...]:
    """The marks that a template's own text names: tokens by their shape, and the tags of thoughts."""
    return tuple(dict.fromkeys([*_SHAPED.findall(template), *(tag for tag in _THINK if tag in template)]))


def find_turns(probes: Probes, words: Sequence[str]) -> FoundTurns:
    """The marks of turns in the probes. `words` are the marks in the template's own text."""
    head, _, tail = (probes.answer(said=SAID) or "").partition(SAID)
    header = common_start(head, probes.answer(FIRST) or probes.opening() or "")
    thought = _thought(probes, words, header)
    marks = special(tail)
    before = head[len(header) :].strip()
    answer = None
    if special(before) and len(marks) > 1 and (thought is None or thought[0].strip() not in before):
        answer = (before, tail[: tail.index(marks[0]) + len(marks[0])].strip())
        marks = marks[1:]
    stops = tuple(marks[:1]) or _stops(probes, tail)
    return FoundTurns(
        thought, answer, stops, _tokens(probes, words), _takes_system(probes), _lead(probes, head, header, thought)
    )


def _lead(probes: Probes, head: str, header: str, thought: tuple[str, str] | None) -> str:
    """The end that the prompt needs for a template without a generation prompt: otherwise the model would have to write
    its own header, or would continue the user's text.
    """
    if probes.opening() != "":
        return ""
    lead = header if probes.answer(FIRST) else head
    for opened in filter(None, (thought[0].strip() if thought else "", _THINK[0])):
        lead = lead.partition(opened)[0]
    return lead.rstrip(" ") if lead.strip() else ""


def _thought(probes: Probes, words: Sequence[str], header: str) -> tuple[str, str] | None:
    """The tags around reasoning. They are the marks after the `header` of an answer; if a header already contains them,
    their names match.
    """
    for told in (
        probes.answer(said=SAID, thought=THOUGHT),
        probes.answer(FIRST, thought=THOUGHT),
    ):
        before, shown, behind = (told or "").partition(THOUGHT)
        tags, ends = special(before), special(behind)
        if not shown or not tags or not ends:
            continue
        new = before[len(common_start(before, header)) :]
        if special(new):
            begin = new.lstrip()
        elif _letters(tags[-1]) == _letters(ends[0]):
            begin = before[before.rindex(tags[-1]) :]
        else:
            continue
        rest = behind[behind.index(ends[0]) + len(ends[0]) :]
        return begin, behind[: len(behind) - len(rest)] + rest[: len(rest) - len(rest.lstrip())]
    return ("<think>\n", "\n</think>\n\n") if _THINK[1] in words else None


def _letters(tag: str) -> str:
    return "".join(filter(str.isalpha, tag))


def _stops(probes: Probes, tail: str) -> tuple[str, ...]:
    """The end of a turn without a mark that looks like a token: the text there, or else the begin of the turns that
    can follow.
    """
    if tail.strip():
        return (tail.strip(),) if len(tail.strip()) <= _MAX_STOP else ()
    called = special(probes.answer(FIRST) or "")
    found: list[str] = []
    for next_, answer, last in (
        ({"role": "user", "content": OUTPUT}, assistant(said=SAID), SAID),
        ({"role": "tool", "tool_call_id": FIRST.id, "content": OUTPUT}, assistant(FIRST), "Klem"),
    ):
        try:
            behind = probes.text(answer, next_).rpartition(last)[2].partition(OUTPUT)[0]
        except TemplateFailureError:
            continue
        found += [word for word in special(behind) if _SHAPED.fullmatch(word) and word not in called][:1]
    return tuple(dict.fromkeys(found))


def _tokens(probes: Probes, words: Sequence[str]) -> tuple[str, ...]:
    texts = [probes.opening(), probes.answer(FIRST, SECOND), probes.answer(FIRST), probes.answer(said=SAID)]
    texts.append(probes.answer(FIRST, said=SAID, thought=THOUGHT))
    found: Iterable[str] = [word for text in texts for word in special(text or "")]
    return tuple(dict.fromkeys(word for word in (*found, *words) if not any(own in word for own in _WORDS)))


def _takes_system(probes: Probes) -> bool:
    try:
        return OUTPUT in probes.prompt([{"role": "system", "content": OUTPUT}, {"role": "user", "content": USER}])
    except TemplateFailureError:
        return False
