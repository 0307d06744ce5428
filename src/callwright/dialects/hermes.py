"""Hermes: `<tool_call>` around `{"name": …, "arguments": {…}}`.

The format of Qwen2.5, QwQ, Qwen3, Hermes 2 to 4, Granite 4, SmolLM3 and most fine-tunes. Prompts follow Qwen's
template, or that of Granite 4: the tools stand as JSON lines in the system turn, outputs come back in a user turn.
Source: the chat templates of Qwen2.5-7B-Instruct and Qwen3-32B; NousResearch Hermes Function Calling.
"""

from typing import Any, Final, Literal, assert_never

from callwright.conversation import AssistantTurn, Conversation, ConversationTurn, Message, NamedTool, ToolTurn
from callwright.dialects import _granite4, _reka
from callwright.dialects.base import Dialect, PromptBy, RenderOptions, TurnMarks
from callwright.dialects.call_layout import CallLayout, filled, in_json
from callwright.dialects.prompts.chat_messages import (
    format_note,
    last_asked,
    plain_text,
    split_instructions,
)
from callwright.dialects.prompts.kept_parts import put_tools, put_turns
from callwright.dialects.prompts.template import ThinkingOptions
from callwright.dialects.prompts.told import ToldTurns, outputs_in
from callwright.dialects.readers.marked import CallMarks
from callwright.prompt import Prompt, PromptBuilder

__all__ = ["DIALECT"]


_OPEN: Final = "<tool_call>"
_CLOSE: Final = "</tool_call>"
_ENDS: Final = ("<|im_end|>", "<|endoftext|>")
_END_OF_GRANITE: Final = "<|end_of_text|>"
_GRANITES_4: Final = ("granite-4*", "granite-vision-4*", "granite-speech-4*")
# The tags are words to most of the tokenizers: they may stand in any text.
_CALLS: Final = CallLayout(begin=f"{_OPEN}\n" + in_json(), end=f"}}\n{_CLOSE}", between="\n")
_MARKS: Final = CallMarks.of(_CALLS, special=False, ends=(_END_OF_GRANITE,))
_CONTROLS: Final = (
    *("<|im_start|>", *_ENDS, _OPEN, _CLOSE, "<tool_response>", "</tool_response>", "<tools>", "</tools>"),
    *("<think>", "</think>"),
)


class Options(RenderOptions, frozen=True, kw_only=True):
    """`thinking`: `model` leaves it to the model, `open` begins the answer in reasoning, `off` with a closed, empty
    one. `default_system`: the system text of a conversation that has none. `flavour`: whose turns; Granite 4 and Reka
    have their own, and Granite 4 does not think.
    """

    flavour: Literal["qwen", "granite4", "reka"] = "qwen"
    thinking: Literal["model", "open", "off"] = "model"
    default_system: str = ""


# --- prompts ---


def render(conversation: Conversation, options: Options) -> Prompt:
    """The whole prompt, up to the assistant's header."""
    if options.flavour == "granite4":
        return _granite4.FRAME.render(conversation, options)
    if options.flavour == "reka":
        frame = _reka.THINKING if options.thinking == "open" else _reka.FRAME
        return frame.render(
            conversation,
            ThinkingOptions(add_generation_prompt=options.add_generation_prompt, thinking=options.thinking),
        )
    out = PromptBuilder()
    instructions, items = split_instructions(conversation.items)
    instructions += format_note(conversation)
    if not instructions and options.default_system:
        instructions = [options.default_system]
    if instructions or conversation.tools:
        _begin(out, "system").text("\n\n".join(instructions))
        if conversation.tools:
            out.text("\n\n" if instructions else "")
            put_tools(out, conversation, _tools)
        out.control("<|im_end|>").text("\n")
    put_turns(out, items, _turn, asked=last_asked(conversation, items))
    start, prefill = "assistant", ""
    if options.add_generation_prompt:
        _begin(out, "assistant")
        if options.thinking == "off":
            out.control("<think>").text("\n\n").control("</think>").text("\n\n")
        prefill = _prefill(conversation)
        if prefill:
            out.control(_OPEN).text(prefill.removeprefix(_OPEN))
        elif options.thinking == "open":
            out.control("<think>").text("\n")
            start = "reasoning"
    return Prompt(out.pieces(), _CONTROLS, start=start, prefill=prefill)


def _turn(out: PromptBuilder, turn: ConversationTurn, number: int, *, reasons: bool) -> None:
    """A turn of the history, with its reasoning if it `reasons`."""
    match turn:
        case Message(role):
            _begin(out, "user" if role == "user" else "system").text(plain_text(turn.parts, number))
        case AssistantTurn(reasoning, message, calls):
            _begin(out, "assistant")
            if reasoning and reasons:
                out.control("<think>").text(f"\n{reasoning.strip()}\n").control("</think>").text("\n\n")
            out.text(plain_text(message.parts, number) if message else "")
            _CALLS.put(out.text("\n" if calls and turn.text else ""), calls, controls=_CONTROLS)
        case ToolTurn(outputs):
            out.control("<|im_start|>").text("user")
            for _, output in outputs:
                out.text("\n").control("<tool_response>").text(f"\n{plain_text(output.parts, number)}\n")
                out.control("</tool_response>")
        case _:
            assert_never(turn)
    out.control("<|im_end|>").text("\n")


def write(turn: AssistantTurn) -> str:
    """A turn as the model writes it: one block for each call."""
    thought = f"<think>\n{turn.reasoning}\n</think>\n\n" if turn.reasoning else ""
    return thought + "\n".join(filter(None, (turn.text, _CALLS.text(turn.calls))))


_TOLD: Final = ToldTurns(_CONTROLS, write, outputs_in("<tool_response>\n", "\n</tool_response>"))


def messages(conversation: Conversation, options: Options) -> list[dict[str, Any]]:
    """Chat messages with the tools in the system message, calls and outputs as the format's text."""
    return _TOLD.messages(conversation, _tools)


def _tools(out: PromptBuilder, conversation: Conversation) -> None:
    out.text(
        "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
        "You are provided with function signatures within "
    )
    out.control("<tools>", "</tools>").text(" XML tags:\n").control("<tools>")
    for tool in conversation.tools:
        out.text("\n" + tool.openai_json)
    out.text("\n").control("</tools>")
    out.text("\n\nFor each function call, return a json object with function name and arguments within ")
    out.control(_OPEN, _CLOSE).text(" XML tags:\n").control(_OPEN)
    out.text('\n{"name": <function-name>, "arguments": <args-json-object>}\n').control(_CLOSE)


def _prefill(conversation: Conversation) -> str:
    match conversation.tool_choice:
        case NamedTool(name):
            return filled(_CALLS.begin, {"name": name})
        case "required":
            return _CALLS.begin.partition("${")[0] + '"'
    return ""


def _begin(out: PromptBuilder, role: str) -> PromptBuilder:
    return out.control("<|im_start|>").text(f"{role}\n")


# --- output ---


DIALECT = Dialect(
    name="hermes",
    aliases=("qwen", "qwen25", "qwen3", "qwen3_json", "granite4", "trinity", "reka", "ernie45"),
    model_families="Qwen2.5, QwQ, Qwen3, Hermes 2-4, Granite 4, SmolLM3, most fine-tunes",
    model_globs=(
        "qwen-2.5",
        "qwen-2.5vl",
        "qwen-3",
        "qwq",
        "hermes-2*",
        "hermes-3",
        "hermes-4*",
        "llama-3-groq",
        "deephermes-3",
        *_GRANITES_4,
        "smollm-3",
        "trinity",
        "reka",
        "ernie-4.5",
        "exaone-4*",
        "k-exaone",
        "mimo-7b",
        "mimo-vl",
        "ling-2*",
        "ling-flash-2.0",
        "ling-mini-2.0",
        "ling-1t",
        "ring-1t",
        "ring-2.5",
        "ring-flash",
        "ring-mini",
        "tongyi-deepresearch",
        "mirothinker",
        "bielik-11b-v3*",
        "falcon-h1",
        "falcon-h1r",
        "arch-function",
        "arch-agent",
        "a.x-4*",
        "a.x-k1",
        "mellum-2",
        "motif-2*",
        "motif-3*",
        "kanana-2",
        "midm-2.0",
        "youtu-llm",
        "vaetki",
        "baichuan-m2",
        "nanbeige-4.1",
        "nemotron-cascade",
        "jamba-2",
        "jamba-reasoning",
        "intern-s1-pro",
        "iquest-coder",
        "cogito",
        "minicpm-v-4.5",
        "minicpm-o-4.5",
        "llada-2.0",
        "grovemoe",
        "rnj-1",
        "t-lite-it-2*",
        "t-pro-it-2*",
        "avibe",
        "step3-vl",
        "fanar-2",
        "luciole",
        "virtuoso-small",
        "virtuoso-medium",
        "virtuoso-large",
        "supernova-medius",
        "vibethinker",
        "skywork-r1v3",
        "mindlink",
        "tinyswallow",
        "confucius-o1",
    ),
    model_options={
        **{name: {"flavour": "granite4"} for name in ("granite4", *_GRANITES_4)},
        "reka": {"flavour": "reka"},
    },
    template_markers=(
        '<tool_call> + "arguments"',
        "<tool_call> + tool_call.arguments",
        "<tool_call> + <tools>",
        "<tool_call></tool_call> XML",
        "## Metadata + Reasoning Mode: ",  # SmolLM3, of which one edition shows no tools
    ),
    source="chat templates of Qwen2.5, Qwen2.5-VL, Qwen3, Ling-flash-2.0, Ling-mini-2.0, Ling-1T and MiMo-7B; "
    "NousResearch Hermes Function Calling: Hermes-3, DeepHermes-3; vLLM's parser ernie45 for ERNIE-4.5; cards of "
    "Llama-3-Groq-8B-Tool-Use, Arch-Function, Arch-Agent, T-pro-it-2.0 and Cogito v1; Tongyi-DeepResearch's own client",
    tokenizers=(
        "qwen2.5",
        "qwen3",
        "hermes2",
        "hermes3",
        "granite4",
        "smollm3",
        "trinity",
        "reka",
        "ernie4.5",
        "exaone4",
        "mimo",
    ),
    stops=("<|im_end|>", _END_OF_GRANITE),
    options=Options,
    prompt=PromptBy(
        render=render,
        messages=messages,
        write=write,
        marks=TurnMarks(thought=("<think>\n", "\n</think>\n\n"), controls=_CONTROLS),
    ),
    calls=_MARKS,
)
