"""A shape as a tree from which each engine's grammar is generated: fixed texts, JSON by a schema, free text, choices.

A node that is used in several places is one object: engines with named rules write it once.
"""

from typing import TypeAlias

from msgspec import Struct

from callwright.constraints.format_pieces import Fixed
from callwright.constraints.limits import Limits
from callwright.conversation import JsonObject


class Literal(Struct, frozen=True, eq=False):
    """Exactly this."""

    fixed: Fixed


class TextRule(Struct, frozen=True, eq=False):
    """The rule of a text, for engines that can enforce it: a number of characters, or an expression or a grammar.

    `pattern` is a regular expression in Rust's syntax for the whole text, `lark` a custom tool's grammar.
    """

    least: int = 0
    most: int | None = None
    pattern: str | None = None
    lark: str | None = None


class Json(Struct, frozen=True, eq=False):
    """A JSON value that fits a schema, within limits. `words`: the rule of a custom tool's `input`, from its
    grammar.
    """

    schema: JsonObject
    words: TextRule | None = None
    limits: Limits | None = None


class TextUntil(Struct, frozen=True, eq=False):
    """Free text up to and with the first `end`."""

    end: Fixed
    words: TextRule | None = None


class Text(Struct, frozen=True, eq=False):
    """Free text up to the end of the answer."""


class Pattern(Struct, frozen=True, eq=False):
    """A text that a regular expression in Rust's syntax matches as a whole.

    `words`: the text is a string in quotation marks with this rule: for GBNF, which enforces it as in JSON. `most`:
    the maximum number of its characters, if the expression has no end.
    """

    expression: str
    words: TextRule | None = None
    most: int | None = None


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
    """This, any number of times up to `most`, or never."""

    node: "GrammarNode"
    most: int | None = None


class Ref(Struct, eq=False):
    """A node that is set after the nodes that contain it: a value that may contain such values."""

    node: "GrammarNode"


class Values(Struct, frozen=True, eq=False):
    """Values in a notation that is not JSON, as a tree without `Json`; `Ref` occurs only here."""

    node: "GrammarNode"


class Triggered(Struct, frozen=True, eq=False):
    """Free text in which each `trigger` is followed by `rest` and `end`.

    `again` is the whole of the text after that: another of these. None: the trigger occurs at most once.
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
