"""The requirements on an answer, independent of any engine."""

from functools import cached_property
from typing import Final

import msgspec

from callwright.constraints.limits import Limits
from callwright.constraints.schema_subset import limits_of
from callwright.conversation import FunctionTool, JsonObject
from callwright.schema.plain import tool_schema

# A tool that is declared without parameters takes none; so does one with an empty list of them, as MCP's tools have it.
_NOTHING: Final[JsonObject] = {"type": "object", "properties": {}, "additionalProperties": False}
_SAY_NOTHING: Final = frozenset(("$schema", "description", "properties", "required", "title", "type"))


class AnswerForm(msgspec.Struct, frozen=True):
    """The form of an answer's text: JSON by a `schema`, or else one of these `words`."""

    schema: JsonObject | None = None
    words: tuple[str, ...] = ()


class Constraint(msgspec.Struct, frozen=True, dict=True):
    """The requirements on an answer, independent of any engine: `tools` are those that may be called.

    `demanded`: one of them must be called, otherwise text is an answer, too. `start` and `prefill` are the prompt's;
    the start of a chat server's answer is `message`. `form`: the form of a text that is an answer; None: any text.
    `tokens`: about the token limit of the request, which bounds texts, lists and numbers; None: it has none.
    """

    dialect: str
    tools: tuple[FunctionTool, ...]
    demanded: bool = True
    parallel: bool = True
    start: str = "assistant"
    prefill: str = ""
    form: AnswerForm | None = None
    tokens: int | None = None

    @cached_property
    def limits(self) -> Limits:
        """The bounds of its grammar, if the schemas of the calls and of the form have none."""
        schemas = [arguments_schema(tool) for tool in self.tools]
        if self.form is not None and self.form.schema is not None:
            schemas.append(self.form.schema)
        return limits_of(schemas, self.tokens)


def arguments_schema(tool: FunctionTool) -> JsonObject:
    """The schema of a tool's arguments; always of type object."""
    schema = tool_schema(tool)
    if schema is None or _names_none(schema):
        return _NOTHING
    return {**schema, "type": "object"}


def _names_none(schema: JsonObject) -> bool:
    """Whether a schema has an empty list of properties, and nothing that could add to it."""
    return schema.get("properties") == {} and not schema.get("required") and schema.keys() <= _SAY_NOTHING
