"""Qwen3-Coder: `<tool_call><function=f><parameter=k>v</parameter></function></tool_call>`, values as text.

The format of Qwen3-Coder, Qwen3.5 and later, Nemotron 3, Step 3.5, MiMo V2 and others. A line feed on each side of a
value is structure. Prompts are checked against the chat templates of Qwen3-Coder, Qwen3.5, 3.6 and 3.8,
Nemotron 3 and Step 3.5.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from callwright.conversation import AssistantTurn, Call, Conversation, FunctionTool
from callwright.dialects.base import Dialect, PromptBy
from callwright.dialects.call_layout import CallLayout, TaggedArguments, values_as
from callwright.dialects.prompts.literal_arguments import with_python_booleans
from callwright.dialects.prompts.template import Frame, Result, ThinkingOptions, WriteResults, WriteTools
from callwright.dialects.prompts.told import ToldTurns, outputs_in
from callwright.dialects.readers.parameter_form import ParameterForm
from callwright.dialects.readers.tagged_values import ParameterTags
from callwright.prompt import Prompt, PromptBuilder, own_words
from callwright.schema.keywords import properties

__all__ = ["DIALECT"]


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
    one. `flavour`: the model whose template is followed. `reasoning_effort`: what Qwen 3.8 is told in the
    system turn while it thinks; nothing for `medium`.
    """

    flavour: Literal["qwen3_coder", "qwen3.5", "qwen3.6", "qwen3.8", "nemotron3", "step3.5"] = "qwen3_coder"
    reasoning_effort: Literal["low", "medium", "xhigh"] = "xhigh"

    def with_effort(self, level: str) -> "Options | None":
        """See `RenderOptions`."""
        if level == "none":
            return msgspec.structs.replace(self, thinking="off")
        if self.flavour != "qwen3.8":
            return None
        return msgspec.structs.replace(self, reasoning_effort=_EFFORT_OF.get(level, "xhigh"))


# --- prompts ---


def render(conversation: Conversation, options: Options) -> Prompt:
    """The whole prompt in ChatML, up to `<|im_start|>assistant`."""
    return _frame(options).render(conversation, options)


def _frame(options: Options) -> Frame:
    if options.flavour == "qwen3.8" and options.thinking != "off":
        return _THINKING_38[options.reasoning_effort]
    return _FRAMES[options.flavour]


def write(turn: AssistantTurn) -> str:
    """A turn as the model writes it: one block for each call."""
    thought = f"<think>\n{turn.reasoning}\n</think>\n\n" if turn.reasoning else ""
    return thought + "\n".join(filter(None, (turn.text, _CALLS.text(turn.calls))))


_TOLD: Final = ToldTurns(
    _CONTROLS,
    lambda turn: Prompt(_said(PromptBuilder(), turn.text, turn.calls).pieces(), _CONTROLS).wire_text,
    outputs_in("<tool_response>\n", "\n</tool_response>"),
)


def messages(conversation: Conversation, options: Options) -> list[dict[str, Any]]:
    """Chat messages with the tools in the system message, calls and outputs as the format's text."""
    tools = _frame(options).tools
    assert tools is not None
    return _TOLD.messages(conversation, tools)


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
_TAGS: Final = ParameterTags.of(_CALLS, control=False)


def _results(before: str, after: str, between: str, end: str) -> WriteResults:
    def write_results(out: PromptBuilder, results: Sequence[Result]) -> None:
        for number, result in enumerate(results):
            out.text(between if number else "").control("<tool_response>").text(f"{before}{result.text}{after}")
            out.control("</tool_response>")
        out.text(end)

    return write_results


def _said(out: PromptBuilder, text: str, calls: Sequence[Call]) -> PromptBuilder:
    """What an assistant said and called: only the tags around a call are live."""
    out.text(text)
    return _CALLS.put(out.text("\n" if text else ""), calls, controls=_CONTROLS) if calls else out


def _turn(role: str) -> tuple[str, str]:
    return f"<|im_start|>{role}\n", "<|im_end|>\n"


_CODER: Final = Frame(
    controls=_CONTROLS,
    system=_turn("system"),
    user=_turn("user"),
    assistant=_turn("assistant"),
    tool=_turn("user"),
    with_tools="You are Qwen, a helpful AI assistant that can interact with a computer to solve tasks.",
    tools=_tools(
        "tools",
        _xml(("type", "description"), ()),
        _EXAMPLE.format(
            word="tool",
            value="value_2",
            form="the tool calling block MUST begin with an opening <tool_call> tag and end with a closing "
            "</tool_call> tag.",
            more=_MORE,
        ),
    ),
    calls=values_as(_CALLS, with_python_booleans),
    gap="\n\n",
    results=_results("\n", "\n", "\n", "\n"),
)
_QWEN35: Final = msgspec.structs.replace(
    _CODER,
    with_tools="",
    tools=_tools("functions", _json, _EXAMPLE.format(word="function", value=_LINES, form=_NESTED, more=_MORE)),
    place="system first",
    results=_results("\n", "\n", "\n", ""),
    no_thought="<think>\n\n</think>\n\n",
    past_thought="",
    trims=True,
)
_QWEN36: Final = msgspec.structs.replace(_QWEN35, calls=_CALLS)
_QWEN38: Final = msgspec.structs.replace(_QWEN36, thoughts="all", past_thought=None)
_THINKING_38: Final = {level: msgspec.structs.replace(_QWEN38, system_lead=told) for level, told in _EFFORTS.items()}
_FRAMES: Final = {
    "qwen3_coder": _CODER,
    "qwen3.5": _QWEN35,
    "qwen3.6": _QWEN36,
    "qwen3.8": _QWEN38,
    "nemotron3": msgspec.structs.replace(
        _QWEN35,
        trims=False,
        tools=_tools(
            "functions",
            _xml(("type", "description", "enum"), ("required",)),
            _EXAMPLE.format(word="function", value=_LINES, form=_NESTED, more=_MORE),
        ),
        place="system",
        empty_system=True,
        calls=values_as(_calls("\n", "\n"), with_python_booleans),
        gap="\n",
        calls_begin="\n",
        results=_CODER.results,
        thought=("<think>\n", "\n</think>\n"),
        no_thought="<think></think>",
        past_thought=None,
    ),
    "step3.5": msgspec.structs.replace(
        _QWEN35,
        begin="<｜begin▁of▁sentence｜>",
        trims=False,
        tools=_tools(
            "functions in JSONSchema format",
            _json,
            _EXAMPLE.format(
                word="function",
                value=_LINES,
                form="an inner <function=...>\n...\n</function> block must be nested within <tool_call>\n...\n"
                "</tool_call> XML tags",
                more="",
            ),
        ),
        place="system",
        calls=values_as(_calls(""), with_python_booleans),
        gap="",
        tool=_turn("tool_response"),
        results=_results("", "", "", ""),
        thought=("<think>\n", "\n</think>\n"),
        no_thought="<think>\n\n</think>\n",
    ),
}


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
    prompt=PromptBy(render=render, messages=messages, write=write, marks=_CODER.marks),
    calls=ParameterForm(_CALLS, _TAGS),
)
