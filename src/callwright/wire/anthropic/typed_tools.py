"""Tools that Anthropic's API knows by their type: the client runs them, and the schema is not in the request.

Source: platform.claude.com/docs (bash, text editor and memory tool) and the types of `anthropic` 2.14.0, November 2026.
"""

from collections.abc import Mapping
from typing import Any, Final

from callwright.conversation import FunctionTool

_TEXT: Final = {"type": "string"}
_LINE: Final = {"type": "integer"}
_RANGE: Final = {"type": "array", "items": _LINE, "minItems": 2, "maxItems": 2}


def _schema(required: list[str], **properties: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


_EDITS: Final[Mapping[str, Mapping[str, Any]]] = {
    "path": {**_TEXT, "description": "Absolute path of a file or folder."},
    "view_range": {**_RANGE, "description": "For view: first and last line, from 1; -1 is the end."},
    "file_text": {**_TEXT, "description": "For create: what the file is to hold."},
    "old_str": {**_TEXT, "description": "For str_replace: the text to replace; it must occur exactly once."},
    "new_str": {**_TEXT, "description": "For str_replace: the text in its place."},
    "insert_line": {**_LINE, "description": "For insert: the line after which the text goes; 0 is the beginning."},
    "insert_text": {**_TEXT, "description": "For insert: the text."},
}


def _editor(*commands: str) -> Mapping[str, Any]:
    command = {**_TEXT, "enum": list(commands), "description": "What to do."}
    return _schema(["command", "path"], command=command, **_EDITS)


_BASH: Final = FunctionTool(
    "bash",
    "Runs commands in a bash shell. The shell stays between calls, with its folder and variables.",
    _schema(
        [],
        command={**_TEXT, "description": "The command to run."},
        restart={"type": "boolean", "description": "True restarts the shell, instead of a command."},
    ),
)
_EDITOR_ABOUT: Final = "Views, creates and edits text files."
_EDITOR: Final = FunctionTool(
    "str_replace_based_edit_tool", _EDITOR_ABOUT, _editor("view", "create", "str_replace", "insert")
)
_OLD_EDITOR: Final = FunctionTool(
    "str_replace_editor", _EDITOR_ABOUT, _editor("view", "create", "str_replace", "insert", "undo_edit")
)
_MEMORY: Final = FunctionTool(
    "memory",
    "Keeps notes in files below /memories, which stay from one conversation to the next. Look there first.",
    _schema(
        ["command"],
        command={
            **_TEXT,
            "enum": ["view", "create", "str_replace", "insert", "delete", "rename"],
            "description": "What to do.",
        },
        **_EDITS,
        old_path={**_TEXT, "description": "For rename: the present path."},
        new_path={**_TEXT, "description": "For rename: the new path."},
    ),
)
# By the type, which ends in the date of its version.
_CLIENT_TOOLS: Final[Mapping[str, FunctionTool]] = {
    "bash_20241022": _BASH,
    "bash_20250124": _BASH,
    "text_editor_20241022": _OLD_EDITOR,
    "text_editor_20250124": _OLD_EDITOR,
    "text_editor_20250429": _EDITOR,
    "text_editor_20250728": _EDITOR,
    "memory_20250818": _MEMORY,
}
# Searches for tools that the server runs, by the begin of their types.
SEARCH_KINDS: Final = ("tool_search_tool_regex", "tool_search_tool_bm25")


def typed_tool(kind: str) -> FunctionTool | None:
    """The tool of a type, under its usual name; None for an unknown type."""
    return _CLIENT_TOOLS.get(kind)
