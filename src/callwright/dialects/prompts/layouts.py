r"""Layouts of prompts: text with slots, compiled once.

    «<think>\n$thought\n</think>\n\n»$text«text calls¦\n»$calls

`$text` is the value of a slot, `$text:trim` without blanks at its ends, `$text:lines`
without line feeds there, `$text:json` as JSON, `$text:attribute` as in an
attribute. A group `«…»` is written
if each slot in it has a value. With `«conditions¦…»` it is written if each of the conditions holds, which are names of
values, `!name` for one that is missing, `a|b` for one of two; with `«conditions¦…¦…»` the last part is written
otherwise.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, TypeAlias

from msgspec import Struct

from callwright.prompt import Control, Prompt, PromptBuilder, Text, own_words

# The value of a slot is a text, or a function that appends it; that of a condition is true or false.
Values: TypeAlias = Mapping[str, Any]

_TOKEN: Final = re.compile(r"[«»¦]|\$[a-z_]+(?::(?:trim|lines|json|attribute))?")


class _Fixed(Struct, frozen=True):
    runs: tuple[tuple[type[Control] | type[Text], str], ...]
    text: str

    def put(self, out: PromptBuilder, values: Values) -> None:
        out.add(*self.runs)


class _Slot(Struct, frozen=True):
    name: str

    def put(self, out: PromptBuilder, values: Values) -> None:
        value = values[self.name]
        if type(value) is str:
            out.text(value)
        elif value:
            value(out)


class _TrimmedSlot(_Slot, frozen=True):
    def put(self, out: PromptBuilder, values: Values) -> None:
        out.text((values[self.name] or "").strip())


class _LinesSlot(_Slot, frozen=True):
    def put(self, out: PromptBuilder, values: Values) -> None:
        out.text((values[self.name] or "").strip("\n"))


class _JsonSlot(_Slot, frozen=True):
    def put(self, out: PromptBuilder, values: Values) -> None:
        out.json(json.dumps(values[self.name], ensure_ascii=False))


class _AttributeSlot(_Slot, frozen=True):
    def put(self, out: PromptBuilder, values: Values) -> None:
        out.text((values[self.name] or "").replace("&", "&amp;").replace('"', "&quot;"))


class _Group(Struct, frozen=True):
    tests: tuple[tuple[tuple[str, bool], ...], ...]
    then: tuple["_Step", ...]
    other: tuple["_Step", ...]

    def put(self, out: PromptBuilder, values: Values) -> None:
        steps = self.then
        for choices in self.tests:
            for name, wanted in choices:
                if bool(values[name]) is wanted:
                    break
            else:
                steps = self.other
                break
        for step in steps:
            step.put(out, values)


_Step: TypeAlias = _Fixed | _Slot | _Group
_SLOTS: Final[Mapping[str, type[_Slot]]] = {
    "": _Slot,
    "trim": _TrimmedSlot,
    "lines": _LinesSlot,
    "json": _JsonSlot,
    "attribute": _AttributeSlot,
}


class Layout(Struct, frozen=True):
    """A compiled layout; `names` are those of its slots and conditions."""

    steps: tuple[_Step, ...]
    names: frozenset[str]

    def put(self, out: PromptBuilder, values: Values) -> None:
        """Append the layout with these values."""
        for step in self.steps:
            step.put(out, values)

    def text(self, values: Values) -> str:
        """The layout with these values as plain text."""
        out = PromptBuilder()
        self.put(out, values)
        return Prompt(out.pieces(), ()).text

    def around(self, slot: str) -> tuple[str, str] | None:
        """The fixed text before and after a slot in its group; None without a group."""
        for step in _groups(self.steps):
            names = [inner.name if isinstance(inner, _Slot) else "" for inner in step.then]
            if slot in names:
                at = names.index(slot)
                return _fixed(step.then[:at]), _fixed(step.then[at + 1 :])
        return None

    def between(self, one: str, other: str) -> str:
        """The fixed text that is written if both values are there."""
        both = {((one, True),), ((other, True),)}
        return "".join(_fixed(step.then) for step in _groups(self.steps) if {*step.tests} == both)


def _groups(steps: tuple[_Step, ...]) -> Iterator[_Group]:
    for step in steps:
        if isinstance(step, _Group):
            yield step
            yield from _groups(step.then)


def _fixed(steps: tuple[_Step, ...]) -> str:
    return "".join(step.text for step in steps if isinstance(step, _Fixed))


@cache
def compile_layout(text: str, controls: tuple[str, ...] = ()) -> Layout:
    """The layout of a text, in which the literals `controls` are control tokens."""
    parser = _Parser(text, controls)
    steps = parser.parts()[-1]
    return Layout(steps, frozenset(parser.names))


def put_each(layout: Layout, each: Sequence[Values], between: Layout | None, out: PromptBuilder) -> None:
    """Append a layout for each of these values."""
    for number, values in enumerate(each):
        if number and between is not None:
            between.put(out, values)
        layout.put(out, values)


class _Parser:
    def __init__(self, text: str, controls: tuple[str, ...]) -> None:
        self.names: set[str] = set()
        self._controls = controls
        self._text = text
        self._at = 0

    def parts(self, *, inside: bool = False) -> list[Any]:
        """The parts up to the end of the group, or of the text: each its steps, a first of several its conditions."""
        parts: list[Any] = []
        steps: list[_Step] = []
        begin = self._at
        while found := _TOKEN.search(self._text, self._at):
            fixed = self._text[self._at : found.start()]
            token = found.group()
            self._at = found.end()
            if token == "¦" and not parts:  # these are conditions
                parts.append(self._text[begin : found.start()])
                steps = []
                continue
            steps += self._cut(fixed)
            if token == "«":
                steps.append(self._group())
            elif token in "¦»":
                parts.append(tuple(steps))
                steps = []
                if token == "»":
                    assert inside, f"no group begins before » in {self._text!r}"
                    return parts
            else:
                name, _, form = token[1:].partition(":")
                self.names.add(name)
                steps.append(_SLOTS[form](name))
        assert not inside, f"a group has no end in {self._text!r}"
        return [(*steps, *self._cut(self._text[self._at :]))]

    def _group(self) -> _Group:
        conditions, *rest = self.parts(inside=True)
        if not rest:
            slots = [step.name for step in conditions if isinstance(step, _Slot)]
            return _Group(tuple(((name, True),) for name in slots), conditions, ())
        tests = tuple(
            tuple((name.removeprefix("!"), not name.startswith("!")) for name in word.split("|"))
            for word in conditions.split()
        )
        self.names |= {name for choices in tests for name, _ in choices}
        return _Group(tests, rest[0], rest[1] if len(rest) > 1 else ())

    def _cut(self, text: str) -> list[_Step]:
        runs = own_words(PromptBuilder(), text, self._controls).collected().runs
        return [_Fixed(tuple(runs), text)] if text else []  # type: ignore[arg-type]
