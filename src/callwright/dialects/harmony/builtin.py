"""The tools gpt-oss was trained with, in the words it was trained on. Source: openai/harmony 0.0.8.

The namespace `multi_tool_use`, which wraps several calls in one, is OpenAI's for its models; here are its words.
"""

from collections.abc import Callable
from typing import Literal

from callwright.conversation import FunctionTool
from callwright.schema.typescript import declaration

BuiltinName = Literal["browser", "python"]

_PYTHON = (
    "Use this tool to execute Python code in your chain of thought. The code will not be shown to the user. This tool "
    "should be used for internal reasoning, but not for code that is intended to be visible to the user (e.g. when "
    "creating plots, tables, or files).\n\n"
    "When you send a message containing Python code to python, it will be executed in a stateful Jupyter notebook "
    "environment. python will respond with the output of the execution or time out after 120.0 seconds. The drive at "
    "'/mnt/data' can be used to save and persist user files. Internet access for this session is UNKNOWN. Depends on "
    "the cluster."
)
_BROWSER = (
    "Tool for browsing.\n"
    "The `cursor` appears in brackets before each browsing display: `[{cursor}]`.\n"
    "Cite information from the tool using the following format:\n"
    "`【{cursor}†L{line_start}(-L{line_end})?】`, for example: `【6†L9-L11】` or `【8†L3】`.\n"
    "Do not quote more than 10 words directly from the tool output.\n"
    "sources=web (default: web)"
)
_MINUS_ONE = {"type": "number", "default": -1}
_BROWSER_TOOLS = (
    FunctionTool(
        "search",
        "Searches for information related to `query` and displays `topn` results.",
        {
            "type": "object",
            "properties": {
                "query": {"type": "string"},
                "topn": {"type": "number", "default": 10},
                "source": {"type": "string"},
            },
            "required": ["query"],
        },
    ),
    FunctionTool(
        "open",
        "Opens the link `id` from the page indicated by `cursor` starting at line number `loc`, showing `num_lines` "
        "lines.\n"
        "Valid link ids are displayed with the formatting: `【{id}†.*】`.\n"
        "If `cursor` is not provided, the most recent page is implied.\n"
        "If `id` is a string, it is treated as a fully qualified URL associated with `source`.\n"
        "If `loc` is not provided, the viewport will be positioned at the beginning of the document or centered on "
        "the most relevant passage, if available.\n"
        "Use this function without `id` to scroll to a new location of an opened page.",
        {
            "type": "object",
            "properties": {
                "id": {"type": ["number", "string"], "default": -1},
                "cursor": _MINUS_ONE,
                "loc": _MINUS_ONE,
                "num_lines": _MINUS_ONE,
                "view_source": {"type": "boolean", "default": False},
                "source": {"type": "string"},
            },
        },
    ),
    FunctionTool(
        "find",
        "Finds exact matches of `pattern` in the current page, or the page given by `cursor`.",
        {
            "type": "object",
            "properties": {"pattern": {"type": "string"}, "cursor": _MINUS_ONE},
            "required": ["pattern"],
        },
    ),
)
_MULTI_TOOL_USE = (
    "This tool serves as a wrapper for utilizing multiple tools. Each tool that can be used must be specified in the "
    "tool sections. Only tools in the functions namespace are permitted.\n"
    "Ensure that the parameters provided to each tool are valid according to that tool's specification."
)
_PARALLEL = FunctionTool(
    "parallel",
    "Use this function to run multiple tools simultaneously, but only if they can operate in parallel. Do this even if "
    "the prompt suggests using the tools sequentially.",
    {
        "type": "object",
        "properties": {
            "tool_uses": {
                "type": "array",
                "description": "The tools to be executed in parallel. NOTE: only functions tools are permitted",
                "items": {
                    "type": "object",
                    "properties": {
                        "recipient_name": {
                            "type": "string",
                            "description": "The name of the tool to use. The format should either be just the name of "
                            "the tool, or in the format namespace.function_name for plugin and function tools.",
                        },
                        "parameters": {
                            "type": ["object"],  # a list of types is shown as it is: `object`, not `{}`
                            "description": "The parameters to pass to the tool. Ensure these are valid according to "
                            "the tool's own specifications.",
                        },
                    },
                    "required": ["recipient_name", "parameters"],
                },
            }
        },
        "required": ["tool_uses"],
    },
)


def is_builtin(name: str) -> bool:
    """Whether a call of this name goes to a built-in tool."""
    return name == "python" or name.startswith("browser.")


def section(name: BuiltinName) -> str:
    """The `## NAME` section of one built-in tool."""
    if name == "python":
        return f"## python\n\n{_PYTHON}"
    return namespace_section("browser", _comment(_BROWSER), [declaration(tool) for tool in _BROWSER_TOOLS])


def multi_tool_use_section(declare: Callable[[FunctionTool], str]) -> str:
    """The section of the tool that makes several calls in one; `declare` writes a tool as TypeScript."""
    return namespace_section("multi_tool_use", _comment(_MULTI_TOOL_USE), [declare(_PARALLEL)])


def _comment(text: str) -> str:
    return "".join(f"// {line}\n" for line in text.split("\n"))


def namespace_section(name: str, comment: str, declarations: list[str]) -> str:
    """`## NAME` and its tools as a TypeScript namespace; an empty one is its heading alone."""
    if not declarations:
        return f"## {name}\n"
    types = "\n\n".join(declarations)
    return f"## {name}\n\n{comment}namespace {name} {{\n\n{types}\n\n}} // namespace {name}"
