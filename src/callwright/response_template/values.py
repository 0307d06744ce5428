"""Converts the text of a whole field to the value that its declaration describes."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from callwright.calls.coerce import node_text
from callwright.response_template.declaration import Field, FieldArgs, ValueParser
from callwright.response_template.pattern import Pattern
from callwright.tolerant_json.codec import NotJsonError, decode, encode
from callwright.tolerant_json.reader import read_json
from callwright.tolerant_json.tree import Node

# A JSON value preserves the model's bytes; derived values are trees of these.
Value: TypeAlias = "Node | str | Mapping[str, Value] | Sequence[Value] | None"

_PLACEHOLDER = re.compile(r"\{(\w+(?:\.\w+)*)\}")
# The most steps per character in the search for tags: text that an expression makes it read again counts.
_MAX_STEPS_PER_CHARACTER: Final = 16
# A tag is searched within this many characters first, then within twice as many.
_MIN_WINDOW: Final = 32


def read_value(field: Field, body: str) -> Value:
    """The value of a field; None if it does not match the declaration."""
    match field.content:
        case "json":
            return _json(body, field.args)
        case "xml-inline":
            assert field.tag is not None
            return _merged([(key, value) for key, value, _ in tags(field.tag, body)[0]], field.args)
        case "kv-lines":
            return _merged(lines(body, field.args)[0], field.args)
        case "text" | "int" | "float" | "bool":
            return body.strip() if field.args.strip else body


def is_strict(field: Field, body: str) -> bool:
    """Whether the JSON of a field needs no repair."""
    for begin, end in field.args.string_delims:
        body = _with_strings(body, begin, end)
    try:
        decode(body)
    except NotJsonError:
        return False
    return True


def beside(field: Field, body: str) -> tuple[str, list[str]]:
    """The text between the names and values of a field, and the names that are repeated with another value."""
    if field.content == "kv-lines":
        pairs, rest = lines(body, field.args)
    elif field.content == "xml-inline" and field.tag is not None:
        found, _ = tags(field.tag, body)
        pairs = [(key, value) for key, value, _ in found]
        spans = [span for _, _, span in found]
        ends, begins = [0, *(end for _, end in spans)], [*(begin for begin, _ in spans), len(body)]
        rest = "".join(body[end:begin] for end, begin in zip(ends, begins, strict=True))
    else:
        return "", []
    given: dict[str, str] = {}
    merges = field.args.merge_duplicates
    return rest, [key for key, value in pairs if given.setdefault(key, value) != value and not merges]


def transform(field: Field, value: Value, groups: Mapping[str, str]) -> Sequence[Value] | None:
    """Apply the transform of a field to its value and the groups of its delimiters: one value for each call; None if
    the value lacks something the transform needs.
    """
    try:
        if not field.each:
            scope = {**groups, "content": value}
            return [value if field.transform is None else _filled(field.transform, scope)]
        items = [item.value for item in value.items] if isinstance(value, Node) and value.kind == "array" else None
        if items is None:
            return None
        return [
            _filled(field.transform, {**groups, **{member.name: member.value for member in item.members}})
            for item in items
        ]
    except KeyError:
        return None


def json_of(value: Value) -> str:
    """A value as JSON text."""
    match value:
        case Node():
            return value.text()
        case str() | None:
            return encode(value).decode()
        case Mapping():
            return "{" + ",".join(f"{encode(key).decode()}:{json_of(each)}" for key, each in value.items()) + "}"
    return "[" + ",".join(map(json_of, value)) + "]"


def parsed(text: str, parser: ValueParser | None) -> Value:
    """A value between tags, or after the name on its line, if no schema declares its type."""
    if parser is None:
        return text
    bare = text.strip() if parser.args.get("strip", True) else text
    if parser.name == "text" or not bare:
        return bare
    node = read_json(bare.lower() if parser.name == "bool" else bare)
    if node is None or (node.kind == "word" and parser.name == "json"):
        return bare
    return node if node.kind not in ("half", "missing") else bare


def _json(body: str, args: FieldArgs) -> Node | None:
    for begin, end in args.string_delims:
        body = _with_strings(body, begin, end)
    return read_json(body.strip())


def _with_strings(body: str, begin: str, end: str) -> str:
    """A text whose delimited strings are written as in JSON."""
    out: list[str] = []
    at = 0
    while (opened := body.find(begin, at)) >= 0 and (closed := body.find(end, opened + len(begin))) >= 0:
        out += (body[at:opened], encode(body[opened + len(begin) : closed]).decode())
        at = closed + len(end)
    return "".join([*out, body[at:]])


def tags(pattern: Pattern, body: str) -> tuple[list[tuple[str, str, tuple[int, int]]], bool]:
    """The tags in a text, as name, value and place, and whether all of it was searched."""
    found: list[tuple[str, str, tuple[int, int]]] = []
    at, size, steps = 0, _MIN_WINDOW, len(body) * _MAX_STEPS_PER_CHARACTER
    while at <= len(body):
        window = body[at : at + size]
        last = at + len(window) == len(body)
        steps -= len(window)
        if steps < 0:
            return found, False
        match = pattern.find(window, "nothing" if last else "more", first=not at)
        if match is None and last:
            break
        if match is None or match.open:
            at += match.start if match else len(window)
            size *= 2
            continue
        groups = {name: window[begin:end] for name, (begin, end) in match.groups.items()}
        found.append((groups.get("key", ""), groups.get("value", ""), (at + match.start, at + match.end)))
        at += max(match.end, 1)
        size = _MIN_WINDOW
    return found, True


def lines(body: str, args: FieldArgs) -> tuple[list[tuple[str, str]], str]:
    """The names and values, one pair per line, and the lines without a separator."""
    found: list[tuple[str, str]] = []
    others: list[str] = []
    for line in body.split(args.line_sep):
        key, separator, value = line.partition(args.kv_sep)
        if separator:
            found.append((key.strip(), value.strip()) if args.strip else (key, value))
        else:
            others.append(line)
    return found, args.line_sep.join(others)


def _merged(pairs: Sequence[tuple[str, str]], args: FieldArgs) -> dict[str, Value]:
    """The last value of each name, or all of them as a list."""
    out: dict[str, list[Value]] = {}
    for key, text in pairs:
        out.setdefault(key, []).append(parsed(text, args.value_parser))
    merges = args.merge_duplicates
    return {key: values if merges and len(values) > 1 else values[-1] for key, values in out.items()}


def _filled(transform: Any, scope: Mapping[str, Value]) -> Value:
    """A transform with its placeholders replaced. Raises `KeyError` for one that is not there."""
    match transform:
        case Mapping():
            return {str(key): _filled(each, scope) for key, each in transform.items()}
        case list():
            return [_filled(each, scope) for each in transform]
        case str():
            whole = _PLACEHOLDER.fullmatch(transform)
            return _look_up(scope, whole[1].split(".")) if whole else transform
    return read_json(encode(transform).decode())


def _look_up(scope: Mapping[str, Value], path: Sequence[str]) -> Value:
    value: Value = scope[path[0]]
    for key in path[1:]:
        if isinstance(value, Node | Mapping):
            value = value.get(key)
        if value is None:
            raise KeyError(key)
    return value


def text_in(value: Value) -> str | None:
    """The text that a value is, if it is one."""
    return node_text(value) if isinstance(value, Node) else value if isinstance(value, str) else None
