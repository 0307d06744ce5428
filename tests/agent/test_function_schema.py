"""Functions as tools: what a model is told of a signature, and how its arguments come back as values."""

import functools
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NewType, NotRequired, TypedDict
from uuid import UUID

import attrs
import msgspec
import pytest

from callwright import Context, From, Hidden, RequestError, strict_problems, tool
from callwright.agent.function_schema import Types, convert, read_docstring


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Point:
    """A place.

    Attributes:
        x: To the right.
    """

    x: int
    y: int = 0


@dataclass
class Node:
    name: str
    children: "list[Node]" = field(default_factory=list)


class Row(TypedDict):
    id: int
    note: NotRequired[str]


class Pair(NamedTuple):
    left: str
    right: float = 1.0


class Cut:
    max_length = 12


class Positive:
    gt = 0


@dataclass
class Booking:
    nights: Annotated[int, msgspec.Meta(ge=1)]
    price: Annotated[Decimal, Positive()]
    until: Annotated[date | str, Cut()] = "later"


@attrs.define
class Size:
    width: int
    unit: str = "cm"


class Cat(msgspec.Struct, tag="cat"):
    lives: int


class Dog(msgspec.Struct, rename={"good": "isGood"}):
    good: bool = True


class Bounded:
    """Stands for the bounds of any library."""

    ge = 1
    lt = 10


UserId = NewType("UserId", int)
NULL = {"type": "null"}
STRING = {"type": "string"}
INTEGER = {"type": "integer"}


def closed(properties: dict[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        **more,
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


POINT = closed({"x": {**INTEGER, "description": "To the right."}, "y": INTEGER}, "x", description="A place.")
ROW = closed({"id": INTEGER, "note": STRING}, "id")

# The annotation, its schema, JSON values and what they become, and JSON values that it refuses.
TYPES: dict[str, tuple[Any, dict[str, Any], list[tuple[Any, Any]], list[Any]]] = {
    "str": (str, STRING, [("5", "5")], [5, None, True]),
    "int": (int, INTEGER, [(5, 5), (5.0, 5)], ["5", True, 5.5, None]),
    "float": (float, {"type": "number"}, [(5, 5.0), (1.5, 1.5)], ["5", True]),
    "bool": (bool, {"type": "boolean"}, [(True, True)], [1, "true"]),
    "bytes": (bytes, {"type": "string", "contentEncoding": "base64"}, [("aGk=", b"hi")], ["?", 5]),
    "any": (Any, {}, [(None, None), ({"a": [1]}, {"a": [1]})], []),
    "literal keeps its order": (Literal["b", "a"], {"type": "string", "enum": ["b", "a"]}, [("a", "a")], ["c", 1]),
    "literal mixed": (Literal["a", 1], {"enum": ["a", 1]}, [(1, 1), (1.0, 1)], [True, "1"]),
    "enum keeps its order": (Color, {"type": "string", "enum": ["red", "blue"]}, [("red", Color.RED)], ["RED", None]),
    "int enum": (Level, {"type": "integer", "enum": [1, 2]}, [(2, Level.HIGH)], [3, "1", True]),
    "optional": (str | None, {"anyOf": [STRING, NULL]}, [(None, None), ("a", "a")], [1]),
    "null comes last": (None | int, {"anyOf": [INTEGER, NULL]}, [(1, 1)], ["1"]),
    "union of dataclasses": (
        Point | Node,
        {
            "anyOf": [
                POINT,
                {"$ref": "#/$defs/Node"},
            ]
        },
        [({"x": 1}, Point(1)), ({"name": "a"}, Node("a"))],
        [{}, {"x": 1, "name": "a"}],
    ),
    "list": (list[int], {"type": "array", "items": INTEGER}, [([1, 2.0], [1, 2])], [["1"], 1]),
    "sequence": (Sequence[str], {"type": "array", "items": STRING}, [(["a"], ["a"])], ["a"]),
    "set": (set[int], {"type": "array", "items": INTEGER, "uniqueItems": True}, [([1, 2], {1, 2})], [{}]),
    "tuple of any length": (tuple[int, ...], {"type": "array", "items": INTEGER}, [([1], (1,))], [5]),
    "tuple": (
        tuple[int, str],
        {"type": "array", "prefixItems": [INTEGER, STRING], "items": False, "minItems": 2, "maxItems": 2},
        [([1, "a"], (1, "a"))],
        [[1], ["a", 1]],
    ),
    "dict": (dict[str, int], {"type": "object", "additionalProperties": INTEGER}, [({"a": 1}, {"a": 1})], [{"a": "1"}]),
    "dict of numbers": (
        dict[int, Any],
        {"type": "object"},
        [({"1": "a"}, {1: "a"})],
        [{"x": 1}],
    ),
    "dataclass": (Point, POINT, [({"x": 1}, Point(1, 0)), ({"x": 1.0, "y": 2}, Point(1, 2))], [{"y": 1}, {"x": "1"}]),
    "unknown keys are refused": (Point, POINT, [], [{"x": 1, "z": 2}]),
    "typed dict": (Row, ROW, [({"id": 1}, {"id": 1})], [{"note": "a"}, {"id": 1, "more": 2}]),
    "named tuple is an object": (
        Pair,
        closed({"left": STRING, "right": {"type": "number"}}, "left"),
        [({"left": "a"}, Pair("a"))],
        [["a", 1.0]],
    ),
    "struct": (
        Dog,
        closed({"isGood": {"type": "boolean"}}),
        [({"isGood": False}, Dog(False)), ({}, Dog())],
        [{"good": 1}],
    ),
    "tagged struct": (
        Cat,
        closed({"type": {"type": "string", "enum": ["cat"]}, "lives": INTEGER}, "type", "lives"),
        [({"type": "cat", "lives": 9}, Cat(9))],
        [{"type": "dog", "lives": 9}],
    ),
    "datetime": (
        datetime,
        {"type": "string", "format": "date-time"},
        [("2026-01-15T12:00:00Z", datetime(2026, 1, 15, 12, tzinfo=UTC))],
        ["soon"],
    ),
    "date": (date, {"type": "string", "format": "date"}, [("2026-01-15", date(2026, 1, 15))], ["15.1."]),
    "uuid": (UUID, {"type": "string", "format": "uuid"}, [(str(UUID(int=5)), UUID(int=5))], ["x"]),
    "decimal": (
        Decimal,
        {"anyOf": [{"type": "number"}, STRING]},
        [("1.10", Decimal("1.10")), (1.1, Decimal("1.1"))],
        ["one", True],
    ),
    "new type": (UserId, INTEGER, [(1, 1)], ["1"]),
    "path": (Path, STRING, [("a/b", Path("a/b"))], [5]),
    "strings of two types": (
        date | Literal["today"] | None,
        {"anyOf": [{"type": "string", "format": "date"}, {"type": "string", "enum": ["today"]}, NULL]},
        [("2026-01-15", date(2026, 1, 15)), ("today", "today"), (None, None)],
        ["soon", 5],
    ),
    "list of anything": (list, {"type": "array", "items": {}}, [([1.0, "a"], [1.0, "a"])], [{}]),
    "dict by a literal": (
        dict[Literal["a", "b"], Point],
        {"type": "object", "additionalProperties": POINT},
        [({"a": {"x": 1}}, {"a": Point(1)})],
        [{"c": {"x": 1}}],
    ),
    "bounds within a class": (
        Booking,
        closed(
            {
                "nights": {**INTEGER, "minimum": 1},
                "price": {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, STRING]},
                "until": {"anyOf": [{**STRING, "format": "date", "maxLength": 12}, {**STRING, "maxLength": 12}]},
            },
            "nights",
            "price",
        ),
        [({"nights": 2.0, "price": 5}, Booking(2, Decimal(5)))],
        [{"nights": "2", "price": 5}, {"nights": 2}],
    ),
    "attrs": (Size, closed({"width": INTEGER, "unit": STRING}, "width"), [({"width": 1}, Size(1))], [{"unit": "m"}]),
    "described by a bare text": (Annotated[int, "How many"], {**INTEGER, "description": "How many"}, [(1, 1)], []),
    "bounded by msgspec": (
        Annotated[str, msgspec.Meta(min_length=1, pattern="^a", description="A word")],
        {**STRING, "minLength": 1, "pattern": "^a", "description": "A word"},
        [],
        [],
    ),
    "bounded by any library": (
        Annotated[int | None, Bounded()],
        {"anyOf": [{**INTEGER, "minimum": 1, "exclusiveMaximum": 10}, NULL]},
        [],
        [],
    ),
    "bounded list": (
        Annotated[list[str], msgspec.Meta(max_length=3)],
        {"type": "array", "items": STRING, "maxItems": 3},
        [],
        [],
    ),
}


@pytest.mark.parametrize("case", TYPES)
def test_a_type_has_a_schema_and_reads_back(case: str) -> None:
    annotation, schema, good, bad = TYPES[case]
    types = Types()
    type_ = types.of(annotation)
    assert types.schema(type_) == schema
    for value, wanted in good:
        read = convert(value, type_)
        assert (read, type(read)) == (wanted, type(wanted))
    for value in bad:
        with pytest.raises(msgspec.ValidationError):
            convert(value, type_)


def test_a_type_that_contains_itself_is_defined_once() -> None:
    def save(first: Node, second: Node) -> None: ...

    made = tool(save)
    parameters = made.parameters
    assert parameters["properties"] == {"first": {"$ref": "#/$defs/Node"}, "second": {"$ref": "#/$defs/Node"}}
    assert parameters["$defs"]["Node"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}
    values = made.read({"first": {"name": "a", "children": [{"name": "b"}]}, "second": {"name": "c"}})
    assert values == {"first": Node("a", [Node("b")]), "second": Node("c")}


def test_a_misfit_says_where() -> None:
    def draw(points: list[Point]) -> None: ...

    with pytest.raises(msgspec.ValidationError, match=r"^Expected `int`, got `str` - at `\$\.points\[1\]\.x`$"):
        tool(draw).read({"points": [{"x": 1}, {"x": "1"}]})


def test_pydantic_models_are_taken_without_an_import_of_ours() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Inner(pydantic.BaseModel):  # type: ignore[name-defined,misc]
        title: str = pydantic.Field(alias="the-title", description="Its title")

    class Order(pydantic.BaseModel):  # type: ignore[name-defined,misc]
        """An order."""

        items: list[Inner]
        count: Annotated[int, pydantic.Field(ge=1)] = 1

    def buy(order: Order, more: Annotated[int, pydantic.Field(ge=2, description="Others")] = 2) -> None: ...

    made = tool(buy)
    order = made.parameters["properties"]["order"]
    assert order["description"] == "An order."
    assert order["properties"]["count"] == {"default": 1, "minimum": 1, "title": "Count", "type": "integer"}
    assert made.parameters["$defs"]["Inner"]["properties"] == {
        "the-title": {"description": "Its title", "title": "The-Title", "type": "string"}
    }
    assert made.parameters["properties"]["more"] == {**INTEGER, "minimum": 2, "description": "Others (default: 2)"}
    read = made.read({"order": {"items": [{"the-title": "a"}]}})["order"]
    assert (type(read), read.items[0].title, read.count) == (Order, "a", 1)
    with pytest.raises(msgspec.ValidationError, match=r"^Field required - at `\$\.order\.items\[0\]\.the-title`$"):
        made.read({"order": {"items": [{}]}})


# --- the whole function ---


def plain(city: str, unit: Literal["c", "f"] = "c", *, tags: Sequence[str] = ()) -> None: ...


def nothing() -> None: ...


def open_ended(first: int, **rest: float) -> None: ...


def hides(query: str, user: Annotated[str, Hidden], ctx: Context, db: Annotated[Any, From(dict)] = None) -> None: ...


def google(city: str, count: int = 3) -> None:
    """Weather of a city.

    It may rain.

    Args:
        city (str): Name of
            the city: in English.
        count: So many days.

    Returns:
        Text.
    """


def numpy(city: str, count: int = 3) -> None:
    """Weather of a city.

    Parameters
    ----------
    city : str
        Name of the city.
    count : int, optional
        So many days.

    Returns
    -------
    str
    """


def sphinx(city: str, count: int = 3) -> None:
    """Weather of a city.

    :param str city: Name of
        the city.
    :param count: So many days.
    :type count: int
    """


class Search:
    """Search for pages."""

    async def __call__(self, query: str) -> None: ...


COUNT = {**INTEGER, "description": "So many days. (default: 3)"}

# The function, the description and the schema of the tool.
FUNCTIONS: dict[str, tuple[Callable[..., Any], str | None, dict[str, Any]]] = {
    "plain": (
        plain,
        None,
        closed(
            {
                "city": STRING,
                "unit": {"type": "string", "enum": ["c", "f"], "description": '(default: "c")'},
                "tags": {"type": "array", "items": STRING, "description": "(default: [])"},
            },
            "city",
        ),
    ),
    "nothing": (nothing, None, closed({})),
    "open ended": (
        open_ended,
        None,
        {**closed({"first": INTEGER}, "first"), "additionalProperties": {"type": "number"}},
    ),
    "hidden parameters": (hides, None, closed({"query": STRING}, "query")),
    "google": (
        google,
        "Weather of a city.\n\nIt may rain.\n\nReturns:\n    Text.",
        closed({"city": {**STRING, "description": "Name of the city: in English."}, "count": COUNT}, "city"),
    ),
    "numpy": (
        numpy,
        "Weather of a city.\n\nReturns:\n    str",
        closed({"city": {**STRING, "description": "Name of the city."}, "count": COUNT}, "city"),
    ),
    "sphinx": (
        sphinx,
        "Weather of a city.",
        closed({"city": {**STRING, "description": "Name of the city."}, "count": COUNT}, "city"),
    ),
    "partial": (
        functools.partial(open_ended, first=1),
        None,
        {**closed({}), "additionalProperties": {"type": "number"}},
    ),
    "callable object": (Search(), "Search for pages.", closed({"query": STRING}, "query")),
    "bound method": (Search().__call__, None, closed({"query": STRING}, "query")),
}


@pytest.mark.parametrize("case", FUNCTIONS)
def test_a_function_is_told_to_the_model(case: str) -> None:
    function, description, schema = FUNCTIONS[case]
    made = tool(function, name="it")
    assert made.definition.description == description
    assert made.parameters == schema
    assert list(made.parameters["properties"]) == list(schema["properties"])


def test_a_google_section_begins_a_line() -> None:
    assert read_docstring("Sends it. Args: none of them.") == ("Sends it. Args: none of them.", {})


def test_a_section_needs_no_blank_line_before_it() -> None:
    assert read_docstring("Sends it.\nArgs:\n    to: Whom.") == ("Sends it.", {"to": "Whom."})


def test_what_a_docstring_says_beside_parameters_stays() -> None:
    text = """Sends it.

    Args:
        to (str, optional): Whom.

    Raises:
        ValueError: Nobody is there.

    Note:
        Once only.

    Examples:
        >>> send("Anna")
        True
    """
    told = "Sends it.\n\nRaises:\n    ValueError: Nobody is there.\n\nNote:\n    Once only.\n\nExamples:\n    "
    assert read_docstring(text) == (told + '>>> send("Anna")\n    True', {"to": "Whom."})


@pytest.mark.processes
def test_griffe_is_loaded_for_a_docstring_with_sections_only() -> None:
    code = (
        "import sys, callwright\n"
        "def send(to: str) -> None: 'Send it.'\n"
        "callwright.tool(send)\n"
        "assert 'griffe' not in sys.modules\n"
        "send.__doc__ = 'Send it.\\n\\nArgs:\\n    to: Whom.'\n"
        "assert callwright.tool(send).parameters['properties']['to']['description'] == 'Whom.'\n"
        "assert 'griffe' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_in_strict_form_what_is_optional_is_required_and_may_be_null() -> None:
    def book(city: str, nights: int = 1, note: str | None = None, place: Point | None = None) -> None: ...

    made = tool(book, strict=True)
    assert strict_problems(made.parameters) == []
    assert made.parameters["required"] == ["city", "nights", "note", "place"]
    assert made.parameters["properties"]["nights"] == {"anyOf": [INTEGER, NULL], "description": "(default: 1)"}
    given = {"city": "Oslo", "nights": None, "note": None, "place": {"x": 1, "y": None}}
    assert made.read(given) == {"city": "Oslo", "note": None, "place": Point(1)}


def test_types_of_the_place_where_the_tool_is_made_are_known() -> None:
    @dataclass
    class Local:
        x: int

    @tool
    def take(it: "Local") -> "Unknown":  # type: ignore[name-defined]  # noqa: F821
        ...

    assert take.read({"it": {"x": 1}}) == {"it": Local(1)}


def any_number(*numbers: int) -> None: ...


def foreign(path: Callable[[], None]) -> None: ...


def unknown(it: "Missing") -> None:  # type: ignore[name-defined]  # noqa: F821
    ...


def misdescribed(city: str) -> None:
    """Weather.

    Args:
        town: The city.
    """


# The function, the options, and words of the error.
MISTAKES: dict[str, tuple[Callable[..., Any], Mapping[str, Any], tuple[str, ...]]] = {
    "positional rest": (any_number, {}, ("'any_number'", "'numbers'", "functools.wraps")),
    "a type without a form": (foreign, {}, ("'foreign'", "'path'", "Callable", "dataclass")),
    "a type that is nowhere": (unknown, {}, ("'it'", "'Missing'")),
    "a documented name that is none": (misdescribed, {}, ("'town'", "not a parameter")),
    "a method without its object": (Search.__call__, {"name": "f"}, ("method", "bound")),
    "a lambda": (lambda: None, {}, ("'<lambda>'", "name=")),
    "a name with blanks": (nothing, {"name": "a b"}, ("'a b'",)),
    "strict with any": (tool(lambda it: None, name="f").function, {"name": "f", "strict": True}, ("strict", "'type'")),
    "strict with an open object": (open_ended, {"strict": True}, ("strict", "additionalProperties")),
    "custom with two parameters": (plain, {"custom": True}, ("one parameter",)),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_told_when_the_tool_is_made(case: str) -> None:
    function, options, words = MISTAKES[case]
    with pytest.raises(RequestError) as raised:
        tool(function, **options)
    assert not [word for word in words if word not in raised.value.message], raised.value.message


def test_a_hidden_parameter_cannot_be_given_by_the_model() -> None:
    def search(user: Annotated[str, Hidden], **rest: str) -> None: ...

    with pytest.raises(msgspec.ValidationError, match="unknown argument 'user'"):
        tool(search).read({"user": "root"})
