"""JSON Schemas of a function's arguments, and the conversion of JSON values to the annotated types.

msgspec builds the schemas and converts the values; griffe reads the docstrings. A type that msgspec rejects, or
describes poorly to a model, is replaced by a `CustomType` with its own schema and conversion. Signatures are read
elsewhere.
"""

import enum
import inspect
import re
import types
import typing
from collections import abc
from collections.abc import Callable, Iterable, Sequence
from dataclasses import is_dataclass
from datetime import datetime, time
from decimal import Decimal
from functools import partial
from pathlib import PurePath
from typing import Any, Final, Literal, NotRequired, Required, TypeAlias

import msgspec
from msgspec import NODEFAULT, UNSET, ValidationError
from msgspec.inspect import Field

from callwright.agent.annotations import constrained, constraints, split_annotation

Schema: TypeAlias = dict[str, Any]

_NULL: Final[Schema] = {"type": "null"}
_JSON_TYPES: Final = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
_ARRAYS: Final = (list, tuple, set, frozenset, abc.Collection, Iterable, abc.MutableSequence, Sequence, abc.Set)
_MAPS: Final = (dict, abc.Mapping, abc.MutableMapping)
_FIELDS: Final = ("__struct_fields__", "__attrs_attrs__", "_fields")  # of Structs, attrs classes, named tuples
_SUPPORTED: Final = "what msgspec takes, a dataclass, a pydantic model, a class of attrs, or a union of them"
_SECTION: Final = re.compile(r"(?<=\S)\n(?=[A-Z][A-Za-z ]*:\n[ \t]+\S)")  # without the blank line that griffe wants
_PARAMETERS: Final = ("parameters", "other parameters", "attributes")
_WHERE: Final = re.compile(r" - at (`key` in )?`\$([^`]*)`")


class CustomType(type):
    """A type that msgspec passes to our hooks: its schema, and how to `read` a JSON value (raises `ValueError`)."""

    schema: Schema
    read: Callable[[Any], Any]

    def __instancecheck__(cls, instance: object) -> bool:
        return True  # msgspec checks the type of the result of `read`


def convert(value: Any, type_: Any) -> Any:
    """Convert a JSON value to a type that `Types` made. Raises `msgspec.ValidationError`: expected, got, path."""
    try:
        return msgspec.convert(value, type_, str_keys=True, dec_hook=_read)
    except ValidationError as error:
        where = _WHERE.findall(str(error))  # nested objects add their paths from the inside to the outside
        path = "".join(step for _, step in reversed(where))
        raise ValidationError(_WHERE.sub("", str(error)) + (f" - at {where[0][0]}`${path}`" if where else "")) from None


def _read(type_: Any, value: Any) -> Any:
    try:
        return type_.read(value)
    except ValidationError as error:
        raise ValueError(str(error)) from None  # msgspec adds the path to this


def _schema_of(type_: Any) -> Schema:
    if isinstance(type_, CustomType):
        return type_.schema
    raise NotImplementedError  # msgspec raises its own error for an unknown type


def _custom(schema: Schema, read: Callable[[Any], Any]) -> CustomType:
    return CustomType("Custom", (), {"schema": schema, "read": staticmethod(read)})


def _integer(value: Any) -> Any:
    is_whole = isinstance(value, float) and value.is_integer()  # 5.0 is an integer, as JSON Schema has it
    return convert(int(value) if is_whole else value, int)


_LEAVES: Final[dict[Any, Any]] = {
    object: Any,
    inspect.Parameter.empty: Any,
    int: _custom({"type": "integer"}, _integer),
    Decimal: _custom({"anyOf": [{"type": "number"}, {"type": "string"}]}, partial(convert, type_=Decimal)),
    datetime: _custom({"type": "string", "format": "date-time"}, partial(convert, type_=datetime)),
    time: _custom({"type": "string", "format": "time"}, partial(convert, type_=time)),
}
_NOT_GIVEN: Final = _custom(_NULL, lambda value: UNSET if convert(value, None) is None else value)  # in strict mode


class Types:
    """Converts annotations to types for msgspec. `definitions` are the recursive ones, for `$defs`.

    `strict`: objects have the form of OpenAI's strict mode, in which optional fields are required and nullable. Without
    `requires_all` they may be omitted, too.
    """

    def __init__(self, *, strict: bool = False, requires_all: bool = True) -> None:
        self.definitions: Schema = {}
        self._strict = strict
        self._requires_all = requires_all
        self._made: dict[Any, Any] = {}
        self._met: set[Any] = set()  # recursive types: used again while they were built

    def of(self, annotation: Any, *, is_optional: bool = False, documented: str = "", default: str = "") -> Any:
        """The type for an annotation, which `documented` and `default` describe too. Raises `TypeError` if none can."""
        while str(typing.get_origin(annotation)).endswith(("Required", "ReadOnly")):  # of a TypedDict
            (annotation,) = typing.get_args(annotation)
        plain, notes = split_annotation(annotation)
        type_ = self._plain(typing.Union[plain, _NOT_GIVEN] if is_optional and self._strict else plain)  # noqa: UP007
        schema = self.schema(type_)
        if self._strict and "$ref" in schema:  # a reference allows no other keywords
            return type_
        said = constraints(notes)
        text = said.pop("description", documented) or (schema.get("description", "") if default else "")
        if not (said or text or default):
            return type_
        described = {"description": " ".join(filter(None, (text, default)))} if text or default else {}
        return _custom({**constrained(schema, said), **described}, partial(convert, type_=type_))

    def schema(self, type_: Any) -> Schema:
        """The JSON Schema of a type that `of` or `object` made."""
        try:
            (made,), components = msgspec.json.schema_components([type_], schema_hook=_schema_of)
        except TypeError as error:
            raise TypeError(f"{type_!r} has no form in JSON. It can be: {_SUPPORTED}") from error
        return dict(components.get(made.get("$ref", "").removeprefix("#/$defs/"), made))

    def object(self, fields: Sequence[Field], make: Callable[..., Any], doc: str = "", rest: Any = None) -> CustomType:
        """A closed object, of which `make` makes a value; `rest` opens it to other names with values of that type."""
        wire = [
            (f"_{at}", one.type, msgspec.field(name=one.encode_name, default=NODEFAULT if one.required else UNSET))
            for at, one in enumerate(fields)  # Python identifiers: wire names may be any string
        ]
        struct = msgspec.defstruct("Object", wire, namespace={"__doc__": doc}, kw_only=True, forbid_unknown_fields=True)
        schema = self.schema(struct)
        del schema["title"]
        if self._strict and self._requires_all:
            schema["required"] = list(schema["properties"])
        if rest is not None:
            schema["additionalProperties"] = self.schema(rest) or True
        names = {one.encode_name for one in fields}

        def read(value: Any) -> Any:
            more: dict[str, Any] = {}
            if rest is not None and isinstance(value, dict):
                more = convert({name: one for name, one in value.items() if name not in names}, dict[str, rest])
                value = {name: one for name, one in value.items() if name in names}
            made = zip(fields, msgspec.structs.astuple(convert(value, struct)), strict=True)
            return make(**{one.name: it for one, it in made if one.name and it is not UNSET}, **more)

        return _custom(schema, read)

    def _plain(self, type_: Any) -> Any:
        kind, arguments = typing.get_origin(type_) or type_, typing.get_args(type_)
        if isinstance(type_, abc.Hashable) and type_ in _LEAVES:
            return _LEAVES[type_]
        if under := getattr(type_, "__supertype__", None) or getattr(type_, "__value__", None):  # NewType, `type X = …`
            return self._define_once(type_, lambda: self.of(under))
        if kind is Literal:
            return _choice([(one.value if isinstance(one, enum.Enum) else one, one) for one in arguments])
        if kind in (typing.Union, types.UnionType):
            return self._union([self.of(member) for member in arguments])
        if kind in _MAPS:
            return dict.__class_getitem__((arguments[0], self.of(arguments[1]))) if arguments else dict
        if kind in _ARRAYS:
            return self._array(kind, arguments)
        if isinstance(kind, type) and not isinstance(kind, CustomType):
            return self._class(kind, type_)
        return type_

    def _array(self, kind: Any, arguments: Sequence[Any]) -> CustomType:
        items = arguments or ((Any, ...) if kind is tuple else (Any,))
        made = (list if kind is Iterable else kind)[tuple(one if one is ... else self.of(one) for one in items)]
        schema = self.schema(made)  # OpenAI demands `items` of each array
        return _custom({**schema, "items": schema.get("items", {})}, partial(convert, type_=made))

    def _class(self, kind: type, type_: Any) -> Any:
        """The type for a class, whose arguments `type_` may have."""
        if issubclass(kind, enum.Enum):
            return _choice([(member.value, member) for member in kind])
        if issubclass(kind, PurePath):
            return _custom({"type": "string"}, lambda value: kind(convert(value, str)))
        if hasattr(kind, "model_json_schema") and hasattr(kind, "model_validate"):
            return self._pydantic(kind)
        if is_dataclass(kind) or typing.is_typeddict(kind) or any(hasattr(kind, mark) for mark in _FIELDS):
            return self._define_once(kind, lambda: self._fielded(kind))
        return type_

    def _union(self, members: Sequence[Any]) -> Any:
        """The first member that fits; msgspec has no unions of objects, or of types that are strings in JSON."""
        unique = {repr(schema): schema for schema in map(self.schema, members)}
        schemas = sorted(unique.values(), key=_NULL.__eq__)  # null last

        def read(value: Any) -> Any:
            told: list[str] = []
            for member in members:
                try:
                    return convert(value, member)
                except ValidationError as error:
                    told.append(str(error).replace(" - at ", " at "))
            raise ValueError("; or ".join(dict.fromkeys(told)))

        made = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
        return Any if {} in schemas else _custom(made, read)

    def _define_once(self, key: Any, make: Callable[[], Any]) -> Any:
        """A type that may be recursive: if so, it is defined once and referenced."""
        if key in self._made:
            self._met.add(self._made[key])
            return self._made[key]
        name = key.__name__ if key.__name__ not in self.definitions else f"{key.__name__}{len(self._made)}"
        made = self._made[key] = _custom({"$ref": f"#/$defs/{name}"}, partial(convert, type_=Any))
        self.definitions[name] = {}  # the name is taken
        type_ = make()
        made.read = partial(convert, type_=type_)
        self.definitions[name] = self.schema(type_)
        if made not in self._met:
            made.schema = self.definitions.pop(name)
            self._made[key] = made if made.schema else type_  # for msgspec a custom type is not anything
        return self._made[key]

    def _fielded(self, kind: Any) -> CustomType:
        """A class with fields, as an object of them."""
        hints = typing.get_type_hints(kind, include_extras=True)
        text = kind.__dict__.get("__doc__") or ""
        is_generated = text.startswith(f"{kind.__name__}(")  # those of dataclasses and named tuples
        description, documented = read_docstring("" if is_generated else text)
        fields: list[Field] = []
        if typing.is_typeddict(kind):
            said = {name: typing.get_origin(hint) for name, hint in hints.items()}  # texts are not in __required_keys__
            needed = {name for name in hints if said[name] is Required or name in kind.__required_keys__}
            found = [(name, name, name in needed and said[name] is not NotRequired) for name in hints]
        elif issubclass(kind, msgspec.Struct):
            found = [(one.name, one.encode_name, one.required) for one in msgspec.structs.fields(kind)]
            if (tag := kind.__struct_config__.tag) is not None:
                fields.append(Field("", str(kind.__struct_config__.tag_field), _choice([(tag, tag)])))
        else:
            parameters = inspect.signature(kind).parameters.values()
            found = [(one.name, one.name, one.default is one.empty) for one in parameters]
        for name, encoded, required in found:
            type_ = self.of(hints.get(name, Any), is_optional=not required, documented=documented.get(name, ""))
            fields.append(Field(name, encoded, type_, required))
        return self.object(fields, dict if typing.is_typeddict(kind) else kind, description)

    def _pydantic(self, kind: Any) -> CustomType:
        schema = kind.model_json_schema()
        for name, inner in schema.pop("$defs", {}).items():
            if self.definitions.setdefault(name, inner) != inner:
                raise TypeError(f"{kind!r} defines another {name!r} than a type before it: rename one")

        def read(value: Any) -> Any:
            try:
                return kind.model_validate(value)
            except ValueError as error:
                first = error.errors()[0] if hasattr(error, "errors") else {"msg": str(error), "loc": ()}
                path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in first["loc"])
                raise ValidationError(f"{first['msg']} - at `${path}`") from None

        return _custom(schema, read)


def _choice(pairs: Sequence[tuple[Any, Any]]) -> Any:
    """One of some JSON values, in the order of the source, each with its Python value."""
    values = [value for value, _ in pairs]
    kinds = {_JSON_TYPES.get(type(value)) for value in values}
    if None in kinds or not values:
        raise TypeError(f"expected values of JSON to choose from, got {values!r:.80}")
    members = {(isinstance(value, bool), value): member for value, member in pairs}  # True is no 1

    def read(value: Any) -> Any:
        try:
            return members[isinstance(value, bool), value]
        except (KeyError, TypeError):
            raise ValueError(f"Expected one of {', '.join(map(repr, values))}, got {value!r:.80}") from None

    return _custom({**({"type": kinds.pop()} if len(kinds) == 1 else {}), "enum": values}, read)


def read_docstring(text: str | None) -> tuple[str, dict[str, str]]:
    """A docstring's text and its descriptions by parameter or attribute; in Google, NumPy or Sphinx style."""
    text = inspect.cleandoc(text or "")
    if "\n" not in text:  # no sections: griffe need not be loaded
        return text, {}
    import griffe

    quiet: Any = {style: {"warnings": False} for style in ("google", "numpy", "sphinx")}
    quiet["google"]["returns_named_value"] = False
    sections: list[Any] = griffe.Docstring(_SECTION.sub("\n\n", text)).parse("auto", per_style_options=quiet)
    parameters = [one for section in sections if section.kind.value in _PARAMETERS for one in section.value]
    told = [_text(section) for section in sections if section.kind.value not in _PARAMETERS]
    return "\n\n".join(told), {one.name.lstrip("*"): " ".join(one.description.split()) for one in parameters}


def _text(section: Any) -> str:
    """A section of a docstring as text again."""
    if isinstance(section.value, str):
        return section.value.strip()
    items = section.value if isinstance(section.value, list) else [section.value]
    # An example is a pair. Sections with a title are notes, warnings, …; their annotation repeats the title.
    pairs = [one if isinstance(one, tuple) else (one.annotation, one.description) for one in items]
    is_plain = section.title or section.kind.value == "examples"
    lines = [": ".join(str(part).strip() for part in pair[bool(is_plain) :] if part) for pair in pairs]
    return "\n    ".join([f"{section.title or section.kind.value.capitalize()}:", *"\n".join(lines).split("\n")])
