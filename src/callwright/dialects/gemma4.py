"""Gemma 4: `<|tool_call>call:f{k:<|"|>v<|"|>,n:3}<tool_call|>`, with strings between `<|"|>`.

Source: the chat template of gemma-4-31B-it. Tools are declared in the notation of the calls; a turn continues after the
results of its calls. Reasoning is in `<|channel>thought … <channel|>` and is switched on by `<|think|>` in the
system turn.
"""

from typing import Final, Literal

from callwright.conversation import Conversation
from callwright.dialects._gemma import SHOWN, declare, if_new
from callwright.dialects.base import Dialect, RenderOptions
from callwright.dialects.prompts.turns import Turns
from callwright.prompt import PromptBuilder
from callwright.reading.literal.notation import Notation

_STOPS: Final = ("<turn|>", "<|tool_response>")

_RESULT: Final = ("<|tool_response>", "<tool_response|>")
_THOUGHT: Final = ("<|channel>", "<channel|>")
_FORM: Final = Notation(
    "<|tool_call>", "<tool_call|>", '<|"|>', _RESULT, ends=_STOPS, thoughts=(_THOUGHT,), channel="thought\n"
)
_TOOL: Final = ("<|tool>", "<tool|>")
_CONTROLS: Final = (
    *("<bos>", "<|turn>", "<turn|>", "<|think|>", _FORM.call, _FORM.call_end, _FORM.quote),
    *(*_THOUGHT, *_RESULT, *_TOOL),
)


class Options(RenderOptions, frozen=True, kw_only=True):
    """`thinking`: `on` lets the model think, `off` begins the answer after a closed, empty thought."""

    thinking: Literal["on", "off"] = "on"


# --- prompts ---


def _tools(out: PromptBuilder, conversation: Conversation) -> None:
    for tool in conversation.tools:
        out.control(_TOOL[0])
        declare(out, _FORM.quote, tool)
        out.control(_TOOL[1])


_RESPONSE: Final = '<|tool_response>response:$name{value:<|"|>$text<|"|>}<tool_response|>'
_TURNS: Final = Turns(
    controls=_CONTROLS,
    head="<bos>«instructed|tools|on¦<|turn>system\n«on¦<|think|>\n»$text$tools<turn|>\n»",
    notes_choice=False,
    system="<|turn>system\n$text<turn|>\n",
    user="<|turn>user\n$text<turn|>\n",
    assistant=if_new("<|turn>model\n")
    + "«thought calls¦<|channel>thought\n$thought\n<channel|>»$text$calls«!calls¦<turn|>\n»",
    written="«<|channel>thought\n$thought<channel|>»$text$calls",
    trims=("system", "user", "assistant"),
    outputs="$each",
    output=_RESPONSE,
    answer=if_new("<|turn>model\n«off¦<|channel>thought\n<channel|>»"),
    calls=_FORM.layout,
    tools=_tools,
    chat_tools=_tools,
    chat_output=_RESPONSE,
    chat_between="\n",
)


DIALECT = Dialect(
    name="gemma4",
    aliases=("gemma_4",),
    model_families="Gemma 4",
    model_globs=("gemma-4", "diffusiongemma"),
    template_markers=("<|tool_call>",),
    source="chat template of gemma-4-31B-it",
    tokenizers=("gemma4",),
    stops=_STOPS,
    options=Options,
    shown_keywords=SHOWN,
    prompt=_TURNS,
    calls=_FORM,
)
