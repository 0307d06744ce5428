"""Apertus: `<|tools_prefix|>[{"NAME": {…}}]<|tools_suffix|>`: the name is the key of the arguments.

Source: the chat template of Apertus-8B-Instruct: the tools stand as TypeScript in a developer turn, and outputs follow
the calls as a list in the turn of the assistant, which goes on behind them.
"""

from collections.abc import Sequence
from typing import Final

from callwright.conversation import Conversation, FunctionTool
from callwright.dialects.base import Dialect
from callwright.dialects.call_layout import CallLayout
from callwright.dialects.prompts.template import Frame, Result, ThinkingOptions
from callwright.dialects.readers.marked import CallMarks
from callwright.prompt import PromptBuilder
from callwright.schema.shown import ShownKeywords
from callwright.schema.typescript_hf import declaration

__all__ = ["DIALECT"]


_OPEN: Final = "<|tools_prefix|>"
_CLOSE: Final = "<|tools_suffix|>"
_THOUGHT: Final = ("<|inner_prefix|>", "<|inner_suffix|>")
_CALLS: Final = CallLayout(open=f"{_OPEN}[", begin="{${name:json}: ", end="}", between=", ", close=f"]{_CLOSE}")
_MARKS: Final = CallMarks.of(_CALLS, keyed=True, thoughts=(_THOUGHT,), ends=("<|assistant_end|>",))


def _tools(out: PromptBuilder, conversation: Conversation) -> None:
    out.control("<|developer_start|>").text("Deliberation: disabled\nTool Capabilities:\n")
    out.text("\n".join(map(_declaration, conversation.tools))).control("<|developer_end|>")


def _declaration(tool: FunctionTool) -> str:
    """A tool as TypeScript, without the comma behind the last parameter."""
    return declaration(tool, resolved=True).replace(",\n}) => ", "\n}) => ")


def _results(out: PromptBuilder, results: Sequence[Result]) -> None:
    out.text("[", ", ".join(result.text for result in results), "]")


def _turn(role: str) -> tuple[str, str]:
    return f"<|{role}_start|>", f"<|{role}_end|>"


_FRAME: Final = Frame(
    controls=(
        *("<s>", "</s>", _OPEN, _CLOSE, *_THOUGHT, *_turn("system"), *_turn("developer"), *_turn("user")),
        *_turn("assistant"),
    ),
    begin="<s>",
    system=_turn("system"),
    user=_turn("user"),
    assistant=_turn("assistant"),
    tool=("", ""),
    thought=_THOUGHT,
    place="after system",
    tools=_tools,
    calls=_CALLS,
    results=_results,
    without_tools="<|developer_start|>Deliberation: disabled\nTool Capabilities: disabled<|developer_end|>",
    resumes=True,
    reopens=True,
    calls_end="",
)


DIALECT = Dialect(
    name="apertus",
    model_families="Apertus 8B and 70B",
    model_globs=("apertus",),
    template_markers=("<|tools_prefix|>",),
    source="chat template of Apertus-8B-Instruct",
    tokenizers=("apertus",),
    stops=("<|assistant_end|>",),
    options=ThinkingOptions,
    shown_keywords=ShownKeywords(
        frozenset(("type", "description", "enum", "default", "properties", "required", "items", "oneOf", "anyOf")),
        nested=frozenset(("type", "enum", "properties", "required", "items", "oneOf", "anyOf")),
        items=frozenset(("type",)),
    ),
    prompt=_FRAME,
    calls=_MARKS,
)
