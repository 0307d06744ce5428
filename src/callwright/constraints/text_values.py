"""Calls whose values are written as texts: `<parameter=city>\\nParis\\n</parameter>`.

A text extends to its closing mark; values of other types are JSON, or nested elements if these have types. For a type
that a format writes another way, and for a tool that accepts any parameter, only the envelope is constrained: its
content is free text up to its end.

Narrower than the schema, on purpose: only declared parameters, in the schema's order.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from callwright.constraints.format_pieces import Splitter
from callwright.constraints.limits import Limits
from callwright.constraints.rust_regex import whole_pattern, without_anchors
from callwright.constraints.schema_subset import FORMAT_PATTERNS, enumerated, projected
from callwright.constraints.tree import (
    Alternatives,
    Concatenation,
    GrammarNode,
    Json,
    Literal,
    Optional,
    Pattern,
    Repeat,
    TextRule,
    TextUntil,
)
from callwright.conversation import FunctionTool, JsonObject
from callwright.layout.calls import ElementArguments, TaggedArguments, TypedArguments, json_type
from callwright.prompt import Text
from callwright.schema.keywords import DEFINITIONS, properties, required
from callwright.schema.plain import tool_schema
from callwright.schema.resolve import TYPE_NAMES, branches, wanted_type

# From this depth of nesting on, lists are empty and objects are not allowed.
_MAX_DEPTH: Final = 6

# In the place of a name: any.
_ANY_NAME: Final = "\ue000"
_NAME: Final = "[A-Za-z_][A-Za-z0-9_]{0,63}"


def input_words(tool: FunctionTool, limits: Limits | None = None) -> TextRule | None:
    """The rule for the input of a custom tool, from its grammar."""
    grammar = tool.custom.grammar if tool.custom else None
    if grammar is None:
        return None
    if grammar.syntax == "lark":
        return TextRule(lark=grammar.definition)
    pattern = without_anchors(grammar.definition)
    return TextRule(most=limits.text({"pattern": pattern}) if limits else None, pattern=pattern)


class TextCalls:
    """The arguments of one tool, as texts."""

    def __init__(
        self,
        layout: TaggedArguments | ElementArguments | TypedArguments,
        cut: Splitter,
        tool: FunctionTool,
        limits: Limits,
    ) -> None:
        self._limits = limits
        self._layout = layout
        self._cut = cut
        self._tool = tool

    def arguments(self) -> GrammarNode | None:
        """The parameters as nodes; None when there is no saying how they are written."""
        schema = tool_schema(self._tool)
        return Literal(()) if schema is None else self._members(schema, 0)

    def _members(self, schema: JsonObject, depth: int) -> GrammarNode | None:
        """The members of an object of this schema, nested to this depth."""
        declared = properties(schema)
        if schema.get("additionalProperties") or schema.get("patternProperties") or depth > _MAX_DEPTH:
            return None
        separator = self._layout.between
        if not declared:
            return Literal(()) if "properties" in schema else self._others(separator, depth)
        found: list[MemberShape] = []
        for name, inner in declared.items():
            first = self._parameter(name, inner, "", depth)
            later = self._parameter(name, inner, separator, depth) if separator else first
            if first is None or later is None:
                return None
            found.append(MemberShape(first, later, name in required(schema)))
        return in_order(found, separated=bool(separator))

    def _others(self, separator: str, depth: int) -> GrammarNode | None:
        """Parameters that are not declared, of any name and type."""
        first = self._parameter(_ANY_NAME, {}, "", depth)
        later = self._parameter(_ANY_NAME, {}, separator, depth) if separator else first
        if first is None or later is None:
            return None
        return in_order([], MemberShape(first, later, needed=False), self._limits.items)

    def _parameter(self, name: str | None, schema: object, lead: str, depth: int) -> GrammarNode | None:
        """One parameter, preceded by `lead`. Without a name: an item of a list."""
        ways: dict[tuple[str, str], GrammarNode] = {}
        types = list(self._types(schema))
        for type_, branch in types:
            sides = self._sides(name, type_)
            if sides is None:
                return None
            sides = lead + sides[0], sides[1]
            if type_ == "string" and not branch.get("enum"):
                # Any text: values that begin the same way are text, too. So it is bounded only if it is the only type.
                ways[sides] = self._text(sides, self._words(branch if len(types) == 1 else {"type": "string"}))
            elif sides not in ways or not isinstance(_last(ways[sides]), TextUntil):
                node = self._value(sides, type_, branch, depth)
                if node is None and depth < _MAX_DEPTH:
                    return None
                if node is None:
                    continue
                ways[sides] = Alternatives((ways[sides], node)) if sides in ways else node
        return Alternatives(tuple(ways.values())) if ways else None

    def _sides(self, name: str | None, type_: str) -> tuple[str, str] | None:
        if isinstance(self._layout, TypedArguments):
            return self._layout.sides(name, type_)
        assert name is not None, "only elements that say their types hold others"
        return self._layout.sides(name, type_)

    def _types(self, schema: object) -> Iterator[tuple[str, JsonObject]]:
        root = tool_schema(self._tool) or {}
        for branch in branches(schema if isinstance(schema, Mapping) else {}, root):
            type_ = wanted_type(branch)
            if members := enumerated(branch):
                types = [type_] if type_ in TYPE_NAMES else dict.fromkeys(map(json_type, members))
                yield from ((kind, _members_of(kind, members)) for kind in types)
                continue
            kinds = sorted(TYPE_NAMES) if type_ not in TYPE_NAMES else [type_]
            for kind in kinds:
                yield kind, branch if len(kinds) == 1 else {"type": kind}

    def _text(self, sides: tuple[str, str], words: TextRule) -> GrammarNode:
        return Concatenation(
            (self._text_before(sides[0]), TextUntil(self._cut.fixed(self._cut.atoms(sides[1])), words))
        )

    def _text_before(self, side: str) -> GrammarNode:
        """The text before a value; it may hold any name."""
        texts = [Literal(self._cut.fixed(self._cut.atoms(text))) for text in side.split(_ANY_NAME)]
        return texts[0] if len(texts) == 1 else Concatenation((texts[0], Pattern(_NAME), texts[1]))

    def _words(self, schema: JsonObject) -> TextRule:
        """The rule for a text of this schema."""
        if self._tool.custom is not None and (words := input_words(self._tool, self._limits)) is not None:
            return words
        bounds = projected(schema, "llguidance")
        least = bounds.get("minLength", 0)
        wanted = bounds.get("pattern", FORMAT_PATTERNS.get(str(schema.get("format")), ""))
        if (pattern := whole_pattern(wanted)) is not None:
            return TextRule(most=self._limits.text({"minLength": least, "pattern": pattern}), pattern=pattern)
        return TextRule(least, self._limits.text(bounds))

    def _value(self, sides: tuple[str, str], type_: str, branch: JsonObject, depth: int) -> GrammarNode | None:
        before, behind = self._text_before(sides[0]), Literal(self._cut.fixed(self._cut.atoms(sides[1])))
        if type_ == "string":
            texts = [Literal((Text(member),)) for member in branch["enum"] if isinstance(member, str)]
            return Concatenation((before, Alternatives(tuple(texts)), behind))
        if isinstance(self._layout, TypedArguments) and type_ in ("object", "array"):
            inside = self._members(branch, depth + 1) if type_ == "object" else self._items(branch, depth + 1)
            return Concatenation((before, inside, behind)) if inside is not None else None
        definitions = {key: value for key, value in (tool_schema(self._tool) or {}).items() if key in DEFINITIONS}
        return Concatenation((before, Json({**branch, "type": type_, **definitions}, limits=self._limits), behind))

    def _items(self, schema: JsonObject, depth: int) -> GrammarNode | None:
        """The items of a list, any number of them; none if it is nested too deep."""
        items = schema.get("items")
        if not isinstance(items, Mapping):
            return None
        if depth >= min(_MAX_DEPTH, self._limits.depth + 1):
            return Literal(())
        item = self._parameter(None, items, "", depth)
        if item is None:
            return None
        bound = self._limits.number(schema)
        return Repeat(item, bound) if bound else Literal(())


def _members_of(kind: str, members: Sequence[object]) -> JsonObject:
    """The schema of those members that are of one type, else of all its values."""
    kinds = ("integer", "number") if kind == "number" else (kind,)
    own = [member for member in members if json_type(member) in kinds]
    return {"type": kind, "enum": own} if own else {"type": kind}


def _last(node: GrammarNode) -> GrammarNode:
    return node.nodes[-1] if isinstance(node, Concatenation) else node


class MemberShape(Struct, frozen=True):
    """A parameter, or a member of an object. `first` and `later`: without and with what separates it from the one
    before it.
    """

    first: GrammarNode
    later: GrammarNode
    needed: bool


def in_order(
    members: Sequence[MemberShape],
    others: MemberShape | None = None,
    most: int | None = None,
    *,
    separated: bool = True,
) -> GrammarNode:
    """Members in order, optional ones as such, followed by others: any number of them, or `most`."""
    if not separated and others is None:
        return Concatenation(tuple(one.first if one.needed else Optional(one.first) for one in members))
    rest: tuple[GrammarNode, ...] = (Repeat(others.later, most),) if others else ()
    firsts: list[GrammarNode] = [Concatenation((others.first, *rest))] if others else []
    for one in reversed(members):
        if one.needed:
            firsts = []
        firsts.insert(0, Concatenation((one.first, *rest)))
        rest = (one.later if one.needed else Optional(one.later), *([Concatenation(rest)] if rest else []))
    if not firsts:
        return Literal(())
    choice = Alternatives(tuple(firsts))
    return choice if any(one.needed for one in members) else Optional(choice)
