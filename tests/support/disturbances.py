"""One slip in an output, at each place: of a tag, a delimiter, a character, a value.

`changes` yields the output of a shape with each slip. `wrong_call` finds a complete call with other arguments than the
shape has, and without a problem, unless the format writes exactly this output for that call.
"""

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

import callwright
from callwright.reading.collect import Turn
from tests.support.certainty import Arguments, Shape, tools_of, write

__all__ = ["CLASSES", "Change", "changes", "wrong_call"]

CLASSES: Final = ("tags", "characters", "values")
# A tag of any format; a delimiter of JSON or of a program.
_TAG: Final = re.compile(
    r"(?:\]<\]minimax\[>\[)?<[^<>\n]*>|<\|(?:open|close)\|>[^<>\n]*<\|sep\|>|\[[A-Z_]+\]|```\w*|>>>|functools"
)
_DELIMITER: Final = re.compile(r"""[{}\[\]():,="']""")
# What takes the place of a character: one that means something to some format, or nothing.
_OTHERS: Final = "\"'<>{}[]():,=\\/ x1\n|`"


class Change(NamedTuple):
    """An output with one slip: its class (of `CLASSES`), the slip and its place."""

    output: str
    kind: str
    how: str
    at: int


class Token(NamedTuple):
    """A tag or a delimiter, and its place."""

    text: str
    at: int

    @property
    def end(self) -> int:
        """The place after it."""
        return self.at + len(self.text)


def changes(shape: Shape, dialect: str) -> Iterator[Change]:
    """The output of a shape with each slip. It never equals the output without."""
    output = write(shape, dialect)
    for change in (*_of_tags(shape, output), *_of_characters(output), *_of_values(shape, output, dialect)):
        if change.output != output:
            yield change


def _of_tags(shape: Shape, output: str) -> Iterator[Change]:
    tokens = _tokens(shape, output)
    texts = list(dict.fromkeys(token.text for token in tokens))
    for number, (text, at) in enumerate(tokens):
        before, behind = output[:at], output[at + len(text) :]

        def change(how: str, instead: str, before: str = before, behind: str = behind, at: int = at) -> Change:
            return Change(before + instead + behind, "tags", how, at)

        yield change(f"{text} left out", "")
        yield change(f"{text} doubled", text * 2)
        yield change(f"{text} doubled on two lines", f"{text}\n{text}")
        if len(text) > 1:
            middle = len(text) // 2
            yield change(f"{text} misspelled", text[:middle] + text[middle + 1 :])
            yield change(f"{text} misspelled", text[:middle] + "x" + text[middle:])
            yield change(f"{text} without its end", text[:-1])
            yield change(f"{text} without its begin", text[1:])
        for other in texts[number % 3 :: 3]:
            yield change(f"{text} replaced by {other}", other)
        if number + 1 < len(tokens):
            after = tokens[number + 1]
            between = output[at + len(text) : after.at]
            swapped = before + after.text + between + text + output[after.end :]
            yield Change(swapped, "tags", f"{text} swapped with {after.text}", at)


def _tokens(shape: Shape, output: str) -> list[Token]:
    """The tags of an output, and the delimiters outside of tags, keys and values."""
    found = [Token(tag.group(), tag.start()) for tag in _TAG.finditer(output)]
    taken = {place for token in found for place in range(token.at, token.end)}
    for _, arguments in shape.calls:
        for text in _texts(arguments):
            for form in (json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], text):
                for place in re.finditer(re.escape(form), output) if form else ():
                    taken |= set(range(place.start(), place.end()))
    delimiters = (Token(one.group(), one.start()) for one in _DELIMITER.finditer(output) if one.start() not in taken)
    return sorted((*found, *delimiters), key=lambda token: token.at)


def _texts(value: object) -> Iterator[str]:
    match value:
        case dict():
            for key, member in value.items():
                yield str(key)
                yield from _texts(member)
        case list():
            for item in value:
                yield from _texts(item)
        case str():
            yield value
        case _:
            pass


def _of_characters(output: str) -> Iterator[Change]:
    for at, char in enumerate(output):
        before, behind = output[:at], output[at + 1 :]
        yield Change(before + behind, "characters", f"{char!r} left out", at)
        yield Change(before + char * 2 + behind, "characters", f"{char!r} doubled", at)
        yield Change(before + behind[:1] + char + behind[1:], "characters", f"{char!r} swapped", at)
        other = _OTHERS[(at * 7) % len(_OTHERS)]
        yield Change(before + other + behind, "characters", f"{char!r} replaced by {other!r}", at)


def _of_values(shape: Shape, output: str, dialect: str) -> Iterator[Change]:
    """Each value of the first call begun again, and cut before the second call."""
    second = callwright.write(
        [{"name": shape.calls[1][0], "arguments": shape.calls[1][1]}], dialect=dialect, tools=tools_of(shape)
    )
    first = callwright.write(
        [{"name": shape.calls[0][0], "arguments": shape.calls[0][1]}], dialect=dialect, tools=tools_of(shape)
    )
    same = next((at for at, (one, other) in enumerate(zip(first, output, strict=False)) if one != other), 0)
    for key, value in shape.calls[0][1].items():
        begin, start, end = _place(output, shape.calls[0][0], key, value)
        if begin < 0:
            continue
        for size in range(1, end - start, max(1, (end - start) // 6)):
            cut, begun = output[: start + size], output[start : start + size]
            for gap in ("", "\n"):
                again = output[:start] + begun + gap + output[begin:]
                yield Change(again, "values", f"{key} begun again", start + size)
                yield Change(cut + gap + second, "values", f"{key} cut, then the next call", start + size)
            yield Change(cut + output[same:], "values", f"{key} cut, then the rest", start + size)


def _place(output: str, name: str, key: str, value: object) -> tuple[int, int, int]:
    """The places of a parameter with its tag, of its value, and of the value's end; -1 if not known."""
    named = output.find(key, output.find(name) + len(name))
    forms = (str(value), json.dumps(value, ensure_ascii=False), json.dumps(value, ensure_ascii=False)[1:-1])
    found = [(output.find(form, named + len(key)), form) for form in forms]
    start, form = min(((at, form) for at, form in found if at >= 0), default=(-1, ""))
    if named < 0 or start < 0:
        return -1, -1, -1
    around = (tag.start() for tag in _TAG.finditer(output, 0, start) if tag.start() <= named <= tag.end())
    begin = next(around, named - (output[named - 1] in "\"'"))
    return begin, start, start + len(form)


# --- results ---


def wrong_call(turn: Turn, shape: Shape, change: Change, dialect: str, *, named: bool = False) -> str:
    """A complete call that is not in the shape and has no problem (or may have, if `named`); `""` without one."""
    for index, call in enumerate(turn.calls):
        has_problem = any(problem.call in (None, index) for problem in turn.problems)
        if not call.complete or (has_problem and not named):
            continue
        arguments = _json(call.arguments)
        if (call.name, arguments) in shape.calls or _is_all(turn, change.output, shape, dialect):
            continue
        if not isinstance(arguments, dict) or not _writes(change.output, call.name, arguments, shape, dialect):
            return f"{call.name} {call.arguments}"
    return ""


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _is_all(turn: Turn, output: str, shape: Shape, dialect: str) -> bool:
    """Whether the format writes this output for all its calls, in any order of the names: some formats sort."""
    calls = [{"name": call.name, "arguments": call.arguments} for call in turn.calls]
    if any(not isinstance(_json(call.arguments), dict) for call in turn.calls):
        return False
    written = callwright.write(calls, dialect=dialect, tools=tools_of(shape))
    return sorted(_squeezed(written)) == sorted(_squeezed(output))


def _writes(output: str, name: str, arguments: Arguments, shape: Shape, dialect: str) -> bool:
    """Whether the format writes a part of this output for a call, but for white space."""
    offered = json.dumps(tools_of(shape))
    cores = (_core(name, json.dumps(arguments), number, dialect, offered) for number in range(len(shape.calls)))
    squeezed = _squeezed(output)
    return any(core and core in squeezed for core in cores)


@lru_cache(maxsize=4096)
def _core(name: str, arguments: str, number: int, dialect: str, tools: str) -> str:
    """The text of a call of this number, from its name to the end of its arguments, without white space."""
    call, offered = {"name": name, "arguments": arguments}, json.loads(tools)
    empty = {"name": name, "arguments": "{}"}
    one = callwright.write([*[empty] * number, call], dialect=dialect, tools=offered)
    two = callwright.write([*[empty] * number, call, empty], dialect=dialect, tools=offered)
    same = next((at for at, (here, there) in enumerate(zip(one, two, strict=False)) if here != there), len(one))
    return _squeezed(one[_name_of_last(one, name, number) : same])


def _name_of_last(written: str, name: str, number: int) -> int:
    """The first place of the name in the last of several calls, each of which names it as often."""
    places = [found.start() for found in re.finditer(re.escape(name), written)]
    return places[len(places) * number // (number + 1)] if places else 0


# What means nothing: white space, how a character is escaped, CDATA; in a program a comma before a bracket, and two
# texts side by side.
_NOTHING: Final = re.compile(r"""(?:\s|\\[nt]?)+|<!\[CDATA\[|\]\]>|,(?=\s*[\])}])|(?<=[\w}])\"\"(?=\W)""")


def _squeezed(text: str) -> str:
    return _NOTHING.sub("", text)
