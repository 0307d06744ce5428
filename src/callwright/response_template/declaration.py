"""A declared `response_template`, checked: the delimiters of each field, and the use of its text."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

from msgspec import Meta, Struct

from callwright.calls.json_forms import ARGUMENT_KEYS, NAME_KEYS
from callwright.errors import ConfigError, did_you_mean
from callwright.response_template.expression import PatternError
from callwright.response_template.pattern import Pattern, compile_literals, compile_pattern
from callwright.settings.errors import SlipError, read_settings

Content: TypeAlias = Literal["text", "int", "float", "bool", "json", "xml-inline", "kv-lines"]
Role: TypeAlias = Literal["content", "reasoning", "calls", "other"]
# The form of the calls in a field: `object`, as JSON with name and arguments in it; `named`, the name at its beginning
# and then the arguments; `made`, by a transform of the whole field.
Form: TypeAlias = Literal["object", "named", "made"]

_ROLES: Final[Mapping[str, Role]] = {
    "content": "content",
    "thinking": "reasoning",
    "reasoning": "reasoning",
    "reasoning_content": "reasoning",
    "tool_calls": "calls",
}
_PLACEHOLDER = re.compile(r"\{(\w+(?:\.\w+)*)\}")
_WHOLE = "{content}"
# A quotation mark or backslash cannot begin a terminator of JSON: it is part of the JSON.
_NO_STOP: Final = ('"', "\\")
_Text: TypeAlias = Annotated[str, Meta(min_length=1)]
_Texts: TypeAlias = _Text | Annotated[list[_Text], Meta(min_length=1)]


class ValueParser(Struct, frozen=True, forbid_unknown_fields=True):
    """How a value between tags is read."""

    name: Content = "text"
    args: dict[str, Any] = {}


class FieldArgs(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`content_args` of all kinds of content."""

    strip: bool = True
    unquoted_keys: bool = False
    string_delims: list[tuple[_Text, _Text]] = []
    allow_non_json: bool = False
    tag_pattern: str | None = None
    merge_duplicates: bool = False
    line_sep: _Text = "\n"
    kv_sep: _Text = ":"
    value_parser: ValueParser | None = None


class _Declared(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A field as it is written."""

    open: _Texts | None = None
    open_pattern: str | None = None
    close: _Texts | None = None
    close_pattern: str | None = None
    content: Content = "text"
    content_args: FieldArgs = FieldArgs()
    repeats: bool = False
    join: str | None = None
    optional: bool = True
    transform: Any = None
    transform_each: bool = False


class _Whole(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The template as it is written, without its fields' own."""

    version: Literal[1] = 1
    defaults: dict[str, Any] = {}
    fields: dict[str, Any]
    start_anchor: _Texts | None = None
    start_anchor_pattern: str | None = None


class Delimiter(Struct, frozen=True):
    """The beginning or end of a field: literals, or a pattern."""

    literals: tuple[str, ...]
    pattern: Pattern

    @property
    def what(self) -> Pattern | tuple[str, ...]:
        """Itself, for a `Watch`."""
        return self.literals or self.pattern

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts that it can be, apart from white space around them; none when they are no list."""
        return self.pattern.literals or ()

    @property
    def begins(self) -> tuple[str, ...]:
        """Texts with which it begins, as far as they are known."""
        return self.texts or tuple(filter(None, (self.pattern.begins,)))

    @property
    def stops(self) -> tuple[str, ...] | None:
        """The same as stops of a JSON text; None when it cannot be found in one."""
        usable = self.texts and not any(text.startswith(_NO_STOP) for text in self.texts)
        return self.texts if usable else None


class Field(Struct, frozen=True, kw_only=True):
    """A field of the message.

    `tag` is the pattern of one argument of `xml-inline`. `join` separates the texts of a field that repeats.
    """

    name: str
    role: Role
    open: Delimiter | None
    close: Delimiter | None
    content: Content
    args: FieldArgs
    join: str | None
    transform: Any
    each: bool
    form: Form
    tag: Pattern | None = None


class Template(Struct, frozen=True):
    """A checked declaration. `anchor` is followed by the answer in a prompt; `implicit` is the field of text that is in
    no other.
    """

    fields: tuple[Field, ...]
    implicit: Field | None
    anchor: Delimiter

    def of(self, role: Role) -> Iterator[Field]:
        """The fields of a role that have a begin."""
        return (field for field in self.fields if field.role == role and field.open is not None)


def read_template(given: object) -> Template:
    """Check a declaration. Raises `ConfigError` that names the field, its value and the allowed values."""
    if not isinstance(given, Mapping):
        raise ConfigError(f"response_template: expected an object with fields, got {type(given).__name__}.")
    try:
        whole = read_settings(given, _Whole)
        anchor = _delimiter(whole.start_anchor, whole.start_anchor_pattern, "start_anchor")
        if anchor is None:
            raise SlipError("start_anchor", "Missing: the text of a prompt after which the model's answer begins.")
        if not whole.fields:
            raise SlipError("fields", "expected at least one, got none.")
        fields = tuple(_field(name, raw) for name, raw in whole.fields.items())
        implicit = [field for field in fields if field.open is None]
        if calls := [field.name for field in implicit if field.role == "calls"]:
            raise SlipError(f"fields.{calls[0]}", "calls need an opener: add open, or open_pattern.")
        if len(implicit) > 1:
            names = ", ".join(field.name for field in implicit)
            raise SlipError("fields", f"only one may have no open, for the text in no other; these have none: {names}.")
    except SlipError as error:
        raise ConfigError(f"response_template.{error}") from error
    return Template(fields, implicit[0] if implicit else None, anchor)


def _field(name: str, raw: object) -> Field:
    path = f"fields.{name}"
    if not isinstance(raw, Mapping):
        raise SlipError(path, f"expected an object such as {{'open': '<think>'}}, got {type(raw).__name__}.")
    try:
        given = read_settings(raw, _Declared)
        begins = _delimiter(given.open, given.open_pattern, "open")
        ends = _delimiter(given.close, given.close_pattern, "close")
        groups = {group for each in (begins, ends) if each and each.pattern for group in each.pattern.names}
        if given.join is not None and not given.repeats:
            raise SlipError("join", "it separates repeated values: add repeats = true, or leave it out.")
        _check_transform(given, groups)
        tag = _tag(given)
        opened = set(begins.pattern.names) if begins and begins.pattern else set()
        return Field(
            name=name,
            role=_ROLES.get(name, "other"),
            open=begins,
            close=ends,
            content=given.content,
            args=given.content_args,
            join=given.join,
            transform=given.transform,
            each=given.transform_each,
            form=_form(given, opened),
            tag=tag,
        )
    except SlipError as error:
        raise SlipError(f"{path}.{error.path}" if error.path else path, error.what) from error


def _delimiter(texts: _Texts | None, pattern: str | None, name: str) -> Delimiter | None:
    """The delimiter declared under `name` or `name_pattern`."""
    if texts is not None and pattern is not None:
        raise SlipError(f"{name}_pattern", f"there is {name}, too: leave one of them out.")
    try:
        if texts is not None:
            literals = (texts,) if isinstance(texts, str) else tuple(texts)
            return Delimiter(literals, compile_literals(literals))
        if pattern is None:
            return None
        return Delimiter((), _compiled(pattern, f"{name}_pattern"))
    except PatternError as error:
        raise SlipError(name, f"{error}.") from error


def _compiled(written: str, path: str) -> Pattern:
    try:
        pattern = compile_pattern(written)
    except PatternError as error:
        raise SlipError(path, f"{error}: {written!r}.") from error
    if pattern.may_be_empty:
        raise SlipError(path, f"it matches anywhere, because it may be empty: {written!r}.")
    return pattern


def _tag(given: _Declared) -> Pattern | None:
    """The pattern of one tag."""
    written = given.content_args.tag_pattern
    if given.content != "xml-inline":
        return None
    if written is None:
        raise SlipError("content_args.tag_pattern", "xml-inline needs one, with the groups key and value.")
    pattern = _compiled(written, "content_args.tag_pattern")
    missing = {"key", "value"} - set(pattern.names)
    if missing:
        raise SlipError("content_args.tag_pattern", f"it needs a group (?P<{min(missing)}>…): {written!r}.")
    return pattern


def _check_transform(given: _Declared, groups: set[str]) -> None:
    if given.transform is None:
        if given.transform_each:
            raise SlipError("transform_each", "it needs a transform: add one, or leave it out.")
        if groups:
            names = ", ".join(sorted(groups))
            raise SlipError("transform", f"missing: without one the groups of the patterns go nowhere ({names}).")
        return
    known = {"content", *groups}
    for text in _strings(given.transform):
        found = _PLACEHOLDER.search(text)
        if found is None:
            continue
        if found.group() != text:
            raise SlipError("transform", f"{text!r} has words beside its {found.group()}: it can only be one or both.")
        root = found[1].split(".")[0]
        if root not in known and not given.transform_each:
            hint = f"{did_you_mean(root, known)} It can be: {', '.join(sorted(known))}."
            raise SlipError("transform", f"nothing is called {root!r}.{hint}")


def _strings(value: object) -> Iterator[str]:
    """All strings in a value."""
    stack = [value]
    while stack:
        match stack.pop():
            case str(text):
                yield text
            case Mapping() as members:
                stack += members.values()
            case list(items):
                stack += items


def _form(given: _Declared, opened: set[str]) -> Form:
    """The form of the calls in a field."""
    call = given.transform
    if isinstance(call, Mapping) and "function" in call:
        call = call["function"]
    is_object = given.content == "json" and not given.content_args.string_delims
    if call in (None, _WHOLE):
        return "object" if is_object else "made"
    if not isinstance(call, Mapping):
        return "made"
    name, arguments = call.get("name"), call.get("arguments")
    lead = "" if given.transform_each else "content."
    if is_object and _key(name, lead) in NAME_KEYS and _key(arguments, lead) in ARGUMENT_KEYS:
        return "object"
    at_begin = isinstance(name, str) and (name[1:-1] in opened if _PLACEHOLDER.fullmatch(name) else bool(name))
    streams = given.content in ("json", "xml-inline", "kv-lines") and not given.transform_each
    merged = given.content_args.merge_duplicates
    delims = all(begin == end for begin, end in given.content_args.string_delims)
    return "named" if at_begin and streams and arguments == _WHOLE and delims and not merged else "made"


def _key(placeholder: object, lead: str) -> str:
    """The key that a placeholder takes from a call, `""` for none."""
    found = _PLACEHOLDER.fullmatch(placeholder) if isinstance(placeholder, str) else None
    return found[1].removeprefix(lead) if found and found[1].startswith(lead) else ""
