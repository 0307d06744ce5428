"""The type of an agent's answer: its description for the model, and the conversion of the model's output to a value.

There are three ways. `schema`: the request has a `response_format`, or a grammar. `tool`: the model answers by calling
one more tool. `text`: the prompt contains the schema, and the text is checked.
The same check applies to all three, and errors are reported to the model: where, expected, got.
"""

import json
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec

from callwright.agent.function_schema import Types, convert
from callwright.conversation import FunctionTool, JsonObject, ResponseFormat
from callwright.errors import ConfigError, RequestError
from callwright.schema import validate
from callwright.schema.strict import form_problems, strict_problems
from callwright.tolerant_json.codec import NotJsonError, decode
from callwright.tolerant_json.find import find_json
from callwright.turn.structured import StructuredAnswer

# How the output format is enforced; `auto`: by the capabilities of the model.
OutputWay: TypeAlias = Literal["auto", "schema", "tool", "text"]
Way: TypeAlias = Literal["schema", "tool", "text"]

FINAL_TOOL: Final = "final_answer"
_NAME: Final = "answer"
# The root must be an object (OpenAI's strict mode, arguments of a call): other types are wrapped under this name.
_WRAPPED: Final = "value"
_ABOUT_TOOL: Final = "Give the answer. Call it once, when you know all of it; it ends your work."
_MAX_TOLD: Final = 3


class MisfitError(Exception):
    """An invalid answer; the message is for the model."""


class Output:
    """The type of an answer. `given` is a type (any that a tool's parameter may have) or a JSON Schema; with a schema
    the value is plain JSON. Raises `RequestError` for a type without a JSON form.
    """

    def __init__(self, given: Any, description: str | None = None) -> None:
        self._type: Any = None
        try:
            asked, held = _schemas(given) if not isinstance(given, Mapping) else (dict(given), dict(given))
            if not isinstance(given, Mapping):
                self._type = Types(strict=True).of(given)
        except (TypeError, NameError) as error:
            raise RequestError(f"The type of the answer: {error}.", param="output_type") from error
        self._is_wrapped = not _is_object(asked)
        self.schema: JsonObject = _rooted(asked)
        if problems := form_problems(self.schema):
            raise RequestError(f"The schema of the answer cannot be used: {problems[0]}", param="output_type")
        about = description or str(asked.get("description") or "") or None
        strict = not strict_problems(self.schema) or None
        self.form = ResponseFormat("json_schema", _NAME, about, self.schema, strict, is_judged_later=True)
        parts = filter(None, (_ABOUT_TOOL, about))
        self._held = _rooted(held)
        self.tool = FunctionTool(FINAL_TOOL, " ".join(parts), self._held, retry_invalid=True)
        self._judge = StructuredAnswer(ResponseFormat("json_schema", _NAME, about, self._held, strict=True))

    @property
    def words(self) -> str:
        """The prompt text with the schema, for servers that do not add it themselves."""
        schema = json.dumps(self.schema, ensure_ascii=False)
        return f"# Answer format\n\nYour answer is JSON that fits this schema, and nothing else:\n\n{schema}"

    def read(self, text: str) -> Any:
        """The value of a text. Raises `MisfitError`."""
        judged = self._judge.judge(text)
        if judged.text is None:
            assert judged.problem is not None
            raise MisfitError(judged.problem.detail)
        return self._converted(decode(judged.text))

    def read_arguments(self, arguments: str) -> Any:
        """The value of a call's arguments. Raises `MisfitError`."""
        try:
            given = decode(arguments or "{}")
        except NotJsonError as error:
            raise MisfitError(f"the arguments are not valid JSON: {error}") from error
        faults = validate.validator_of(self._held).faults(given)
        if faults:
            raise MisfitError("; ".join(f"{fault.path}: {fault.message}" for fault in faults[:_MAX_TOLD]))
        return self._converted(given)

    def partial(self, text: str) -> Any:
        """The value of an incomplete text so far, as plain JSON; None without a value."""
        found = partial_value(text)
        return found.get(_WRAPPED) if self._is_wrapped and isinstance(found, Mapping) else found

    def _converted(self, given: Any) -> Any:
        return self.value_of(given[_WRAPPED] if self._is_wrapped else given)

    def value_of(self, given: Any) -> Any:
        """Convert plain JSON that fits the schema. Raises `MisfitError`."""
        if self._type is None:
            return given
        try:
            return convert(given, self._type)
        except msgspec.ValidationError as error:
            raise MisfitError(str(error)) from error


def chosen_way(wanted: OutputWay, mode: str, *, has_tools: bool, takes_choice: bool) -> Way:
    """The way for a model in this mode. Most servers with native tool calling produce no calls while they constrain the
    text, so for them the answer is a call, too.
    """
    if wanted not in get_args(OutputWay):
        expected = ", ".join(map(repr, get_args(OutputWay)))
        raise ConfigError(f"Agent(output=…): expected one of {expected}, got {wanted!r}.")
    if wanted != "auto":
        return wanted
    if mode != "native" or not has_tools:
        return "schema"
    return "tool" if takes_choice else "text"


def partial_value(text: str) -> Any:
    """The first JSON value of an incomplete text, without parts that more text could still change."""
    for node in find_json(text):
        try:
            return node.value(completed=True)
        except NotJsonError:
            return None
    return None


def _schemas(given: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The requested schema of a type, strict if possible, and the one for validation, in which optional fields may be
    omitted.
    """
    asked, held = _schema(given, Types(strict=True)), _schema(given, Types(strict=True, requires_all=False))
    if strict_problems(_rooted(asked)):
        asked = _schema(given, Types())
    return asked, held


def _schema(given: Any, types: Types) -> dict[str, Any]:
    schema = types.schema(types.of(given))
    return {**schema, **({"$defs": types.definitions} if types.definitions else {})}


def _is_object(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "object"


def _rooted(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with an object at its root."""
    if _is_object(schema):
        return dict(schema)
    inner = {name: part for name, part in schema.items() if name not in ("$defs", "definitions")}
    made: dict[str, Any] = {
        "type": "object",
        "properties": {_WRAPPED: inner},
        "required": [_WRAPPED],
        "additionalProperties": False,
    }
    return made | {name: schema[name] for name in ("$defs", "definitions") if name in schema}
