"""Conversations and tools as values, independent of the wire format.

A conversation is a list of items in the shape of the Responses API: messages, reasoning, calls and their outputs, in
order. Chat messages map onto it (`callwright.wire.chat.request`). Nothing here knows JSON texts, HTTP or a model
family.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, final

from msgspec import Struct, field

from callwright.events import Call
from callwright.memo.prefixes import Shared, intern

if TYPE_CHECKING:
    from callwright.grammar.grammar import Grammar  # its engine is loaded with the first grammar

__all__ = [
    "AssistantTurn",
    "Call",
    "CallOutput",
    "Conversation",
    "ConversationTurn",
    "CustomInput",
    "EarlierCalls",
    "FunctionTool",
    "Item",
    "JsonObject",
    "MediaPart",
    "Message",
    "NamedTool",
    "Part",
    "Reasoning",
    "ResponseFormat",
    "Role",
    "TextPart",
    "ToolChoice",
    "ToolTurn",
    "TurnsAlong",
    "parts_text",
    "shared_item",
    "turns_of",
]

Role = Literal["system", "developer", "user", "assistant"]
JsonObject: TypeAlias = Mapping[str, Any]


@final
class TextPart(Struct, frozen=True):
    """A piece of text in a message."""

    text: str


@final
class MediaPart(Struct, frozen=True):
    """A part that is not text (image, audio, file), as the client wrote it: `value` is its whole JSON object.

    `param` is its path in the request, for errors.
    """

    value: JsonObject
    param: str = ""


Part: TypeAlias = TextPart | MediaPart


@final
class Message(Shared, frozen=True):
    """A message of the user, the system or the assistant. `extra` holds fields of the client that mean nothing here."""

    role: Role
    parts: tuple[Part, ...] = ()
    name: str | None = None
    extra: JsonObject = field(default_factory=dict)

    @cached_property
    def text(self) -> str:
        """Its text parts, concatenated."""
        return parts_text(self.parts)

    @cached_property
    def has_media(self) -> bool:
        """Whether any of its parts is no text."""
        return any(isinstance(part, MediaPart) for part in self.parts)


@final
class Reasoning(Shared, frozen=True):
    """Reasoning that an assistant wrote before the items that follow it."""

    text: str


@final
class CallOutput(Shared, frozen=True):
    """The output of a tool for the call with this id."""

    call_id: str
    parts: tuple[Part, ...] = ()

    @cached_property
    def text(self) -> str:
        """Its text parts, concatenated."""
        return parts_text(self.parts)

    @cached_property
    def has_media(self) -> bool:
        """Whether any of its parts is no text."""
        return any(isinstance(part, MediaPart) for part in self.parts)


Item: TypeAlias = Message | Reasoning | Call | CallOutput
ItemT = TypeVar("ItemT", Message, Reasoning, Call, CallOutput, Item)


def instructs(item: Item) -> bool:
    """Whether an item is a system or developer message."""
    return isinstance(item, Message) and item.role in ("system", "developer")


def shared_item(item: ItemT) -> ItemT:
    """The one object for all items that equal this one. With media or fields of the client, the item itself."""
    if type(item) is Message:
        if item.extra or item.has_media:
            return item
        return intern(item, (Message, item.role, item.name, item.parts), item.weight)
    if type(item) is CallOutput and item.has_media:
        return item
    return intern(item, size=item.weight)


class CustomInput(Struct, frozen=True):
    """Restriction of a custom tool's input: any text, or texts of its grammar."""

    grammar: "Grammar | None" = None


class FunctionTool(Shared, frozen=True):
    """A function the model may call. `parameters` is its JSON Schema; None: it takes no arguments.

    `custom` marks a custom tool: the model sees a function with one text, the client gets the text (see
    `callwright.calls.custom_tools`). `enforce_schema`: a call that does not fit is never sent, though the schema is not
    a strict one. `retry_invalid`: such a call is held, and the model asked again; if it stays invalid, it is sent with
    its problem. `output_schema` is the JSON Schema of its result.
    """

    name: str
    description: str | None = None
    parameters: JsonObject | None = None
    strict: bool | None = None
    custom: CustomInput | None = None
    enforce_schema: bool = False
    retry_invalid: bool = False
    output_schema: JsonObject | None = None

    @cached_property
    def about(self) -> str | None:
        """Its description and the schema of its result, for formats without a field for the latter."""
        if self.output_schema is None:
            return self.description
        schema = json.dumps(self.output_schema, ensure_ascii=False, separators=(",", ":"))
        return "\n\n".join(filter(None, (self.description, f"It answers JSON by this schema: {schema}")))

    @cached_property
    def must_be_valid(self) -> bool:
        """Whether a call that does not hold may not leave."""
        return self.enforce_schema or bool(self.strict) or (self.custom is not None and self.custom.grammar is not None)

    def as_openai(self) -> dict[str, Any]:
        """The tool in the Chat shape, which most prompt formats show to the model as it is."""
        return {"type": "function", "function": dict(self.openai["function"])}

    @cached_property
    def openai(self) -> dict[str, Any]:
        """The tool in OpenAI's form; cached, so it must not be modified."""
        fields = {"description": self.about, "parameters": self.parameters, "strict": self.strict}
        function = {"name": self.name} | {key: value for key, value in fields.items() if value is not None}
        return {"type": "function", "function": function}

    @cached_property
    def openai_json(self) -> str:
        """The same as text, spaced as Python writes JSON: so do chat templates."""
        return json.dumps(self.openai, ensure_ascii=False)


class NamedTool(Struct, frozen=True):
    """The choice that forces one tool."""

    name: str


ToolChoice: TypeAlias = Literal["none", "auto", "required"] | NamedTool


class ResponseFormat(Struct, frozen=True):
    """Required form of the answer's text: any JSON object, or JSON by a schema.

    `is_judged_later`: the caller validates the text itself and retries; so nothing of it is held back.
    """

    type: Literal["json_object", "json_schema"]
    name: str = ""
    description: str | None = None
    schema: JsonObject | None = None
    strict: bool | None = None
    is_judged_later: bool = False


@final
class AssistantTurn(Struct):
    """One turn of the assistant: reasoning, message and calls, each optional.

    `calls_before`: number of calls in the conversation before this turn's.
    """

    reasoning: str | None = None
    message: Message | None = None
    calls: list[Call] = []
    calls_before: int = 0

    @property
    def text(self) -> str:
        """Text of its message."""
        return self.message.text if self.message else ""


@final
class ToolTurn(Struct):
    """The outputs that answer the calls of a turn, each with the name of its tool (`""` when no call has its id).
    `numbers` are those of their calls, counted from the begin of the conversation; without a call, that of the output
    in the turn.
    """

    outputs: list[tuple[str, CallOutput]] = []
    numbers: list[int] = []


ConversationTurn: TypeAlias = Message | AssistantTurn | ToolTurn


class Conversation(Struct, frozen=True):
    """A request to a model: the items so far, the tools it knows, and how it may answer.

    `allowed_tools` are the names of those that may be called now; None: all. `shown_tools` are those that the prompt
    lists, if different from `tools`: the schemas of the rest are among the items, at the place where the search found
    them, so that the start of the prompt stays the same. `session_id` is the client's: requests of one session are
    routed to one of several servers. `keeps_reasoning`: reasoning from earlier questions stays in the prompt, too, if
    the model's format can hold it. `prefill` is the beginning of the answer, which the model continues.
    """

    items: tuple[Item, ...] = ()
    tools: tuple[FunctionTool, ...] = ()
    shown_tools: tuple[FunctionTool, ...] | None = None
    tool_choice: ToolChoice = "auto"
    allowed_tools: tuple[str, ...] | None = None
    parallel_tool_calls: bool = True
    response_format: ResponseFormat | None = None
    session_id: str | None = None
    keeps_reasoning: bool = False
    prefill: str = ""

    def named_outputs(self) -> dict[int, str]:
        """The name of the tool of each output, by the output's number among the items; `""` when no call has its id.

        Of several calls with one id the latest before the output counts.
        """
        names: dict[str, str] = {}
        found: dict[int, str] = {}
        for number, item in enumerate(self.items):
            if isinstance(item, Call):
                names[item.id] = item.name
            elif isinstance(item, CallOutput):
                found[number] = names.get(item.call_id, "")
        return found

    def turns(self) -> list[ConversationTurn]:
        """The items as turns, the way chat formats show them: a user's message is a turn of its own."""
        return turns_of(self.items, EarlierCalls())


class EarlierCalls(Struct):
    """The calls before an item: how many they are, and the tool's name and the number of each, by its id. Of several
    with one id the latest counts.
    """

    number: int = 0
    by_id: dict[str, tuple[str, int]] = {}

    def copy(self) -> "EarlierCalls":
        """An independent copy to extend."""
        return EarlierCalls(self.number, {**self.by_id})


def turns_of(items: Sequence[Item], earlier: EarlierCalls) -> list[ConversationTurn]:
    """See `Conversation.turns`. `earlier` are the calls before these items; those among them come in."""
    turns: list[ConversationTurn] = []
    last: ConversationTurn | None = None
    # Not `match`: to find that a value is of another class takes longer than all the rest.
    for item in items:
        if type(item) is Call:
            if type(last) is not AssistantTurn:
                turns.append(last := AssistantTurn())
            if not last.calls:
                last.calls_before = earlier.number
            earlier.by_id[item.id] = item.name, earlier.number
            earlier.number += 1
            last.calls.append(item)
        elif type(item) is CallOutput:
            if type(last) is not ToolTurn:
                turns.append(last := ToolTurn())
            name, number = earlier.by_id.get(item.call_id) or ("", len(last.outputs))
            last.outputs.append((name, item))
            last.numbers.append(number)
        elif type(item) is Reasoning:
            if type(last) is not AssistantTurn or last.message or last.calls or last.reasoning:
                turns.append(last := AssistantTurn())
            last.reasoning = item.text
        elif item.role == "assistant":
            if type(last) is not AssistantTurn or last.message or last.calls:
                turns.append(last := AssistantTurn())
            last.message = item
        else:
            turns.append(last := item)
    return turns


class TurnsAlong(Struct, frozen=True):
    """Incremental result over the turns of a growing conversation.

    No later item can change the first `turns` turns, which cover the first `items` items; `made` has the results of the
    first `closed` of them. `earlier`: the calls in those.
    """

    made: list[Any] = []
    closed: int = 0
    turns: int = 0
    items: int = 0
    earlier: EarlierCalls = field(default_factory=EarlierCalls)

    def more(self, items: Sequence[Item], make: Callable[[ConversationTurn, int], Sequence[Any]]) -> "TurnsAlong":
        """The same for these items, of which the first are those that there were. `make` is given each turn and its
        number.
        """
        earlier = self.earlier.copy()
        end = len(items) - _open(items)
        made = self.made[: self.closed]
        turns = self.turns
        for turn in turns_of(items[self.items : end], earlier):
            made += make(turn, turns)
            turns += 1
        closed = len(made)
        for number, turn in enumerate(turns_of(items[end:], earlier.copy()), turns):
            made += make(turn, number)
        return TurnsAlong(made, closed, turns, end, earlier)


def _open(items: Sequence[Item]) -> int:
    """How many items there are at the end that may be shown together with later ones: outputs, or all that an assistant
    did.
    """
    last = items[-1] if items else None
    if last is None or (type(last) is Message and last.role != "assistant"):
        return 0
    are_outputs = type(last) is CallOutput
    for number, item in enumerate(reversed(items)):
        if (type(item) is CallOutput) != are_outputs or (type(item) is Message and item.role != "assistant"):
            return number
    return len(items)


def parts_text(parts: tuple[Part, ...]) -> str:
    """The text parts, concatenated."""
    return "".join([part.text for part in parts if type(part) is TextPart])
