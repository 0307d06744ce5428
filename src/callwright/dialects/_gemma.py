"""What Gemma's models are shown: turns, and in the notation of their calls tools, declared with types in capitals and
sorted keys.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, assert_never

from msgspec import Struct

from callwright.conversation import AssistantTurn, ConversationTurn, FunctionTool, Item, Message, ToolTurn
from callwright.dialects.prompts.chat_messages import plain_text
from callwright.dialects.prompts.kept_parts import put_turns
from callwright.dialects.prompts.literal_arguments import put_value
from callwright.dialects.readers.notation import Notation
from callwright.prompt import PromptBuilder, own_words
from callwright.schema.keywords import properties, required
from callwright.schema.plain import resolved_schema
from callwright.schema.shown import ShownKeywords

__all__ = ["SHOWN", "GemmaTurns", "declare"]

# Source: the templates; no other keyword has a place there.
SHOWN: Final = ShownKeywords(
    frozenset(("type", "description", "enum", "properties", "required", "items", "anyOf", "oneOf"))
)


def declare(out: PromptBuilder, quote: str, tool: FunctionTool) -> None:
    """Write the declaration of a tool."""
    out.text(f"declaration:{tool.name}")
    declared: dict[str, Any] = {"description": tool.about or ""}
    if schema := resolved_schema(tool):
        declared["parameters"] = {**_object(schema), "type": _kind(schema)}
    put_value(out, quote, declared)


class GemmaTurns(Struct, frozen=True):
    """How a model is shown the turns of a conversation: `around` are the tokens of a turn, `thought` what stands around
    the reasoning of one, and what is said late by others than the user comes from `other`.
    """

    form: Notation
    controls: tuple[str, ...]
    around: tuple[str, str]
    other: str
    thought: tuple[str, str] | None = None

    def begin(self, out: PromptBuilder, role: str) -> PromptBuilder:
        """Begin a turn."""
        return out.control(self.around[0]).text(f"{role}\n")

    def end(self, out: PromptBuilder) -> None:
        """End it."""
        out.control(self.around[1]).text("\n")

    def put(self, out: PromptBuilder, items: Sequence[Item], asked: int) -> bool:
        """Append the turns of these items, with reasoning behind turn `asked`; answers whether the model's answer goes
        on behind them: it has called, or has got its results.
        """
        return bool(put_turns(out, items, self._turn, asked=asked, leaves=_goes_on))

    def _turn(
        self, out: PromptBuilder, turn: ConversationTurn, number: int, *, reasons: bool, left: bool | None
    ) -> None:
        match turn:
            case Message(role, parts):
                self.begin(out, "user" if role == "user" else self.other).text(plain_text(parts, number).strip())
                self.end(out)
            case AssistantTurn(reasoning, message, calls):
                if not left:
                    self.begin(out, "model")
                if self.thought and reasoning and calls and reasons:
                    own_words(out, self.thought[0], self.controls).text(reasoning)
                    own_words(out, self.thought[1], self.controls)
                out.text(plain_text(message.parts, number).strip() if message else "")
                self.form.layout.put(out, calls, controls=self.controls)
                if not calls:
                    self.end(out)
            case ToolTurn(outputs):
                for name, output in outputs:
                    out.control(self.form.results[0]).text(f"response:{name}")
                    put_value(out, self.form.quote, {"value": plain_text(output.parts, number)})
                    out.control(self.form.results[1])
            case _:
                assert_never(turn)


def _goes_on(_: object, turn: ConversationTurn) -> bool:
    return isinstance(turn, ToolTurn) or (isinstance(turn, AssistantTurn) and bool(turn.calls))


def _united(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """A union as one schema with several types, for which the notation has words."""
    parts = [
        _united(part) for union in ("anyOf", "oneOf") for part in schema.get(union) or () if isinstance(part, Mapping)
    ]
    if not parts:
        return schema
    made: dict[str, Any] = {}
    for part in reversed(parts):
        made |= part
    kinds = [_kind(part) for part in parts]
    made["type"] = list(dict.fromkeys(one for kind in kinds for one in (kind if isinstance(kind, list) else [kind])))
    if members := [member for part in parts for member in part.get("enum") or ()]:
        made["enum"] = members
    if inner := {name: each for part in reversed(parts) for name, each in properties(part).items()}:
        made["properties"] = inner
        made["required"] = [name for name in required(made) if all(name in required(p) for p in parts if properties(p))]
    told = [text for part in (schema, *parts) if isinstance(text := part.get("description"), str) and text]
    return {**made, **schema, "type": made["type"], **({"description": " ".join(told)} if told else {})}


def _shown(schema: object) -> dict[str, Any]:
    """A schema as the templates show it: description, what its type adds, and the type at the end."""
    if not isinstance(schema, Mapping):
        return {}
    schema = _united(schema)
    shown: dict[str, Any] = {}
    if schema.get("description"):
        shown["description"] = str(schema["description"])
    if schema.get("nullable"):
        shown["nullable"] = True
    kind = _kind(schema)
    if schema.get("enum"):
        shown["enum"] = list(schema["enum"])
    if kind == "OBJECT" or "OBJECT" in kind:
        shown |= _object(schema)
    if (kind == "ARRAY" or "ARRAY" in kind) and schema.get("items"):
        shown["items"] = _shown(schema["items"])
    return {**shown, "type": kind}


def _object(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The properties of an object, sorted, and which of them must be there."""
    shown: dict[str, Any] = {}
    if members := properties(schema):
        shown["properties"] = {key: _shown(members[key]) for key in sorted(members, key=str.lower)}
    if needed := required(schema):
        shown["required"] = list(needed)
    return shown


def _kind(schema: Mapping[str, Any]) -> str:
    """The type, in capitals: a list of types as Python shows it, no type as an empty text."""
    return str(schema.get("type", "object" if properties(schema) else "")).upper()
