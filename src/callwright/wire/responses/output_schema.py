"""Outputs of tools that say what they answer (`output_schema`): the model is told where an output is something else.

An output is never refused for it: it is what the tool has answered, and the client cannot change that any more.
"""

from typing import Final

from callwright.conversation import FunctionTool
from callwright.schema.validate import validator_of
from callwright.tolerant_json.codec import NotJsonError, decode

_MOST: Final = 3  # faults that are told
_MAX_TOLD: Final = 200  # characters of each


def unfit_words(tool: FunctionTool, output: str) -> str | None:
    """What the model reads behind an output that does not fit its tool's schema; None for one that does, and where the
    tool has none. A tool that answers a text may do so without quotation marks.
    """
    if tool.output_schema is None:
        return None
    validator = validator_of(tool.output_schema)
    try:
        value = decode(output.encode("utf-8", "replace"))
    except NotJsonError:
        return None if validator.is_valid(output) else _words("it is no JSON")
    faults = validator.faults(value, _MOST)
    told = [f"{fault.path}: {fault.message}"[:_MAX_TOLD] for fault in faults]
    return _words("; ".join(told)) if told else None


def _words(why: str) -> str:
    return f"\n\n(This output is not what the tool says that it answers: {why}.)"
