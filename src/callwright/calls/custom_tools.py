"""Custom tools as models know them: functions with one text, `input`.

Open models are trained on functions, so a custom tool goes into their prompts as one, in every dialect and every mode,
and so do the calls of it in a conversation. What the model writes becomes the bare input again on its way out
(`callwright.custom_input`).
"""

from typing import TYPE_CHECKING, Final

from callwright.conversation import CustomInput, FunctionTool
from callwright.tolerant_json.codec import encode

if TYPE_CHECKING:
    from callwright.grammar.grammar import Grammar

__all__ = ["INPUT", "custom_tool", "input_arguments"]

INPUT: Final = "input"
_PLAIN: Final = "The whole input as plain text: not wrapped in JSON, not in a code fence."
_SYNTAXES: Final = {"lark": "Lark grammar", "regex": "regular expression"}


def custom_tool(name: str, description: str | None, grammar: "Grammar | None") -> FunctionTool:
    """The function that stands for a custom tool. Its grammar is told to the model."""
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
    """The arguments with which a model would give this input."""
    return encode({INPUT: text}).decode()
