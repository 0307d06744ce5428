"""Apertus: `<|tools_prefix|>[{"NAME": {…}}]<|tools_suffix|>`: the name is the key of the arguments.

Source: the chat template of Apertus-8B-Instruct: the tools are TypeScript in a developer turn, and outputs follow
the calls as a list in the turn of the assistant, which continues after them.
"""

from typing import Final

from callwright.conversation import Conversation, FunctionTool
from callwright.dialects.base import Dialect
from callwright.dialects.prompts.options import ThinkingOptions
from callwright.dialects.prompts.turns import Turns
from callwright.layout.calls import CallLayout
from callwright.prompt import PromptBuilder
from callwright.reading.json.marked import CallMarks
from callwright.schema.shown import ShownKeywords
from callwright.schema.typescript_hf import declaration

_OPEN: Final = "<|tools_prefix|>"
_CLOSE: Final = "<|tools_suffix|>"
_THOUGHT: Final = ("<|inner_prefix|>", "<|inner_suffix|>")
_CALLS: Final = CallLayout(open=f"{_OPEN}[", begin="{${name:json}: ", end="}", between=", ", close=f"]{_CLOSE}")
_MARKS: Final = CallMarks.of(_CALLS, keyed=True, thoughts=(_THOUGHT,), ends=("<|assistant_end|>",))


def _tools(out: PromptBuilder, conversation: Conversation) -> None:
    out.control("<|developer_start|>").text("Deliberation: disabled\nTool Capabilities:\n")
    out.text("\n".join(map(_declaration, conversation.tools))).control("<|developer_end|>")


def _declaration(tool: FunctionTool) -> str:
    """A tool as TypeScript, without the comma after the last parameter."""
    return declaration(tool, resolved=True).replace(",\n}) => ", "\n}) => ")


def _turn(role: str) -> tuple[str, str]:
    return f"<|{role}_start|>", f"<|{role}_end|>"


_TURNS: Final = Turns(
    controls=(
        *("<s>", "</s>", _OPEN, _CLOSE, *_THOUGHT, *_turn("system"), *_turn("developer"), *_turn("user")),
        *_turn("assistant"),
    ),
    head=(
        "<s>«<|system_start|>$text<|system_end|>»"
        "«!tools¦<|developer_start|>Deliberation: disabled\nTool Capabilities: disabled<|developer_end|>»"
        "$tools"
    ),
    system="«after_outputs¦<|assistant_end|>»<|system_start|>$text<|system_end|>",
    user="«after_outputs¦<|assistant_end|>»<|user_start|>$text<|user_end|>",
    assistant="«!after_outputs¦<|assistant_start|>»$written«!calls¦<|assistant_end|>»",
    written="«<|inner_prefix|>$thought:trim<|inner_suffix|>»$text$calls",
    outputs="[$each]",
    between=", ",
    answer="<|assistant_start|>«off¦<|inner_prefix|><|inner_suffix|>»«open¦<|inner_prefix|>$thought»",
    calls=_CALLS,
    tools=_tools,
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
    prompt=_TURNS,
    calls=_MARKS,
)
