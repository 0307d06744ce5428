"""Qwen3-Coder: `<tool_call><function=f><parameter=k>v</parameter></function></tool_call>`, values as text.

The format of Qwen3-Coder, Qwen3.5 and later, Nemotron 3, Step 3.5, MiMo V2 and others. Source: the chat templates of
Qwen3-Coder-30B-A3B and Qwen3.5; a line feed on each side of a value is structure.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, assert_never

import msgspec

from toolwright.conversation import AssistantTurn, Call, Conversation, FunctionTool, Message, ToolTurn
from toolwright.dialects._chat import arguments_object, format_note, plain_text, split_instructions, told_messages
from toolwright.dialects._parameters import ParameterReader, ParameterTags
from toolwright.dialects.base import RenderOptions
from toolwright.prompt import Prompt, PromptBuilder
from toolwright.schema.keywords import properties, required
from toolwright.source import Source, Steps
from toolwright.toolset import Toolset

__all__ = ["Options", "aliases", "messages", "models", "parse", "render", "source", "stop_token_ids", "stops", "write"]

aliases = ("qwen3_xml", "nemotron_v3", "step3p5", "mimo", "granite_thinking", "nanbeige")
models = "Qwen3-Coder, Qwen3.5 and later, Nemotron 3, Step 3.5, MiMo V2, Granite thinking, Nanbeige"
names = (
    "qwen3-coder*",
    "qwen3.5*",
    "qwen3.6*",
    "qwen3.8*",
    "*nemotron-3*",
    "step-3.5*",
    "step-3.7*",
    "mimo-v2*",
    "nanbeige*",
)
template = ("<function= + <parameter=",)
source = "chat templates of Qwen3-Coder-30B-A3B and Qwen3.5"
stops = ("<|im_end|>",)
stop_token_ids = ()

_OPEN: Final = "<tool_call>"
_CLOSE: Final = "</tool_call>"
_TAGS: Final = ParameterTags(
    call="<function=",
    call_end="</function>",
    parameter="<parameter=",
    parameter_end="</parameter>",
    blocks=((_OPEN, _CLOSE),),
    lines=True,
)
_CONTROLS: Final = (
    *("<|im_start|>", "<|im_end|>", "<|endoftext|>", _OPEN, _CLOSE, "<tool_response>", "</tool_response>"),
    *("<tools>", "</tools>", "<think>", "</think>"),
)
_HOW_TO: Final = """

If you choose to call a function ONLY reply in the following format with NO suffix:

<tool_call>
<function=example_function_name>
<parameter=example_parameter_1>
value_1
</parameter>
<parameter=example_parameter_2>
This is the value for the second parameter
that can span
multiple lines
</parameter>
</function>
</tool_call>

<IMPORTANT>
Reminder:
- Function calls MUST follow the specified format: an inner <function=...></function> block must be nested within \
<tool_call></tool_call> XML tags
- Required parameters MUST be specified
- You may provide optional reasoning for your function call in natural language BEFORE the function call, but NOT after
- If there is no function call available, answer the question like normal with your current knowledge and do not tell \
the user about function calls
</IMPORTANT>"""


class Options(RenderOptions, frozen=True, kw_only=True):
    """`thinking`: `model` leaves it to the model, `open` begins the answer in reasoning, `off` with a closed, empty
    one. `tools`: how they are shown, as XML (Qwen3-Coder, Nemotron) or as JSON lines (Qwen3.5, Step).
    """

    thinking: Literal["model", "open", "off"] = "model"
    tools: Literal["xml", "json"] = "xml"


# --- prompts ---


def render(conversation: Conversation, options: Options) -> Prompt:
    """The whole prompt in ChatML, up to `<|im_start|>assistant`."""
    out = PromptBuilder()
    instructions, items = split_instructions(conversation.items)
    instructions += format_note(conversation)
    if instructions or conversation.tools:
        system = "\n\n".join(instructions) or "You are Qwen, a helpful AI assistant that can interact with a computer."
        _begin(out, "system").text(system)
        if conversation.tools:
            _tools(out, conversation, options)
        out.control("<|im_end|>").text("\n")
    turns = msgspec.structs.replace(conversation, items=items).turns()
    asked = max((n for n, turn in enumerate(turns) if isinstance(turn, Message) and turn.role == "user"), default=-1)
    for number, turn in enumerate(turns):
        match turn:
            case Message(role):
                _begin(out, "user" if role == "user" else "system").text(plain_text(turn.parts, number))
            case AssistantTurn(reasoning, message, calls):
                _begin(out, "assistant")
                if reasoning and number > asked:
                    out.control("<think>").text(f"\n{reasoning.strip()}\n").control("</think>").text("\n\n")
                _said(out, plain_text(message.parts, number) if message else "", calls)
            case ToolTurn(outputs):
                _begin(out, "user")
                for _, output in outputs:
                    out.control("<tool_response>").text(f"\n{plain_text(output.parts, number)}\n")
                    out.control("</tool_response>").text("\n")
            case _:
                assert_never(turn)
        out.control("<|im_end|>").text("\n")
    start = "assistant"
    if options.add_generation_prompt:
        _begin(out, "assistant")
        if options.thinking == "off":
            out.control("<think>").text("\n\n").control("</think>").text("\n\n")
        elif options.thinking == "open":
            out.control("<think>").text("\n")
            start = "reasoning"
    return Prompt(out.pieces(), _CONTROLS, start=start)


def write(turn: AssistantTurn) -> str:
    """A turn as the model writes it: one block for each call."""
    thought = f"<think>\n{turn.reasoning}\n</think>\n\n" if turn.reasoning else ""
    said = [turn.text] if turn.text else []
    return thought + "\n".join(said + [f"{_OPEN}\n{_function(call)}\n{_CLOSE}" for call in turn.calls])


def messages(conversation: Conversation, options: Options) -> list[dict[str, Any]]:
    """Chat messages with the tools in the system message, calls and outputs as the format's text."""
    out = PromptBuilder()
    _tools(out, conversation, options)
    return told_messages(
        conversation,
        controls=_CONTROLS,
        tools=Prompt(out.pieces(), _CONTROLS).wire_text,
        write=lambda turn: Prompt(_said(PromptBuilder(), turn.text, turn.calls).pieces(), _CONTROLS).wire_text,
        results=lambda outputs: "\n".join(f"<tool_response>\n{text}\n</tool_response>" for _, text in outputs),
    )


def _tools(out: PromptBuilder, conversation: Conversation, options: Options) -> None:
    out.text("\n\n# Tools\n\nYou have access to the following functions:\n\n").control("<tools>")
    for tool in conversation.tools:
        shown = json.dumps(tool.as_openai(), ensure_ascii=False) if options.tools == "json" else _tool_xml(tool)
        out.text(f"\n{shown}")
    out.text("\n").control("</tools>").text(_HOW_TO)


def _tool_xml(tool: FunctionTool) -> str:
    """A tool in the elements of the template."""
    lines = ["<function>", f"<name>{tool.name}</name>"]
    if tool.description is not None:
        lines.append(f"<description>{tool.description.strip()}</description>")
    lines.append("<parameters>")
    for name, schema in properties(tool.parameters).items():
        lines += ["<parameter>", f"<name>{name}</name>", *_elements(schema), "</parameter>"]
    if needed := required(tool.parameters):
        lines.append(f"<required>{json.dumps(needed, ensure_ascii=False)}</required>")
    return "\n".join([*lines, "</parameters>", "</function>"])


def _elements(schema: object) -> list[str]:
    """The keywords of a parameter's schema, each as an element."""
    lines: list[str] = []
    for key, value in schema.items() if isinstance(schema, Mapping) else ():
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines.append(f"<{key}>{shown.strip()}</{key}>")
    return lines


def _said(out: PromptBuilder, text: str, calls: Sequence[Call]) -> PromptBuilder:
    """What an assistant said and called: only the tags around a call are live."""
    out.text(text)
    for number, call in enumerate(calls):
        out.text("\n" if number or text else "").control(_OPEN).text(f"\n{_function(call)}\n").control(_CLOSE)
    return out


def _function(call: Call) -> str:
    """A call as the model writes it."""
    lines = [f"<function={call.name}>"]
    for key, value in arguments_object(call).items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines.append(f"<parameter={key}>\n{text}\n</parameter>")
    return "\n".join([*lines, "</function>"])


def _begin(out: PromptBuilder, role: str) -> PromptBuilder:
    return out.control("<|im_start|>").text(f"{role}\n")


# --- output ---


def parse(source: Source, start: str, tools: Toolset) -> Steps[None]:
    """Events of an output. `start`: `reasoning` when the prompt left `<think>` open."""
    return ParameterReader(source, tools, _TAGS).read(start)
