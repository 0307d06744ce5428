"""OpenAI's built-in tools that a client runs, as functions that any model can call."""

from collections.abc import Mapping
from typing import Final

from callwright.conversation import FunctionTool

_TEXT: Final = {"type": "string"}

_NUMBER: Final = {"type": "integer"}

_STRINGS: Final = {"type": "array", "items": {"type": "string"}}

BUILTIN_TOOLS: Final[Mapping[str, FunctionTool]] = {
    "shell": FunctionTool(
        "shell",
        "Runs shell commands, one after the other, and answers what each printed.",
        {
            "type": "object",
            "properties": {"commands": _STRINGS, "timeout_ms": _NUMBER, "max_output_length": _NUMBER},
            "required": ["commands"],
            "additionalProperties": False,
        },
        enforce_schema=True,
    ),
    "local_shell": FunctionTool(
        "local_shell",
        "Runs a command, given as the list of its words, and answers what it printed.",
        {
            "type": "object",
            "properties": {"command": _STRINGS, "working_directory": _TEXT, "timeout_ms": _NUMBER},
            "required": ["command"],
            "additionalProperties": False,
        },
        enforce_schema=True,
    ),
    "apply_patch": FunctionTool(
        "apply_patch",
        "Creates, updates or deletes one file. `diff` is in the V4A format: the new file's lines, each with a + before "
        "it, or the changed lines with - and + and the lines around them with a space. None to delete a file.",
        {
            "type": "object",
            "properties": {
                "type": {"type": "string", "enum": ["create_file", "update_file", "delete_file"]},
                "path": {"type": "string"},
                "diff": _TEXT,
            },
            "required": ["type", "path"],
            "additionalProperties": False,
            "if": {"properties": {"type": {"enum": ["create_file", "update_file"]}}},
            "then": {"required": ["diff"]},
        },
        enforce_schema=True,
    ),
}
