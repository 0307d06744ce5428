"""Check outputs of tools that have an `output_schema`: the model is warned of an output that does not match it.

The output is never refused: the tool has run, and the client cannot change its answer any more.
"""

from typing import Final

from callwright.conversation import FunctionTool
from callwright.schema.validate import validator_of
from callwright.tolerant_json.codec import NotJsonError, decode

_MOST: Final = 3  # faults listed
_MAX_TOLD: Final = 200  # characters of each


def unfit_words(tool: FunctionTool, output: str) -> str | None:
    """A note to the model for an output that does not match its tool's schema; None if it does, or without a schema.

    A text may be written without quotation marks.
    """
    if tool.output_schema is None:
        return None
    validator = validator_of(tool.output_schema)
    try:
        value = decode(output.encode("utf-8", "replace"))
    except NotJsonError:
        return None if validator.is_valid(output) else _words("it is not valid JSON")
    faults = validator.faults(value, _MOST)
    told = [f"{fault.path}: {fault.message}"[:_MAX_TOLD] for fault in faults]
    return _words("; ".join(told)) if told else None


def _words(why: str) -> str:
    return f"\n\n(This output is not what the tool says that it answers: {why}.)"
