"""Annotations as JSON Schema, and the way back: JSON values as what the annotation says.

Both come out of one walk of the types, so that they cannot drift apart. Pydantic models are known by what they can do,
not by import. It knows no function and no docstring of one; see `callwright.agent.tools`.
"""

import enum
import inspect
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping, MutableSequence, Sequence, Set
from dataclasses import MISSING, fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, Literal, NamedTuple, Union
from uuid import UUID

import msgspec

from callwright.agent.annotations import Notes, read_notes
from callwright.agent.docstrings import read_docstring
from callwright.agent.readers import (
    Kind,
    MisfitError,
    UnknownTypeError,
    built,
    decimal,
    enumeration,
    first_of,
    inside,
    leaf,
    list_of,
    member_of,
    named,
    shown,
    tuple_of,
)

__all__ = ["Field", "Kinds"]

_LEAVES: Final[Mapping[object, dict[str, Any]]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bytes: {"type": "string", "contentEncoding": "base64"},
    datetime: {"type": "string", "format": "date-time"},
    date: {"type": "string", "format": "date"},
    time: {"type": "string", "format": "time"},
    timedelta: {"type": "string", "format": "duration"},
    UUID: {"type": "string", "format": "uuid"},
}
_LISTS: Final = (list, Sequence, MutableSequence, Collection, Iterable)
_SETS: Final = (set, frozenset, Set)
_MAPS: Final = (dict, Mapping, MutableMapping)
_FORMS: Final = (
    "str, int, float, bool, Literal, Enum, list, tuple, set, dict, a dataclass, a TypedDict, a NamedTuple, a msgspec "
    "Struct, a pydantic model, or a union of them"
)


class Field(NamedTuple):
    """A member of an object. `name` is that of the wire, `attribute` that of Python."""

    name: str
    attribute: str
    kind: Kind
    is_optional: bool = False


class Kinds:
    """Walks the types of one schema. `definitions` are those of types that contain themselves, for its `$defs`.

    `strict`: objects have the form that OpenAI's strict mode wants, where what is optional is required and may be null.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self.definitions: dict[str, Any] = {}
        self._strict = strict
        self._open: dict[object, list[Kind]] = {}  # types in progress; the list gets the kind when it is done
        self._names: dict[object, str] = {}  # of those that contain themselves

    def of(self, annotation: object) -> Kind:
        """The kind of an annotation. Raises `UnknownTypeError`."""
        plain, notes = read_notes(annotation)
        return self.noted(self._plain(plain), notes)

    def noted(self, kind: Kind, notes: Notes) -> Kind:
        """The kind with the description and the bounds of an `Annotated`."""
        if self._strict and "$ref" in kind.schema:  # nothing may stand beside a reference
            return kind
        return kind._replace(schema=notes.applied(kind.schema))

    def closed_object(
        self,
        members: Sequence[Field],
        make: Callable[[dict[str, Any]], Any],
        description: str = "",
        rest: Kind | None = None,
    ) -> Kind:
        """A closed object; `rest` opens it to other names with values of that kind."""
        schema: dict[str, Any] = {"type": "object"}
        if description:
            schema["description"] = description
        schema["properties"] = {member.name: self._member_schema(member) for member in members}
        required = [member.name for member in members if self._strict or not member.is_optional]
        if required:
            schema["required"] = required
        schema["additionalProperties"] = False if rest is None else rest.schema or True
        known = {member.name: member for member in members}

        def read(value: Any) -> Any:
            if not isinstance(value, dict):
                raise MisfitError(f"expected an object, got {named(value)}")
            made: dict[str, Any] = {}
            for name, inner in value.items():
                member = known.get(name)
                if member is None and rest is None:
                    raise MisfitError(f"unknown argument {name!r}; it can be: {', '.join(known) or 'none'}")
                if member is not None and member.is_optional and inner is None and not member.kind.takes_none:
                    continue  # "not given", as strict schemas have it
                reader = rest.read if member is None and rest is not None else known[name].kind.read
                made[member.attribute if member else name] = inside(reader, inner, f".{name}")
            for member in members:
                if not member.is_optional and member.name not in value:
                    raise MisfitError(f"the required argument {member.name!r} is missing")
            return make(made)

        return Kind(schema, read)

    def _member_schema(self, member: Field) -> dict[str, Any]:
        schema = member.kind.schema
        if not (self._strict and member.is_optional) or member.kind.takes_none:
            return schema
        outer = {"description": schema["description"]} if "description" in schema else {}
        inner = {key: value for key, value in schema.items() if key != "description"}
        return {"anyOf": [inner, {"type": "null"}], **outer}

    # --- by the form of the annotation ---

    def _plain(self, type_: Any) -> Kind:
        if type_ in (Any, object, inspect.Parameter.empty) or isinstance(type_, typing.TypeVar):
            return Kind({}, lambda value: value, takes_none=True)
        if type_ is None or type_ is type(None):
            return Kind({"type": "null"}, member_of([None]), takes_none=True)
        if type_ in _LEAVES:
            return Kind(dict(_LEAVES[type_]), leaf(type_))
        if type_ is Decimal:
            return Kind({"anyOf": [{"type": "number"}, {"type": "string"}]}, decimal)
        if (alias := getattr(type_, "__value__", None)) is not None:  # type X = …
            return self._named_type(type_, lambda: self.of(alias))
        if (under := getattr(type_, "__supertype__", None)) is not None:  # NewType
            return self.of(under)
        origin, arguments = typing.get_origin(type_), typing.get_args(type_)
        if origin is Literal:
            return enumeration([(one.value if isinstance(one, enum.Enum) else one, one) for one in arguments], type_)
        if origin in (Union, types.UnionType):
            return self._union(arguments)
        if isinstance(origin or type_, type):
            return self._class(origin or type_, arguments)
        raise UnknownTypeError(f"{shown(type_)} has no form in JSON. It can be: {_FORMS}")

    def _class(self, type_: type, arguments: tuple[Any, ...]) -> Kind:
        if issubclass(type_, enum.Enum):
            return enumeration([(member.value, member) for member in type_], type_)
        if type_ in _LISTS or type_ in _SETS:
            item = self.of(arguments[0] if arguments else Any)
            unique = {"uniqueItems": True} if type_ in _SETS else {}
            make = frozenset if type_ is frozenset else set if unique else list
            return Kind({"type": "array", "items": item.schema, **unique}, list_of(item.read, make))
        if type_ is tuple:
            return self._tuple(arguments)
        if type_ in _MAPS:
            return self._map(*(arguments or (str, Any)))
        return self._named_type(type_, lambda: self._structure(type_))

    def _union(self, members: Sequence[Any]) -> Kind:
        kinds = [self.of(member) for member in members]
        schemas: list[dict[str, Any]] = []
        for kind in sorted(kinds, key=lambda kind: kind.schema == {"type": "null"}):  # null comes last
            schemas += [kind.schema] if kind.schema not in schemas else []
        takes_none = any(kind.takes_none for kind in kinds)
        schema = {} if {} in schemas else schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
        return Kind(schema, first_of([kind.read for kind in kinds]), takes_none)

    def _tuple(self, members: tuple[Any, ...]) -> Kind:
        if not members or (len(members) == 2 and members[1] is ...):
            item = self.of(members[0] if members else Any)
            return Kind({"type": "array", "items": item.schema}, list_of(item.read, tuple))
        kinds = [] if members == ((),) else [self.of(member) for member in members]
        count = len(kinds)
        schema = {"type": "array", "prefixItems": [kind.schema for kind in kinds], "items": False}
        return Kind({**schema, "minItems": count, "maxItems": count}, tuple_of([kind.read for kind in kinds]))

    def _map(self, key: Any, value: Any) -> Kind:
        keys, values = self.of(key), self.of(value)
        schema: dict[str, Any] = {"type": "object", "additionalProperties": values.schema or True}
        if keys.schema.keys() - {"type"} and keys.schema.get("type") == "string":
            schema["propertyNames"] = keys.schema

        def read(given: Any) -> Any:
            if not isinstance(given, dict):
                raise MisfitError(f"expected an object, got {named(given)}")
            numeric = keys.schema.get("type") in ("integer", "number")
            made = {}
            for name, inner in given.items():
                known = inside(lambda text: msgspec.json.decode(text), name, ".") if numeric else name
                made[inside(keys.read, known, f".{name}")] = inside(values.read, inner, f".{name}")
            return made

        return Kind(schema, read)

    # --- classes with fields ---

    def _named_type(self, type_: object, make: Callable[[], Kind]) -> Kind:
        """A type that may contain itself: then it is defined once, and referred to."""
        if type_ in self._open or type_ in self._names:
            name = self._names.setdefault(type_, self._free_name(type_))
            done = self._open[type_]
            return Kind({"$ref": f"#/$defs/{name}"}, lambda value: done[0].read(value))
        done = self._open[type_] = []
        kind = make()
        done.append(kind)
        if type_ not in self._names:
            del self._open[type_]
            return kind
        self.definitions[self._names[type_]] = kind.schema
        return kind._replace(schema={"$ref": f"#/$defs/{self._names[type_]}"})

    def _free_name(self, type_: object) -> str:
        name = getattr(type_, "__name__", "Type")
        taken = {*self._names.values(), *self.definitions}
        return next(free for free in (name, *(f"{name}{n}" for n in range(2, 999))) if free not in taken)

    def _structure(self, type_: Any) -> Kind:
        if hasattr(type_, "model_json_schema") and hasattr(type_, "model_validate"):
            return self._pydantic(type_)
        hints = _hints(type_)
        text, documented = read_docstring(_own_docstring(type_))
        if (found := _fields(type_, hints)) is None:
            raise UnknownTypeError(f"{shown(type_)} has no form in JSON. It can be: {_FORMS}")
        members: list[Field] = []
        for name, attribute, is_optional in found:
            kind = self.of(_without_qualifiers(hints.get(attribute, Any))[0])
            if attribute in documented:
                kind = self.noted(kind, Notes(description=documented[attribute]))
            members.append(Field(name, attribute, kind, is_optional))
        tag = getattr(getattr(type_, "__struct_config__", None), "tag", None)
        if tag is not None:
            members.insert(0, Field(type_.__struct_config__.tag_field, "", enumeration([(tag, tag)], type_)))
        build = dict if typing.is_typeddict(type_) else type_
        return self.closed_object(members, lambda made: built(build, made), text)

    def _pydantic(self, type_: Any) -> Kind:
        schema = _untitled(type_.model_json_schema())
        for name, inner in schema.pop("$defs", {}).items():
            if self.definitions.setdefault(name, inner) != inner:
                raise UnknownTypeError(f"{shown(type_)} defines another {name!r} than a type before it: rename one")

        def read(value: Any) -> Any:
            try:
                return type_.model_validate(value)
            except ValueError as error:
                listed = getattr(error, "errors", None)
                if listed is None:
                    raise MisfitError(str(error)) from None
                first = listed()[0]
                path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in first["loc"])
                raise MisfitError(str(first["msg"]), path) from None

        return Kind(schema, read)


def _fields(type_: Any, hints: Mapping[str, Any]) -> list[tuple[str, str, bool]] | None:
    """Name on the wire, attribute and whether it may be left out, of each field; None for classes without fields."""
    if is_dataclass(type_):
        own = [one for one in fields(type_) if one.init]
        return [(one.name, one.name, (one.default, one.default_factory) != (MISSING, MISSING)) for one in own]
    if typing.is_typeddict(type_):
        found = []
        for name, hint in hints.items():
            wrapped = _without_qualifiers(hint)[1]
            is_optional = name not in type_.__required_keys__ if wrapped is None else wrapped is typing.NotRequired
            found.append((name, name, is_optional))
        return found
    if issubclass(type_, tuple) and hasattr(type_, "_fields"):
        return [(name, name, name in type_._field_defaults) for name in type_._fields]
    if issubclass(type_, msgspec.Struct):
        return [(one.encode_name, one.name, not one.required) for one in msgspec.structs.fields(type_)]
    return None


def _hints(type_: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(type_, include_extras=True)
    except NameError as error:
        raise UnknownTypeError(f"{shown(type_)} has an annotation that cannot be evaluated: {error}") from error


def _own_docstring(type_: type) -> str:
    """The docstring that its author wrote: dataclasses and named tuples make one of their signature."""
    text = type_.__dict__.get("__doc__") or ""
    return "" if text.startswith(f"{type_.__name__}(") else text


def _without_qualifiers(hint: Any) -> tuple[Any, Any]:
    """The type in `Required[T]`, `NotRequired[T]`, `ReadOnly[T]`, and which of the first two it was."""
    wrapped = None
    while "Required" in str(origin := typing.get_origin(hint)) or "ReadOnly" in str(origin):
        wrapped = wrapped or (origin if "Required" in str(origin) else None)
        (hint,) = typing.get_args(hint)
    return hint, wrapped


def _untitled(schema: Any, *, is_map: bool = False) -> Any:
    """A schema without the titles that pydantic gives everything."""
    if isinstance(schema, list):
        return [_untitled(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    dropped = () if is_map else ("title",)
    maps = ("properties", "$defs")
    return {
        key: _untitled(value, is_map=key in maps and not is_map) for key, value in schema.items() if key not in dropped
    }
