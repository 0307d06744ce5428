"""Hermes: `<tool_call>` around `{"name": …, "arguments": {…}}`.

The format of Qwen2.5, QwQ, Qwen3, Hermes 2 to 4, Granite 4, SmolLM3 and most fine-tunes. Prompts follow Qwen's
template, or that of Granite 4: the tools are JSON lines in the system turn, outputs are in a user turn.
Source: the chat templates of Qwen2.5-7B-Instruct and Qwen3-32B; NousResearch Hermes Function Calling.
"""

from typing import Final, Literal

from callwright.dialects import _granite4, _reka
from callwright.dialects.base import Dialect, RenderOptions
from callwright.dialects.prompts.turns import Turns
from callwright.layout.calls import CallLayout, in_json
from callwright.reading.json.marked import CallMarks

_OPEN: Final = "<tool_call>"
_CLOSE: Final = "</tool_call>"
_ENDS: Final = ("<|im_end|>", "<|endoftext|>")
_END_OF_GRANITE: Final = "<|end_of_text|>"
_GRANITES_4: Final = ("granite-4*", "granite-vision-4*", "granite-speech-4*")
# The tags are words to most of the tokenizers: they may occur in any text.
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


_TOOLS: Final = """# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>$each
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call>"""
_TURNS: Final = Turns(
    controls=_CONTROLS,
    head=(
        "«instructed|tools|default_system¦<|im_start|>system\n«instructed¦$text¦$default_system»"
        "«tools¦«instructed|default_system¦\n\n»$tools»<|im_end|>\n»"
    ),
    notes_choice=False,
    system="<|im_start|>system\n$text<|im_end|>\n",
    user="<|im_start|>user\n$text<|im_end|>\n",
    assistant=("<|im_start|>assistant\n«<think>\n$thought:trim\n</think>\n\n»$text«text calls¦\n»$calls<|im_end|>\n"),
    written="«<think>\n$thought\n</think>\n\n»$text«text calls¦\n»$calls",
    outputs="<|im_start|>user$each<|im_end|>\n",
    output="\n<tool_response>\n$text\n</tool_response>",
    answer=("<|im_start|>assistant\n«off¦<think>\n\n</think>\n\n»«prefill¦$prefill¦«open¦<think>\n$thought»»"),
    calls=_CALLS,
    tools=_TOOLS,
    tool="\n$tool",
    chat_tools=_TOOLS,
    chat_output="<tool_response>\n$text\n</tool_response>",
    chat_between="\n",
    flavours={"granite4": _granite4.TURNS, "reka": _reka.TURNS},
)


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
    prompt=_TURNS,
    calls=_MARKS,
)
