"""Qwen3-Coder: `<tool_call><function=f><parameter=k>v</parameter></function></tool_call>`, values as text.

The format of Qwen3-Coder, Qwen3.5 and later, Nemotron 3, Step 3.5, MiMo V2 and others. A line feed on each side of a
value is structure. Prompts are checked against the chat templates of Qwen3-Coder, Qwen3.5, 3.6 and 3.8,
Nemotron 3 and Step 3.5.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from callwright.conversation import Conversation, FunctionTool
from callwright.dialects.base import Dialect
from callwright.dialects.prompts.options import ThinkingOptions
from callwright.dialects.prompts.tool_section import WriteTools
from callwright.dialects.prompts.turns import Turns
from callwright.layout.calls import CallLayout, TaggedArguments, values_as
from callwright.layout.literal import with_python_booleans
from callwright.prompt import PromptBuilder, own_words
from callwright.reading.tagged.calls import ParameterForm, ParameterTags
from callwright.schema.keywords import properties

_OPEN: Final = "<tool_call>"
_CLOSE: Final = "</tool_call>"
_CONTROLS: Final = (
    *("<|im_start|>", "<|im_end|>", "<|endoftext|>", _OPEN, _CLOSE, "<tool_response>", "</tool_response>"),
    *("<tools>", "</tools>", "<think>", "</think>", "<｜begin▁of▁sentence｜>"),
)
_EXAMPLE: Final = """\n\nIf you choose to call a {word} ONLY reply in the following format with NO suffix:

<tool_call>
<function=example_function_name>
<parameter=example_parameter_1>
value_1
</parameter>
<parameter=example_parameter_2>
{value}
</parameter>
</function>
</tool_call>

<IMPORTANT>
Reminder:
- Function calls MUST follow the specified format: {form}
- Required parameters MUST be specified
{more}</IMPORTANT>"""
_LINES: Final = "This is the value for the second parameter\nthat can span\nmultiple lines"
_NESTED: Final = "an inner <function=...></function> block must be nested within <tool_call></tool_call> XML tags"
_MORE: Final = """\
- You may provide optional reasoning for your function call in natural language BEFORE the function call, but NOT after
- If there is no function call available, answer the question like normal with your current knowledge and do not tell \
the user about function calls
"""


_EFFORTS: Final = {
    "low": "Reasoning effort is set to low. Keep your thinking brief and focused, moving directly to the conclusion "
    "without unnecessary elaboration.",
    "medium": "",
    "xhigh": "Reasoning effort is set to xhigh. Please think carefully through the task, validate key assumptions, "
    "consider plausible alternatives, and prioritize correctness, consistency, and clarity in the final answer.",
}
_EFFORT_OF: Final[Mapping[str, Literal["low", "medium"]]] = {"minimal": "low", "low": "low", "medium": "medium"}


class Options(ThinkingOptions, frozen=True, kw_only=True):
    """`thinking`: `model` leaves it to the model, `open` begins the answer in reasoning, `off` with a closed, empty
    one. `flavour`: the model whose template is followed. `reasoning_effort`: the instruction to Qwen 3.8 in
    the system turn while it thinks; nothing for `medium`.
    """

    flavour: Literal["qwen3_coder", "qwen3.5", "qwen3.6", "qwen3.8", "nemotron3", "step3.5"] = "qwen3_coder"
    reasoning_effort: Literal["low", "medium", "xhigh"] = "xhigh"

    def with_effort(self, level: str) -> "Options | None":
        if level == "none":
            return msgspec.structs.replace(self, thinking="off")
        if self.flavour != "qwen3.8":
            return None
        return msgspec.structs.replace(self, reasoning_effort=_EFFORT_OF.get(level, "xhigh"))

    def slots(self) -> Mapping[str, Any]:
        thinks = self.flavour == "qwen3.8" and self.thinking != "off"
        return {"lead": _EFFORTS[self.reasoning_effort] if thinks else ""}


# --- prompts ---


def _tools(intro: str, show: Callable[[FunctionTool], str], how_to: str) -> WriteTools:
    def write_tools(out: PromptBuilder, conversation: Conversation) -> None:
        out.text(f"# Tools\n\nYou have access to the following {intro}:\n\n").control("<tools>")
        for tool in conversation.tools:
            out.text(f"\n{show(tool)}")
        own_words(out.text("\n").control("</tools>"), how_to, _CONTROLS)

    return write_tools


def _json(tool: FunctionTool) -> str:
    return tool.openai_json


def _xml(first: Sequence[str], last: Sequence[str]) -> Callable[[FunctionTool], str]:
    """A tool in elements: of a parameter's schema the `first` keywords lead; of the object's the `last` come last."""

    def show(tool: FunctionTool) -> str:
        lines = ["<function>", f"<name>{tool.name}</name>"]
        if tool.about is not None:
            lines.append(f"<description>{tool.about.strip()}</description>")
        lines.append("<parameters>")
        schema = tool.parameters or {}
        for name, each in properties(schema).items():
            own = each if isinstance(each, Mapping) else {}
            led = {key: own[key] for key in first if key in own}
            lines += ["<parameter>", f"<name>{name}</name>", *_elements({**led, **own}), "</parameter>"]
        more = {key: value for key, value in schema.items() if key not in ("type", "properties", *last)}
        lines += _elements({**more, **{key: schema[key] for key in last if key in schema}})
        return "\n".join([*lines, "</parameters>", "</function>"])

    return show


def _elements(schema: Mapping[str, Any]) -> list[str]:
    """Keywords of a schema, each as an element: a type as Python shows it, as is all that is no list or object; these
    are JSON.
    """
    lines: list[str] = []
    for key, value in schema.items():
        shown = (
            json.dumps(value, ensure_ascii=False) if key != "type" and isinstance(value, list | dict) else str(value)
        )
        lines.append(f"<{key}>{shown.strip() if key == 'description' else shown}</{key}>")
    return lines


def _calls(between: str, end: str = "") -> CallLayout:
    return CallLayout(
        begin=f"{_OPEN}\n<function=${{name}}>\n",
        arguments=TaggedArguments(begin="<parameter=${key}>\n", end="\n</parameter>\n"),
        end=f"</function>\n{_CLOSE}",
        between=between,
        close=end,
    )


_CALLS: Final = _calls("\n")
_SHOWN: Final = values_as(_CALLS, with_python_booleans)
_TAGS: Final = ParameterTags.of(_CALLS, control=False)


_CODER_TOOLS: Final = _tools(
    "tools",
    _xml(("type", "description"), ()),
    _EXAMPLE.format(
        word="tool",
        value="value_2",
        form="the tool calling block MUST begin with an opening <tool_call> tag and end with a closing </tool_call> "
        "tag.",
        more=_MORE,
    ),
)
_FUNCTIONS: Final = _EXAMPLE.format(word="function", value=_LINES, form=_NESTED, more=_MORE)
_QWEN35_TOOLS: Final = _tools("functions", _json, _FUNCTIONS)
_NEMOTRON_TOOLS: Final = _tools("functions", _xml(("type", "description", "enum"), ("required",)), _FUNCTIONS)
_STEP_TOOLS: Final = _tools(
    "functions in JSONSchema format",
    _json,
    _EXAMPLE.format(
        word="function",
        value=_LINES,
        form="an inner <function=...>\n...\n</function> block must be nested within <tool_call>\n...\n"
        "</tool_call> XML tags",
        more="",
    ),
)


_QWEN35: Final[Mapping[str, Any]] = {
    "head": "«text|tools¦<|im_start|>system\n$tools«text tools¦\n\n»$text<|im_end|>\n»",
    "default_with_tools": "",
    "assistant": (
        "<|im_start|>assistant\n«reasons¦<think>\n$thought:trim\n</think>\n\n»$text«text calls¦\n\n»$calls<|im_end|>\n"
    ),
    "output": "<tool_response>\n$text\n</tool_response>",
    "between": "\n",
    "trims": ("system", "user"),
    "tools": _QWEN35_TOOLS,
    "chat_tools": _QWEN35_TOOLS,
}
_TURNS: Final = Turns(
    controls=_CONTROLS,
    head="«text|tools¦<|im_start|>system\n$text«text tools¦\n\n»$tools<|im_end|>\n»",
    default_with_tools="You are Qwen, a helpful AI assistant that can interact with a computer to solve tasks.",
    system="<|im_start|>system\n$text<|im_end|>\n",
    user="<|im_start|>user\n$text<|im_end|>\n",
    assistant=("<|im_start|>assistant\n«<think>\n$thought:trim\n</think>\n\n»$text«text calls¦\n\n»$calls<|im_end|>\n"),
    written="«<think>\n$thought\n</think>\n\n»$text«text calls¦\n»$calls",
    outputs="<|im_start|>user\n$each<|im_end|>\n",
    output="<tool_response>\n$text\n</tool_response>\n",
    answer="<|im_start|>assistant\n«off¦<think>\n\n</think>\n\n»«open¦<think>\n$thought»",
    calls=_CALLS,
    past_calls=_SHOWN,
    tools=_CODER_TOOLS,
    chat_tools=_CODER_TOOLS,
    chat_output="<tool_response>\n$text\n</tool_response>",
    chat_between="\n",
    flavours={
        "qwen3.5": _QWEN35,
        "qwen3.6": {**_QWEN35, "past_calls": _CALLS},
        "qwen3.8": {
            **_QWEN35,
            "head": (
                "«text|tools|lead¦<|im_start|>system\n$lead«lead text|tools¦\n\n»"
                "$tools«text tools¦\n\n»$text<|im_end|>\n»"
            ),
            "assistant": (
                "<|im_start|>assistant\n<think>\n$thought:trim\n</think>\n\n$text«text calls¦\n\n»$calls<|im_end|>\n"
            ),
            "thoughts": "all",
            "past_calls": _CALLS,
        },
        "nemotron3": {
            "head": "<|im_start|>system\n$text«text tools¦\n\n»$tools<|im_end|>\n",
            "default_with_tools": "",
            "assistant": (
                "<|im_start|>assistant\n«thought¦<think>\n$thought:trim\n</think>\n¦<think></think>"
                "«calls !text¦\n»»$text«text calls¦\n»$calls<|im_end|>\n"
            ),
            "answer": "<|im_start|>assistant\n«off¦<think></think>»«open¦<think>\n$thought»",
            "past_calls": values_as(_calls("\n", "\n"), with_python_booleans),
            "tools": _NEMOTRON_TOOLS,
            "chat_tools": _NEMOTRON_TOOLS,
        },
        "step3.5": {
            "head": (
                "<｜begin▁of▁sentence｜>«text|tools¦<|im_start|>system\n$text«text tools¦\n\n»$tools<|im_end|>\n»"
            ),
            "default_with_tools": "",
            "assistant": ("<|im_start|>assistant\n«reasons¦<think>\n$thought:trim\n</think>\n»$text$calls<|im_end|>\n"),
            "outputs": "<|im_start|>tool_response\n$each<|im_end|>\n",
            "output": "<tool_response>$text</tool_response>",
            "answer": "<|im_start|>assistant\n«off¦<think>\n\n</think>\n»«open¦<think>\n$thought»",
            "past_calls": values_as(_calls(""), with_python_booleans),
            "tools": _STEP_TOOLS,
            "chat_tools": _STEP_TOOLS,
        },
    },
)


# Families by whose prompts theirs are made.
_FAMILIES: Final = {
    "qwen3.5": (
        *(
            "qwen-3.5",
            "qwen-agentworld",
            "qwopus",
            "ornith",
            "intern-s2",
            "kat-coder-v2.5",
            "minicpm-v-4.6",
        ),
        "nex-n2",
    ),
    "qwen3.6": ("qwen-3.6",),
    "qwen3.8": ("qwen-3.8",),
    "nemotron3": (
        *("nemotron-3", "nemotron-3.*", "nemotron-cascade-2", "nemotron-labs-diffusion", "cosmos-3", "mimo-v2*"),
        "intellect-3*",
    ),
    "step3.5": ("step-3.5", "step-3.7", "nanbeige-4.2*"),
}

DIALECT = Dialect(
    name="qwen3_coder",
    aliases=("qwen3_xml", "nemotron_v3", "step3p5", "mimo", "granite_thinking", "nanbeige"),
    model_families="Qwen3-Coder, Qwen3.5 and later, Nemotron 3, Step 3.5, MiMo V2, Granite thinking, Nanbeige",
    model_globs=(
        *("qwen-3-coder", "k-exaone-2.0", "kat-dev", "kat-coder", "trinity-large-thinking"),
        "iquest-coder-v1-40b-loop-thinking",
        *(name for names in _FAMILIES.values() for name in names),
    ),
    model_options={
        **{name: {"flavour": flavour} for flavour, names in _FAMILIES.items() for name in names},
        "nemotron_v3": {"flavour": "nemotron3"},
        "step3p5": {"flavour": "step3.5"},
    },
    template_markers=("<tool_call> + <function= + <parameter=",),
    source="chat templates of Qwen3-Coder, Qwen3.5, 3.6 and 3.8, Nemotron 3, Step 3.5 and K-EXAONE-2.0",
    tokenizers=("qwen3", "qwen3.5", "nemotron", "step3.5", "mimo", "granite4", "nanbeige"),
    stops=("<|im_end|>",),
    options=Options,
    prompt=_TURNS,
    calls=ParameterForm(_CALLS, _TAGS),
)
