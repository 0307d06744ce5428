"""A shape as a tree that every engine's grammar can be read off: fixed texts, JSON by a schema, free text, choices.

A node that stands in several places is one object: engines with named rules write it once.
"""

from typing import TypeAlias

from msgspec import Struct

from callwright.constraints.format_pieces import Fixed
from callwright.conversation import JsonObject


class Literal(Struct, frozen=True, eq=False):
    """Exactly this."""

    fixed: Fixed


class TextRule(Struct, frozen=True, eq=False):
    """What a text may be, for engines that can hold it: so many characters, or what an expression or a grammar allows.

    `pattern` is a regular expression in Rust's syntax for the whole text, `lark` a custom tool's grammar.
    """

    least: int = 0
    most: int | None = None
    pattern: str | None = None
    lark: str | None = None


class Json(Struct, frozen=True, eq=False):
    """A JSON value that fits a schema. `words`: what a custom tool's grammar makes of its `input`."""

    schema: JsonObject
    words: TextRule | None = None


class TextUntil(Struct, frozen=True, eq=False):
    """Free text up to and with the first `end`."""

    end: Fixed
    words: TextRule | None = None


class Text(Struct, frozen=True, eq=False):
    """Free text up to the end of the answer."""


class Pattern(Struct, frozen=True, eq=False):
    """What a regular expression in Rust's syntax matches as a whole.

    `words`: it is a string in quotation marks, and this is what its text may be: for GBNF, which holds it as it does in
    JSON.
    """

    expression: str
    words: TextRule | None = None


class Concatenation(Struct, frozen=True, eq=False):
    """One after the other."""

    nodes: tuple["GrammarNode", ...]


class Alternatives(Struct, frozen=True, eq=False):
    """One of these."""

    nodes: tuple["GrammarNode", ...]


class Optional(Struct, frozen=True, eq=False):
    """This, or nothing."""

    node: "GrammarNode"


class Repeat(Struct, frozen=True, eq=False):
    """This, any number of times, or never."""

    node: "GrammarNode"


class Ref(Struct, eq=False):
    """A node that is set when those are known in which it stands: a value that may hold such values."""

    node: "GrammarNode"


class Values(Struct, frozen=True, eq=False):
    """Values in a notation that is not JSON, as a tree without `Json`; `Ref` stands in no other place."""

    node: "GrammarNode"


class Triggered(Struct, frozen=True, eq=False):
    """Free text; but where `trigger` stands, `rest` and `end` follow.

    `again` is what may follow then, as a whole: another of these. None = the trigger stands at one place at most.
    """

    trigger: str
    rest: "GrammarNode"
    end: Fixed
    again: "GrammarNode | None"


GrammarNode: TypeAlias = (
    Literal
    | Json
    | TextUntil
    | Text
    | Pattern
    | Concatenation
    | Alternatives
    | Optional
    | Repeat
    | Ref
    | Values
    | Triggered
)
