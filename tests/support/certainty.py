"""What must hold of every format when an output is disturbed: cut off, with words put between its tags, with a
parameter given twice.

A call that is `complete` has exactly the arguments that were meant, whatever is named beside it; and the words that
were put in are found somewhere. An output that is byte for byte what the format writes for another call is no
violation: then that is the call.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import callwright
from callwright.reading.collect import Turn

__all__ = ["SHAPES", "Disturbed", "Shape", "cut", "inserted", "lost_words", "tools_of", "twice", "violation", "write"]

Arguments: TypeAlias = dict[str, Any]
WORDS: Final = ("zanzibar", "quokka")


class Shape(NamedTuple):
    """Two calls of two tools, and the schemas of their parameters."""

    name: str
    calls: tuple[tuple[str, Arguments], tuple[str, Arguments]]
    schemas: tuple[dict[str, Any], dict[str, Any]]


class Disturbed(NamedTuple):
    """An output that was disturbed at a place."""

    output: str
    at: int
    how: str


def _object(required: Sequence[str] = (), **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


_TEXT: Final = {"type": "string"}
_WHOLE: Final = {"type": "integer"}
SHAPES: Final = (
    Shape(
        "texts and numbers",
        (
            ("archive_folder", {"folder": "/srv/data/old", "depth": 5120, "note": "keep the newest"}),
            ("read_journal", {"unit": "boot"}),
        ),
        (_object(["folder"], folder=_TEXT, depth=_WHOLE, note=_TEXT), _object(["unit"], unit=_TEXT)),
    ),
    Shape(
        "nested",
        (
            (
                "plan_route",
                {
                    "stops": [{"place": "Tromsø", "minutes": 15}, {"place": "Narvik", "minutes": 40}],
                    "options": {"ferry": True, "tolls": None, "weights": [1.5, 2]},
                },
            ),
            ("read_journal", {"unit": "kernel", "tail": -1}),
        ),
        (
            _object(
                ["stops"],
                stops={"type": "array", "items": _object(place=_TEXT, minutes=_WHOLE)},
                options=_object(
                    ferry={"type": "boolean"},
                    tolls={"type": ["boolean", "null"]},
                    weights={"type": "array", "items": {"type": "number"}},
                ),
            ),
            _object(["unit"], unit=_TEXT, tail=_WHOLE),
        ),
    ),
    Shape(
        "unions and enums",
        (
            ("set_limit", {"value": "auto", "unit": "kB", "until": None, "retry": False}),
            ("set_limit", {"value": 250, "unit": "MB", "until": "noon"}),
        ),
        (
            _object(
                ["value"],
                value={"anyOf": [_WHOLE, _TEXT]},
                unit={"enum": ["kB", "MB", "GB"]},
                until={"type": ["string", "null"]},
                retry={"type": "boolean"},
            ),
        )
        * 2,
    ),
    Shape(
        "unicode and lines",
        (
            ("save_note", {"title": "Füße & 東京 “now”", "body": 'first line\n  second: "quoted", it\'s\n\tthird {x}'}),
            ("save_note", {"title": "№2", "body": 'if a < b and b > c:\n    print(f"{a}")'}),
        ),
        (_object(["title", "body"], title=_TEXT, body=_TEXT),) * 2,
    ),
)


def tools_of(shape: Shape) -> list[dict[str, Any]]:
    """The tools that a shape calls, in Chat's form."""
    schemas = {name: schema for (name, _), schema in zip(shape.calls, shape.schemas, strict=True)}
    return [{"type": "function", "function": {"name": name, "parameters": schema}} for name, schema in schemas.items()]


def write(shape: Shape, dialect: str) -> str:
    """What the model writes to make the calls of a shape."""
    return callwright.write(
        [{"name": name, "arguments": arguments} for name, arguments in shape.calls],
        dialect=dialect,
        tools=tools_of(shape),
    )


def cut(shape: Shape, dialect: str) -> Iterator[Disturbed]:
    """The output, ended before each of its characters."""
    output = write(shape, dialect)
    for at in range(len(output)):
        yield Disturbed(output[:at], at, "cut")


def inserted(shape: Shape, dialect: str) -> Iterator[Disturbed]:
    """The output with words between its tags: at each place outside of names, keys and values, and outside of tags."""
    output = write(shape, dialect)
    inside = _inside(shape, output)
    words = f" {' '.join(WORDS)} "
    for at in range(len(output) + 1):
        if at not in inside:
            yield Disturbed(output[:at] + words + output[at:], at, "insert")


def twice(shape: Shape, dialect: str) -> Iterator[Disturbed]:
    """The output with a parameter of the first call given again, with another value."""
    (name, arguments), second = shape.calls
    for key, value in arguments.items():
        twin = f"q{key[1:]}"  # it is written under a name of the same length, which becomes the key
        given = {**arguments, twin: _another(value)}
        output = callwright.write(
            [{"name": name, "arguments": given}, {"name": second[0], "arguments": second[1]}],
            dialect=dialect,
            tools=tools_of(shape),
        )
        yield Disturbed(output.replace(twin, key), 0, f"{key} twice")


def lost_words(turn: Turn) -> list[str]:
    """The words that were put in and are nowhere in what was read."""
    found = " ".join(
        [
            turn.content or "",
            turn.reasoning or "",
            *(call.name + call.arguments for call in turn.calls),
            *(f"{problem.detail} {problem.text}" for problem in turn.problems),
        ]
    )
    return [word for word in WORDS if word not in found]


def violation(turn: Turn, shape: Shape, disturbed: Disturbed, dialect: str) -> str | None:
    """A complete call that is not one of those that were meant; None if there is none."""
    meant = [(name, arguments) for name, arguments in shape.calls]
    for call in turn.calls:
        if not call.complete:
            continue
        try:
            arguments = json.loads(call.arguments)
        except ValueError:
            arguments = call.arguments
        if (call.name, arguments) not in meant and not _is_written(turn, disturbed, dialect):
            kinds = sorted({problem.kind for problem in turn.problems})
            return f"{call.name} {call.arguments!r:.200} {kinds}"
    return None


def _is_written(turn: Turn, disturbed: Disturbed, dialect: str) -> bool:
    """Whether the output is what the format writes for the calls that were read."""
    calls = []
    for call in turn.calls:
        try:
            arguments = json.loads(call.arguments)
        except ValueError:
            return False
        if not isinstance(arguments, dict):
            return False
        calls.append({"name": call.name, "arguments": arguments})
    written = callwright.write(calls, dialect=dialect)
    return _squeezed(disturbed.output) in (_squeezed(written), _squeezed((turn.content or "") + written))


def _squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


def _inside(shape: Shape, output: str) -> set[int]:
    """The places inside of names, keys and values of an output, and inside of the words and tags of its format."""
    spans: set[int] = set()
    texts = {name for name, _ in shape.calls}
    for _, arguments in shape.calls:
        texts |= set(_texts(arguments))
    forms = {
        form for text in texts for form in (text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1])
    }
    forms |= {repr(text)[1:-1] for text in texts}
    for form in filter(None, forms):
        for found in re.finditer(re.escape(form), output):
            spans |= set(range(found.start(), found.end() + 1))
    for found in re.finditer(r"<[^<>\n]*>|\[[A-Z_]+\]|\w+|[\w|｜▁]+", output):
        spans |= set(range(found.start() + 1, found.end()))
    return spans


def _texts(value: Any) -> Iterator[str]:
    match value:
        case dict():
            for key, member in value.items():
                yield key
                yield from _texts(member)
        case list():
            for item in value:
                yield from _texts(item)
        case str():
            yield value
        case _:
            yield json.dumps(value)
            yield str(value)


def _another(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case str():
            return value + " other"
        case None:
            return True
        case list():
            return value[:1]
        case _:
            return {}
