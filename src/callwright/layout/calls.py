r"""How a format writes calls: as text with slots.

    CallLayout(begin='<tool_call>\n{"name": ${name:json}, "arguments": ', end="}\n</tool_call>", between="\n")

From it come the calls of a prompt and of `write`, the tags that a reader looks for, and the shape that constrained
decoding holds a model to. What models write instead is no part of it: tolerance belongs to the readers.

Slots: `${name}`, the tool's name (`${name:json}`: in quotation marks); `${number}`, which the calls of a conversation
count from 0 (`${number:5}`: with five digits); `${index}`, the same from 1 in each turn; `${id}`, the id of a call that
has one, `${, "id": id:json}` with the text before it, `${id:9}` as `sized_id` has it; in arguments `${key}` and
`${type}`.
"""

import json
import re
import string
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from typing import Any, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from callwright.conversation import Call
from callwright.prompt import PromptBuilder, own_words
from callwright.tolerant_json.codec import NotJsonError, decode
from callwright.tolerant_json.escapes import with_whole_characters

_ID_DIGITS: Final = string.digits + string.ascii_letters


class Slot(Struct, frozen=True):
    """A place in a layout: the value, how it is written, and the text before it."""

    what: str
    form: str = ""
    lead: str = ""

    @property
    def is_sized_id(self) -> bool:
        """Whether the value is an id of a fixed length."""
        return self.what == "id" and self.form.isdigit()

    def fill(self, values: Mapping[str, str]) -> str:
        """The text of the slot, with these values."""
        value = values[self.what]
        if self.is_sized_id:
            value = sized_id(value, int(values["number"]), int(self.form))
        elif self.form == "json":
            value = json.dumps(value, ensure_ascii=False) if value else ""
        elif self.form:
            value = value.zfill(int(self.form))
        return self.lead + value if value else ""


def sized_id(given: str, number: int, length: int) -> str:
    """The id of a call in a format whose ids are `length` ASCII letters and digits: the `given` one if it is that.

    Any other is replaced by a digest of it and the call's number in the conversation: the same in each later request,
    and for no other call.
    """
    if len(given) == length and given.isascii() and given.isalnum():
        return given
    if not given:
        return "call" + str(number).zfill(length - len("call"))
    value = int.from_bytes(blake2b(f"{number} {given}".encode("utf-8", "surrogatepass")).digest())
    digits: list[str] = []
    for _ in range(length):
        value, digit = divmod(value, len(_ID_DIGITS))
        digits.append(_ID_DIGITS[digit])
    return "".join(digits)


_SLOT: Final = re.compile(r"\$\{([^${}]*?)(name|number|index|id|key|type)(?::(\w+))?\}")


@cache
def pieces_of(layout: str) -> tuple[str | Slot, ...]:
    """The texts and slots of a layout, in order."""
    pieces: list[str | Slot] = []
    at = 0
    for found in _SLOT.finditer(layout):
        pieces += [layout[at : found.start()], Slot(found[2], found[3] or "", found[1])]
        at = found.end()
    return tuple(piece for piece in (*pieces, layout[at:]) if piece)


def filled(layout: str, values: Mapping[str, str]) -> str:
    """A layout as text, with these values in its slots."""
    return "".join(piece if isinstance(piece, str) else piece.fill(values) for piece in pieces_of(layout))


def _put(out: PromptBuilder, layout: str, values: Mapping[str, str], controls: tuple[str, ...]) -> None:
    """Append a layout: its own text, with control tokens, and the values of its slots, without any."""
    for piece in pieces_of(layout):
        if isinstance(piece, str):
            own_words(out, piece, controls)
        else:
            out.text(piece.fill(values))


class ArgumentsLayout(Protocol):
    """How the arguments of a call are written."""

    def put(self, out: PromptBuilder, call: Call, controls: tuple[str, ...]) -> None:
        """Append the arguments of a call."""


def arguments_object(call: Call) -> Mapping[str, Any]:
    """The arguments of a call in a history as an object; empty if they are not one."""
    return object_of(call.arguments)


def object_of(arguments: str) -> Mapping[str, Any]:
    """The JSON object in arguments; empty if they are not an object. Half of a surrogate pair, valid in JSON but not in
    a prompt, becomes the replacement character.
    """
    try:
        value = decode(with_whole_characters(arguments) or "{}")
    except NotJsonError:
        return {}
    return value if isinstance(value, dict) else {}


class JsonArguments(Struct, frozen=True):
    """A JSON object, as it is or (`anew`) as Python's `json` writes it."""

    anew: bool = False

    def put(self, out: PromptBuilder, call: Call, controls: tuple[str, ...]) -> None:
        arguments = call.arguments or "{}"
        out.json(_written_anew(arguments) if self.anew else arguments)


def _written_anew(text: str) -> str:
    """JSON with Python's white space and without needless escapes; as it is if it cannot be written so."""
    try:
        written = json.dumps(json.loads(text), ensure_ascii=False, allow_nan=False)
        written.encode()  # raises for half of a surrogate pair
    except (ValueError, RecursionError):
        return text
    return written


def _as_it_is(text: str) -> str:
    return text


def _in_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


class TaggedArguments(Struct, frozen=True, kw_only=True):
    """Parameters between tags, `between` two of them. A string is written as it is, any other value as `value` writes
    it.

    `types` are the words for JSON types in the slot `${type}`, of which `""` is any other. `key` and `text` escape.
    """

    begin: str
    end: str
    between: str = ""
    types: Mapping[str, str] = {}
    key: Callable[[str], str] = _as_it_is
    text: Callable[[str], str] = _as_it_is
    value: Callable[[Any], str] = _in_json

    def put(self, out: PromptBuilder, call: Call, controls: tuple[str, ...]) -> None:
        for number, (key, value) in enumerate(arguments_object(call).items()):
            own_words(out, self.between if number else "", controls)
            named = self._values_of(key, json_type(value))
            _put(out, self.begin, named, controls)
            out.text(self.text(value if isinstance(value, str) else self.value(value)))
            _put(out, self.end, named, controls)

    def sides(self, key: str, type_: str) -> tuple[str, str] | None:
        """The text before and after a value of this JSON type; None if it is written in another way."""
        named = self._values_of(key, type_)
        return filled(self.begin, named), filled(self.end, named)

    def _values_of(self, key: str, type_: str) -> Mapping[str, str]:
        return {"key": self.key(key), "type": self.type_word(type_)}

    def type_word(self, type_: str) -> str:
        """The word for a JSON type."""
        return self.types.get(type_, self.types.get("", type_))


class ElementArguments(Struct, frozen=True, kw_only=True):
    """Parameters as elements. In one, a list is elements `item`, an object elements of its keys, a scalar a text."""

    begin: str
    end: str
    between: str = ""

    def put(self, out: PromptBuilder, call: Call, controls: tuple[str, ...]) -> None:
        for key, value in arguments_object(call).items():
            self._put(out, key, value, controls)

    def _put(self, out: PromptBuilder, key: str, value: Any, controls: tuple[str, ...]) -> None:
        _put(out, self.begin, {"key": key}, controls)
        if isinstance(value, Mapping | list):
            for name, inner in value.items() if isinstance(value, Mapping) else (("item", item) for item in value):
                self._put(out, name, inner, controls)
        else:
            out.text(value if isinstance(value, str) else json.dumps(value))
        _put(out, self.end, {"key": key}, controls)

    def sides(self, key: str, type_: str) -> tuple[str, str] | None:
        if type_ in ("array", "object"):
            return None
        return filled(self.begin, {"key": key}), filled(self.end, {"key": key})


class TypedArguments(Struct, frozen=True, kw_only=True):
    """Parameters as elements with a type: a string as it is, an object as elements of its keys, a list as
    elements without a key, anything else as JSON.

    `begin` opens an element with a key, `item` one without; both have the slot `${type}`, for which `types` are the
    words, of which `""` is any other. `key` escapes.
    """

    begin: str
    item: str
    end: str
    types: Mapping[str, str]
    key: Callable[[str], str] = _as_it_is
    between: str = ""

    def put(self, out: PromptBuilder, call: Call, controls: tuple[str, ...]) -> None:
        for key, value in arguments_object(call).items():
            self._put(out, key, value, controls)

    def _put(self, out: PromptBuilder, key: str | None, value: Any, controls: tuple[str, ...]) -> None:
        layout, named = self._opening(key, json_type(value))
        _put(out, layout, named, controls)
        if isinstance(value, Mapping):
            for inner, each in value.items():
                self._put(out, inner, each, controls)
        elif isinstance(value, list):
            for each in value:
                self._put(out, None, each, controls)
        else:
            out.text(value if isinstance(value, str) else json.dumps(value))
        own_words(out, self.end, controls)

    def _opening(self, key: str | None, type_: str) -> tuple[str, Mapping[str, str]]:
        named = {"key": self.key(key or ""), "type": self.types.get(type_, self.types[""])}
        return self.item if key is None else self.begin, named

    def sides(self, key: str | None, type_: str) -> tuple[str, str]:
        """See `TaggedArguments`. Without a key: of a value in a list."""
        return filled(*self._opening(key, type_)), self.end


def json_type(value: Any) -> str:
    """The JSON type of a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
    return "object" if isinstance(value, Mapping) else "array"


JSON: Final = JsonArguments()


class CallLayout(Struct, frozen=True, kw_only=True):
    """The calls of one turn: `begin` and `end` around the arguments of each, `between` two of them, `open` and `close`
    around all of them.

    `stop`: the stop token with which a turn with calls ends. `several`: one turn can hold more than one call.
    `variants` are other openings that models were seen to write for these calls; they are read, not written.
    """

    begin: str
    end: str = ""
    arguments: ArgumentsLayout = JSON
    between: str = ""
    open: str = ""
    close: str = ""
    stop: str = ""
    several: bool = True
    variants: tuple[str, ...] = ()

    def put(
        self, out: PromptBuilder, calls: Sequence[Call], first: int = 0, controls: tuple[str, ...] = ()
    ) -> PromptBuilder:
        """Append calls; `first` is the number of earlier calls in the conversation, `controls` are the control tokens
        of the family.
        """
        own_words(out, self.open, controls)
        for index, call in enumerate(calls):
            own_words(out, self.between if index else "", controls)
            slots = {"name": call.name, "number": str(first + index), "index": str(index + 1), "id": call.id}
            _put(out, self.begin, slots, controls)
            self.arguments.put(out, call, controls)
            _put(out, self.end, slots, controls)
        return own_words(out, self.close + self.stop, controls)

    def text(self, calls: Sequence[Call]) -> str:
        """Calls as the model writes them."""
        return "".join([text for _, text in self.put(PromptBuilder(), calls).collected().runs])


@cache
def written_anew(layout: CallLayout) -> CallLayout:
    """The same layout with arguments as Python's `json` writes them: so some encoders show the calls of a history."""
    return replace(layout, arguments=JsonArguments(anew=True))


def values_as(layout: CallLayout, value: Callable[[Any], str]) -> CallLayout:
    """The same layout, of tagged arguments, with other values than texts as `value` writes them."""
    assert isinstance(layout.arguments, TaggedArguments)
    return replace(layout, arguments=replace(layout.arguments, value=value))


def in_json(name: str = "name", arguments: str = "arguments", lead: str = "") -> str:
    """The begin of a call that is a JSON object with these keys, and `lead` before them; it ends with `}`."""
    return f'{{{lead}"{name}": ${{name:json}}, "{arguments}": '
