"""FunctionGemma: `<start_function_call>call:f{k:<escape>v<escape>,n:3}<end_function_call>`.

A 270M model for calls. Source: the model's documentation. The tools are declared in the same notation in the
developer's turn, an answer that calls ends with `<start_function_response>`, and the results follow it in the
developer's name. The model does not think; fine-tunes do, between `<think>` and `</think>`.
"""

from typing import Final

from callwright.conversation import Conversation
from callwright.dialects._gemma import SHOWN, declare, if_new
from callwright.dialects.base import Dialect, RenderOptions
from callwright.dialects.prompts.turns import Turns
from callwright.prompt import PromptBuilder
from callwright.reading.literal.notation import Notation

_STOPS: Final = ("<end_of_turn>", "<start_function_response>")

_RESULT: Final = ("<start_function_response>", "<end_function_response>")
_FORM: Final = Notation("<start_function_call>", "<end_function_call>", "<escape>", _RESULT, ends=_STOPS)
_DECLARE: Final = ("<start_function_declaration>", "<end_function_declaration>")
_CONTROLS: Final = (
    *("<bos>", "<start_of_turn>", "<end_of_turn>", _FORM.call, _FORM.call_end, _FORM.quote),
    *(*_DECLARE, *_RESULT),
)
_CAN_CALL: Final = "You are a model that can do function calling with the following functions"


class Options(RenderOptions, frozen=True, kw_only=True):
    """Nothing of its own."""


def _told_tools(out: PromptBuilder, conversation: Conversation) -> None:
    _tools(out.text(_CAN_CALL + "\n"), conversation)


def _tools(out: PromptBuilder, conversation: Conversation) -> None:
    for tool in conversation.tools:
        out.control(_DECLARE[0])
        declare(out, _FORM.quote, tool)
        out.control(_DECLARE[1])


_RESPONSE: Final = "<start_function_response>response:$name{value:<escape>$text<escape>}<end_function_response>"
_TURNS: Final = Turns(
    controls=_CONTROLS,
    head=(
        f"<bos>«instructed|tools¦<start_of_turn>developer\n«tools¦{_CAN_CALL}«instructed¦\n»»"
        "$text$tools<end_of_turn>\n»"
    ),
    joint="\n",
    notes_choice=False,
    system="<start_of_turn>developer\n$text<end_of_turn>\n",
    user="<start_of_turn>user\n$text<end_of_turn>\n",
    assistant=if_new("<start_of_turn>model\n") + "$text$calls«!calls¦<end_of_turn>\n»",
    written="$text$calls",
    thoughts="none",
    trims=("late system", "user", "assistant"),
    outputs="$each",
    output=_RESPONSE,
    answer=if_new("<start_of_turn>model\n"),
    calls=_FORM.layout,
    tools=_tools,
    chat_tools=_told_tools,
    chat_output=_RESPONSE,
    chat_between="\n",
)


DIALECT = Dialect(
    name="functiongemma",
    aliases=("function_gemma",),
    model_families="FunctionGemma",
    model_globs=("functiongemma",),
    template_markers=("<start_function_call>",),
    source="documentation of FunctionGemma-270m-it",
    tokenizers=("functiongemma",),
    stops=_STOPS,
    options=Options,
    shown_keywords=SHOWN,
    prompt=_TURNS,
    calls=_FORM,
)
