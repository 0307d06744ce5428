"""Custom tools as models see them: functions with one string parameter, `input`.

Open models are trained on functions, so a custom tool and its calls go into the prompt as one, in every dialect and
mode. `callwright.calls.streaming_input` takes the plain input out of the model's arguments again.
"""

from typing import TYPE_CHECKING, Final

from callwright.conversation import CustomInput, FunctionTool
from callwright.tolerant_json.codec import encode

if TYPE_CHECKING:
    from callwright.grammar.grammar import Grammar


INPUT: Final = "input"
_PLAIN: Final = "The whole input as plain text: not wrapped in JSON, not in a code fence."
_SYNTAXES: Final = {"lark": "Lark grammar", "regex": "regular expression"}


def custom_tool(name: str, description: str | None, grammar: "Grammar | None") -> FunctionTool:
    """The function that represents a custom tool. Its grammar is described to the model."""
    told = _PLAIN
    if grammar is not None:
        told = f"{_PLAIN} It must match this {_SYNTAXES[grammar.syntax]}:\n{grammar.definition.strip()}"
    schema = {
        "type": "object",
        "properties": {INPUT: {"type": "string", "description": told}},
        "required": [INPUT],
        "additionalProperties": False,
    }
    return FunctionTool(name, description, schema, custom=CustomInput(grammar))


def input_arguments(text: str) -> str:
    """The function arguments (JSON text) for this input."""
    return encode({INPUT: text}).decode()
