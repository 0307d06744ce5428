"""Finds how a chat template writes calls: as a `CallLayout`, from the rendered probes.

Three bodies are known: JSON, parameters between tags, and Python calls. The caller (`dialect.py`) compares the text of
the template with that of the layout, and rejects a layout that only looks right.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from callwright.chat_template.probes import FIRST, SAID, SECOND, Probes
from callwright.chat_template.repeats import (
    COUNTED,
    INDEX,
    NUMBER,
    Repeats,
    common_end,
    common_start,
    pieces,
    special,
    split_repeats,
)
from callwright.conversation import Call
from callwright.layout.calls import JSON, ArgumentsLayout, CallLayout, TaggedArguments
from callwright.layout.literal import PythonArguments, python_literal

_NAME: Final = "\ue000"
_QUOTED_NAME: Final = "\ue001"
_ID: Final = "\ue002"
_QUOTED_ID: Final = "\ue003"
_KEY: Final = "\ue004"
_TYPE: Final = "\ue005"
# Values by their types, and what each template writes of them first.
_TYPED: Final = (
    ("integer", "sigma", "40961", "40961"),
    ("array", "rho", '["Brux"]', r"""\[\s*["']Brux"""),
    ("object", "phi", '{"deep": 1}', r"""\{\s*["']deep"""),
    ("boolean", "theta", "true", "[tT]rue"),
)
# The text before an optional id: a key of an object, or a token.
_BEFORE_ID: Final = re.compile(rf'((?:,\s*"\w+":\s*)|(?:\[[A-Z_]+\]))?([{_ID}{_QUOTED_ID}])')


class FoundCalls(Struct, frozen=True):
    """How calls are written, and the gap between a text and the calls after it."""

    layout: CallLayout
    gap: str = ""


def region(answer: str, said: str) -> str:
    """The calls in an answer: without the header that the answer `said` has, too, and without what ends a turn."""
    head, _, tail = said.partition(SAID)
    text = answer[len(common_start(head, answer)) :]
    ends = [at for stop in special(tail) if (at := text.rfind(stop)) > 0]
    if not ends:
        return text[: len(text) - len(common_end(tail, text))]
    return text[: min(ends)]


def find_calls(probes: Probes, thought: tuple[str, str] | None) -> FoundCalls | None:
    """The layout of calls; None if a template shows none, or writes them in an unknown way. `thought`: the marks
    around reasoning; empty reasoning is no part of the calls.
    """
    said = probes.answer(said=SAID)
    one = probes.answer(FIRST)
    if said is None or one is None or FIRST.name not in one:
        return None
    two = probes.answer(FIRST, SECOND)
    several = two is not None and SECOND.name in two and FIRST.name in two
    single = region(one, said)
    text = region(two, said) if several and two is not None else single
    layout = _in_json(text) or _in_python(text) or _between_tags(text, single, probes, said)
    if layout is None:
        return None
    opened = layout.open.lstrip()
    if thought is not None and opened.startswith(thought[0].strip()):
        opened = opened.partition(thought[1].strip())[2].lstrip()
    layout = replace(layout, open=opened, begin=layout.begin if opened else layout.begin.lstrip())
    return FoundCalls(layout, _gap(probes, layout))


def _gap(probes: Probes, layout: CallLayout) -> str:
    both = probes.answer(FIRST, said=SAID) or ""
    first = layout.text([FIRST])
    before, found, _ = both.partition(SAID)[2].partition(first)
    return before if found and not before.strip() else ""


def _in_json(text: str) -> CallLayout | None:
    """Calls whose arguments are a JSON object."""
    first = _object(text, _arguments(FIRST), 0)
    if first is None:
        return None
    second = _object(text, _arguments(SECOND), first[1])
    marked = [_marked(text[: first[0]], FIRST)]
    marked += [_marked(text[first[1] : second[0]], SECOND, FIRST), _marked(text[second[1] :], SECOND)] if second else []
    if second is None:
        marked.append(_marked(text[first[1] :], FIRST))
        return _layout(Repeats("", marked[0], marked[1], "", ""), JSON, several=False)
    return _layout(split_repeats(*marked), JSON)


def _in_python(text: str) -> CallLayout | None:
    """Calls as `find_quark(zeta='Brux', omega='Klem')`."""
    first = re.search(rf"""{FIRST.name}\(zeta=(["'])Brux\1, ?omega=(["'])Klem\2\)""", text)
    if first is None:
        return None
    arguments = PythonArguments(_single_quoted) if first[1] == "'" else PythonArguments()
    second = re.search(rf"""{SECOND.name}\(kappa=(["'])Fnod\1\)""", text)
    if second is None:
        around = Repeats("", text[: first.start()], text[first.end() :], "", "")
    else:
        around = split_repeats(text[: first.start()], text[first.end() : second.start()], text[second.end() :])
    around = replace(around, begin=f"{around.begin}{_NAME}(", end=f"){around.end}")
    return _layout(around, arguments, several=second is not None)


def _single_quoted(value: Any) -> str:
    """A value as Python writes it."""
    return repr(value) if isinstance(value, str | list | dict) else python_literal(value)


def _between_tags(text: str, single: str, probes: Probes, said: str) -> CallLayout | None:
    """The layout of calls with parameters between tags, and unescaped text."""
    found = re.search(rf"{FIRST.name}(.*?)zeta(.*?)Brux(.*?)omega(.*?)Klem", single, re.DOTALL)
    if found is None or found[2] != found[4] or not found[2].strip():
        return None
    inside = split_repeats(found[1], found[3], single[found.end() :])
    value, types = _value(found[2], probes, said)
    arguments = TaggedArguments(
        begin=_slots(f"{inside.begin}{_KEY}{value}"), end=inside.end, between=inside.between, types=types
    )
    first, second = text.find(FIRST.name), text.find(SECOND.name)
    before = _marked(text[:first], FIRST)
    if second < 0:
        around = Repeats("", before, inside.close, "", "")
    else:
        between = text[text.find("Klem", first) + len("Klem") : second].removeprefix(inside.end)
        behind = text[text.find("Fnod", second) + len("Fnod") :].removeprefix(inside.end)
        around = split_repeats(before, _marked(between, SECOND, FIRST), behind)
    opened = _marked(inside.open, FIRST)
    if second >= 0:
        opened = _number_slots(opened, _marked(text[second + len(SECOND.name) :], SECOND))
    around = replace(around, begin=around.begin + _NAME + opened)
    return _layout(around, arguments, several=second >= 0)


def _number_slots(head: str, other: str) -> str:
    """The text after a name, with a slot for the number of the call: `other` begins with that of the second."""
    mine = pieces(head)
    return "".join(COUNTED.get(pair, pair[0]) for pair in zip(mine, pieces(other)[: len(mine)], strict=False))


def _value(between: str, probes: Probes, said: str) -> tuple[str, Mapping[str, str]]:
    """The text between a key and its value, and the words for the JSON types of values, if there are any."""
    words = re.split(r"(\w+)", between)
    types: dict[str, str] = {}
    place: int | None = None
    for type_, key, value, shown in _TYPED:
        answer = probes.answer(Call(FIRST.name, f'{{"{key}": {value}}}', id=FIRST.id))
        found = re.search(rf"{key}(.*?){shown}", region(answer, said), re.DOTALL) if answer else None
        others = re.split(r"(\w+)", found[1]) if found else words
        differ = [at for at, (word, other) in enumerate(zip(words, others, strict=False)) if word != other]
        if len(words) != len(others) or len(differ) > 1 or (place is not None and differ not in ([], [place])):
            return between, {}
        if differ:
            place = differ[0]
            types[type_] = others[place]
    if place is None:
        return between, {}
    named = {"string": words[place], **types}
    if len({*types.values()}) == 1 and len(types) == len(_TYPED):
        named = {"string": words[place], "": next(iter(types.values()))}
    return "".join([*words[:place], _TYPE, *words[place + 1 :]]), named


def _arguments(call: Call) -> Any:
    return json.loads(call.arguments)


def _object(text: str, wanted: Any, start: int) -> tuple[int, int] | None:
    """The start and end of a JSON object equal to `wanted`, or None."""
    decoder = json.JSONDecoder()
    at = text.find("{", start)
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except ValueError:
            value, end = None, 0
        if value == wanted:
            return at, end
        at = text.find("{", at + 1)
    return None


def _marked(text: str, *calls: Call) -> str:
    """A text with slots for the names and ids of calls."""
    for call in calls:
        for word, slot, quoted in ((call.name, _NAME, _QUOTED_NAME), (call.id, _ID, _QUOTED_ID)):
            text = text.replace(f'"{word}"', quoted).replace(word, slot)
    return text


def _layout(around: Repeats, arguments: ArgumentsLayout, *, several: bool = True) -> CallLayout | None:
    if _NAME not in around.begin and _QUOTED_NAME not in around.begin:
        return None
    return CallLayout(
        open=around.open,
        begin=_slots(around.begin),
        arguments=arguments,
        end=_slots(around.end),
        between=around.between,
        close=around.close.rstrip(),
        several=several,
    )


def _slots(text: str) -> str:
    """A text with the slots of a layout."""
    text = _BEFORE_ID.sub(lambda found: f"${{{found[1] or ''}id{':json' if found[2] == _QUOTED_ID else ''}}}", text)
    written = {_NAME: "name", _QUOTED_NAME: "name:json", _KEY: "key", _TYPE: "type", NUMBER: "number", INDEX: "index"}
    for slot, name in written.items():
        text = text.replace(slot, f"${{{name}}}")
    return text
