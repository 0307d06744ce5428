"""Arguments in the syntax of a program: `city="Paris", days=[1, True]`, `city:<|"|>Paris<|"|>,days:[1,true]`.

A string in quotation marks escapes them; one between delimiters cannot contain them. Both are wider than a schema: the
order of members is fixed, undeclared members may have any key, numbers are bounded as in GBNF, and a pattern that may
match characters that must be escaped is left out.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeAlias

from callwright.calls.custom_tools import INPUT
from callwright.constraints.format_pieces import Fixed, Splitter
from callwright.constraints.gbnf.regex import may_read
from callwright.constraints.limits import Limits
from callwright.constraints.number_ranges import has_bounds, integer_pattern, integer_range, number_pattern
from callwright.constraints.rust_regex import whole_pattern
from callwright.constraints.schema_subset import projected
from callwright.constraints.text_values import MemberShape, in_order, input_words
from callwright.constraints.tree import (
    Alternatives,
    Concatenation,
    GrammarNode,
    Literal,
    Optional,
    Pattern,
    Ref,
    Repeat,
    TextRule,
    TextUntil,
    Values,
)
from callwright.conversation import FunctionTool, JsonObject
from callwright.layout.calls import CallLayout
from callwright.layout.literal import DelimitedArguments, PythonArguments
from callwright.prompt import Text

# More items are not required: each is a part of the grammar.
_MAX_ITEMS: Final = 32
# Values that may be anything are nested no deeper.
_MAX_NESTED: Final = 3
_KEY: Final = 64
# Letters that are allowed in a key without quotation marks.
_LETTERS: Final = (
    r"A-Za-z_\u{C0}-\u{D6}\u{D8}-\u{F6}\u{F8}-\u{24F}\u{400}-\u{481}\u{48A}-\u{52F}"
    r"\u{3041}-\u{3096}\u{30A1}-\u{30FA}\u{4E00}-\u{9FFF}\u{AC00}-\u{D7A3}"
)
_BARE: Final = rf"[{_LETTERS}0-9.$-]{{1,{_KEY}}}"
_IS_BARE: Final = re.compile(r"[\w.$-]+\Z").match
_NUMBER: Final = r"-?(?:0|[1-9][0-9]{0,20})(?:\.[0-9]{1,16})?(?:[eE][+-]?[0-9]{1,3})?"
# A character of a string in quotation marks, and those that no short escape can write.
_PLAIN: Final = r"[^%s\\\x00-\x1F]"
_ESCAPES: Final = r"\\[\x22'\\/nrtbf]|\\x[0-9a-fA-F][0-9a-fA-F]|\\u[0-9a-ce-fA-CE-F][0-9a-fA-F][0-9a-fA-F][0-9a-fA-F]"
_LONG_ESCAPES: Final = (
    r"\\u[dD][0-7][0-9a-fA-F][0-9a-fA-F]|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|\\U000[1-9a-fA-F][0-9a-fA-F]{4}"
)
# Characters that a string in quotation marks must escape.
_ESCAPED: Final = ((0, 31), (34, 34), (39, 39), (92, 92))
_Schema: TypeAlias = Mapping[str, Any]


class Notation:
    """A family's syntax of values. One object makes the nodes of all its tools, so that they share common ones."""

    words: ClassVar[Mapping[object, tuple[str, ...]]] = {True: ("true",), False: ("false",), None: ("null",)}

    def __init__(self, comma: GrammarNode, limits: Limits) -> None:
        self.comma = comma
        self.limits = limits
        self.any_key = self.text({"maxLength": _KEY})
        self.string = self.text({"maxLength": limits.characters})
        self.boolean = _choice([self.constant(True), self.constant(False)])
        self.null = self.constant(None)
        self._matching: dict[str, Pattern] = {}  # by the expression
        self.number = Pattern(_NUMBER)
        self.any: GrammarNode = Alternatives((self.string, self.number, self.boolean, self.null))
        self.object, self.array = self.braces(Literal(())), _literal("[]")
        for _ in range(min(_MAX_NESTED, limits.depth)):
            others = self.member(self.key(None), self.any)
            self.object = self.braces(in_order([], others, limits.items))
            self.array = self.items(self.any, 0, limits.items)
            self.any = Alternatives((self.object, self.array, self.string, self.number, self.boolean, self.null))

    def arguments(self, schema: JsonObject, tool: FunctionTool) -> GrammarNode:
        """The arguments of a tool, without the brackets around them."""
        return Values(_Arguments(self, schema, input_words(tool, self.limits)).whole())

    # --- what differs ---

    def ordered(self, names: Sequence[str]) -> Sequence[str]:
        """The names of members in the order in which they are written."""
        return names

    def text(self, schema: _Schema, words: TextRule | None = None) -> GrammarNode:
        """Any string of this schema, as far as it is held."""
        raise NotImplementedError

    def exact_text(self, text: str) -> GrammarNode:
        """This string."""
        raise NotImplementedError

    def key(self, name: str | None) -> GrammarNode:
        """A key and the mark after it; None: any key."""
        raise NotImplementedError

    def argument(self, name: str | None) -> GrammarNode:
        """The same for the name of an argument."""
        return self.key(name)

    # --- nodes built from these ---

    def matching(self, expression: str) -> GrammarNode:
        """A number that matches."""
        return self._matching.setdefault(expression, Pattern(expression))

    def member(self, key: GrammarNode, value: GrammarNode, *, needed: bool = False) -> MemberShape:
        """A member of an object."""
        first = Concatenation((key, value))
        return MemberShape(first, Concatenation((self.comma, first)), needed)

    def braces(self, members: GrammarNode) -> GrammarNode:
        """An object."""
        return Concatenation((_literal("{"), members, _literal("}")))

    def items(self, item: GrammarNode, least: int, most: int | None) -> GrammarNode:
        """A list with `least` to `most` items."""
        if most == 0:
            return _literal("[]")
        behind = Concatenation((self.comma, item))
        least = min(least, _MAX_ITEMS)
        more = None if most is None else most - max(least, 1)
        rest = Literal(()) if more == 0 else Repeat(behind, more)
        some = Concatenation((item, *[behind] * (least - 1), rest))
        return Concatenation((_literal("["), some if least else Optional(some), _literal("]")))

    def constant(self, value: object) -> GrammarNode:
        """This value."""
        match value:
            case str():
                return self.exact_text(value)
            case bool() | None:
                return _choice([_literal(word) for word in self.words[value]])
            case Mapping():
                keys = self.ordered(list(value))
                members = [self.member(self.key(key), self.constant(value[key]), needed=True) for key in keys]
                return self.braces(in_order(members))
            case list():
                inner = in_order([self.member(Literal(()), self.constant(item), needed=True) for item in value])
                return Concatenation((_literal("["), inner, _literal("]")))
        return _literal(json.dumps(value))


class _Python(Notation):
    """Python's literals, with strings in either quotation mark; JSON's words go as well."""

    words: ClassVar[Mapping[object, tuple[str, ...]]] = {
        True: ("True", "true"),
        False: ("False", "false"),
        None: ("None", "null"),
    }

    def __init__(self, limits: Limits) -> None:
        super().__init__(_choice([_literal(", "), _literal(",")]), limits)

    def text(self, schema: _Schema, words: TextRule | None = None) -> GrammarNode:
        pattern = _pattern(schema, words)
        if pattern is not None and not may_read(pattern, _ESCAPED):
            most = words.most if words is not None else schema.get("maxLength")
            return Pattern(f"\"(?:{pattern})\"|'(?:{pattern})'", most=most)
        least, most = schema.get("minLength", 0), schema.get("maxLength", "")
        each = [
            rf"{quote}(?:{_PLAIN % quote}|{_ESCAPES}|{_LONG_ESCAPES}){{{least},{most}}}{quote}"
            for quote in (r"\x22", "'")
        ]
        return Pattern("|".join(each), words)

    def exact_text(self, text: str) -> GrammarNode:
        return _choice([_literal(form) for form in dict.fromkeys((json.dumps(text, ensure_ascii=False), repr(text)))])

    def key(self, name: str | None) -> GrammarNode:
        behind = _choice([_literal(": "), _literal(":")])
        return Concatenation((self.any_key if name is None else self.exact_text(name), behind))

    def argument(self, name: str | None) -> GrammarNode:
        if name is None:
            return Concatenation((Pattern(_BARE), _literal("=")))
        return _literal(f"{name if _IS_BARE(name) else json.dumps(name, ensure_ascii=False)}=")


class _Delimited(Notation):
    """Strings between delimiters, keys as they are, no blanks; keys are sorted."""

    def __init__(self, quote: Fixed, limits: Limits) -> None:
        self._quote = quote
        super().__init__(_literal(","), limits)

    def ordered(self, names: Sequence[str]) -> Sequence[str]:
        return sorted(names, key=str.lower)

    def text(self, schema: _Schema, words: TextRule | None = None) -> GrammarNode:
        least, most = schema.get("minLength", 0), schema.get("maxLength")
        if (pattern := _pattern(schema, words)) is not None:
            words = TextRule(most=words.most if words is not None else most, pattern=pattern)
        elif words is None:
            words = TextRule(least, most)
        return Concatenation((Literal(self._quote), TextUntil(self._quote, words)))

    def exact_text(self, text: str) -> GrammarNode:
        return Concatenation((Literal(self._quote), _literal(text), Literal(self._quote)))

    def key(self, name: str | None) -> GrammarNode:
        if name is None:
            return Concatenation((Alternatives((Pattern(_BARE), self.any_key)), _literal(":")))
        return _literal(f"{name}:") if _IS_BARE(name) else Concatenation((self.exact_text(name), _literal(":")))


class _Arguments:
    """The arguments of one tool; `words`: the rule of a custom tool's input."""

    def __init__(self, notation: Notation, schema: JsonObject, words: TextRule | None) -> None:
        self._notation = notation
        self._words = words
        # It is the same tree for all engines, so it holds what all of them can.
        self._root = projected(schema, "llamacpp", notation.limits)
        self._closed = not (schema.get("additionalProperties") or schema.get("patternProperties"))
        self._known: dict[str, Ref] = {}  # by reference

    def whole(self) -> GrammarNode:
        """All arguments."""
        return self._arguments(self._root)

    def _arguments(self, schema: _Schema) -> GrammarNode:
        if "anyOf" in schema:
            return _choice([self._arguments(branch) for branch in schema["anyOf"]])
        if schema.get("$ref", "#") != "#":
            return self._arguments(self._target(schema["$ref"]))
        closed = self._closed and schema.get("properties")
        held = {**schema, "additionalProperties": False} if closed else schema
        return self._members(held, self._notation.argument)

    def _members(self, schema: _Schema, key: Callable[[str | None], GrammarNode]) -> GrammarNode:
        notation, declared = self._notation, schema.get("properties", {})
        needed, open_ = schema.get("required", ()), schema.get("additionalProperties", True)
        members = [
            notation.member(key(name), self._argument(name, declared[name]), needed=name in needed)
            for name in notation.ordered(list(declared))
        ]
        others = None
        if open_ is not False:
            others = notation.member(key(None), notation.any if open_ is True else self._value(open_))
        most = schema.get("maxProperties")
        return in_order(members, others, None if most is None else most - len(declared))

    def _argument(self, name: str, schema: _Schema) -> GrammarNode:
        if self._words is not None and name == INPUT:
            return self._notation.text({}, self._words)
        return self._value(schema)

    def _value(self, schema: _Schema) -> GrammarNode:
        notation = self._notation
        if "$ref" in schema:
            return self._reference(schema["$ref"])
        if "enum" in schema:
            return _choice([notation.constant(member) for member in schema["enum"]])
        if "anyOf" in schema:
            return _choice([self._value(branch) for branch in schema["anyOf"]])
        match schema.get("type"):
            case "object":
                is_any = not schema.get("properties") and schema.get("additionalProperties", True) is True
                return notation.object if is_any else notation.braces(self._members(schema, notation.key))
            case "array":
                return self._array(schema)
            case "string":
                return notation.text(schema) if len(schema) > 1 else notation.string
            case "integer":
                return notation.matching(integer_pattern(*integer_range(schema)))
            case "number" if has_bounds(schema):
                return notation.matching(number_pattern(schema))
            case "number":
                return notation.number
            case "boolean":
                return notation.boolean
            case "null":
                return notation.null
        return notation.any

    def _array(self, schema: _Schema) -> GrammarNode:
        if schema.get("prefixItems"):
            nodes = [self._value(part) for part in schema["prefixItems"]]
            row = in_order([self._notation.member(Literal(()), node, needed=True) for node in nodes])
            return Concatenation((_literal("["), row, _literal("]")))
        item = self._value(schema.get("items", {}))
        return self._notation.items(item, schema.get("minItems", 0), schema.get("maxItems"))

    def _reference(self, reference: str) -> GrammarNode:
        if reference not in self._known:
            self._known[reference] = later = Ref(self._notation.any)
            later.node = self._value(self._target(reference))
        return self._known[reference]

    def _target(self, reference: str) -> _Schema:
        if reference == "#":
            return {name: value for name, value in self._root.items() if name not in ("$defs", "definitions")}
        _, group, name = reference.split("/")
        found: _Schema = self._root[group][name.replace("~1", "/").replace("~0", "~")]
        return found


def notation_of(layout: CallLayout, cut: Splitter, limits: Limits) -> Notation | None:
    """The notation in which arguments are written; None if it is not supported here."""
    match layout.arguments:
        case PythonArguments():
            return _Python(limits)
        case DelimitedArguments(quote):
            return _Delimited(cut.fixed(cut.atoms(quote)), limits)
    return None


def _pattern(schema: _Schema, words: TextRule | None) -> str | None:
    return words.pattern if words is not None else whole_pattern(schema.get("pattern", ""))


def _literal(text: str) -> GrammarNode:
    return Literal((Text(text),) if text else ())


def _choice(nodes: Sequence[GrammarNode]) -> GrammarNode:
    return nodes[0] if len(nodes) == 1 else Alternatives(tuple(nodes))
