"""Apriel Thinker: reasoning as plain text up to `[BEGIN FINAL RESPONSE]`, calls as a list in `<tool_calls>`.

The format of Apriel 1.5 and 1.6; the prompt of 1.6 ends in `Here are my reasoning steps:`. Source: the chat templates
of Apriel-1.5- and 1.6-15b-Thinker: the tools are Python dicts in the system turn.
"""

from typing import Final, Literal

from callwright.conversation import Conversation
from callwright.dialects.base import Dialect
from callwright.dialects.prompts.in_words import put_example
from callwright.dialects.prompts.options import OpenThinkingOptions
from callwright.dialects.prompts.turns import Turns
from callwright.layout.calls import CallLayout, in_json
from callwright.prompt import PromptBuilder
from callwright.reading.json.marked import CallMarks

_OPEN: Final = "<tool_calls>"
_CLOSE: Final = "</tool_calls>"
_THOUGHT: Final = ("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]")
_CALLS: Final = CallLayout(
    open=f"{_OPEN}[", begin=in_json(), end='${, "id": id:json}}', between=", ", close=f"]{_CLOSE}"
)
_MARKS: Final = CallMarks.of(
    _CALLS, special=False, thoughts=(_THOUGHT, ("<think>", "</think>")), ends=("[END FINAL RESPONSE]", "<|end|>")
)


def _tools(out: PromptBuilder, conversation: Conversation) -> None:
    shown = repr([tool.as_openai() for tool in conversation.tools])
    out.text(
        "You are provided with function signatures within <available_tools></available_tools> XML tags. You may call "
        f"one or more functions to assist with the user query.\n<available_tools>{shown}</available_tools>\n"
        "Return all function calls as a list of JSON objects within <tool_calls></tool_calls> XML tags, each with the "
        "name of the function and its arguments:\n"
    )
    put_example(out, _CALLS)


class Options(OpenThinkingOptions, frozen=True, kw_only=True):
    """`flavour`: the version whose turns are followed."""

    flavour: Literal["1.6", "1.5"] = "1.6"


_TURNS: Final = Turns(
    controls=(
        *("<s>", "<|begin_system|>", "<|begin_user|>", "<|begin_assistant|>", "<|begin_tool_result|>", "<|end|>"),
        *("<|begin_content|>", "<|system|>", "<|user|>", "<|assistant|>", "<|tool_result|>", "<|content|>"),
    ),
    head="«text|tools¦<s><|begin_system|>\n$text«text tools¦\n\n»$tools\n»",
    system="<s><|begin_system|>\n$text\n",
    user="<|begin_user|>\n$text",
    assistant="\n<|begin_assistant|>\n«calls !text !thought¦\n»$written\n<|end|>\n",
    written="«Here are my reasoning steps:\n$thought:trim\n[BEGIN FINAL RESPONSE]\n»$text«text calls¦\n»$calls",
    outputs="$each",
    output="<|begin_tool_result|>\n$text\n\n\n",
    answer="\n<|begin_assistant|>\n«off¦[BEGIN FINAL RESPONSE]\n»«open¦Here are my reasoning steps:\n$thought»",
    calls=_CALLS,
    tools=_tools,
    flavours={
        "1.5": {
            "head": "<s>«text|tools¦<|system|>\n$text«text tools¦\n\n»$tools\n<|end|>\n»",
            "system": "<|system|>\n$text\n<|end|>\n",
            "user": "<|user|>\n$text\n<|end|>\n",
            "assistant": (
                "<|assistant|>\n«calls !text !thought¦\n»«$thought:trim\n[BEGIN FINAL RESPONSE]\n»"
                "$text«text calls¦\n»$calls"
                "\n<|end|>\n<|end|>"
            ),
            "output": "<|tool_result|>\n$text\n<|end|>\n",
            "answer": "<|assistant|>\n«off¦[BEGIN FINAL RESPONSE]\n»«open¦$thought»",
        }
    },
)


DIALECT = Dialect(
    name="apriel",
    model_families="Apriel 1.5 and 1.6 Thinker",
    model_globs=("apriel",),
    model_options={"apriel-1.5": {"flavour": "1.5"}},
    template_markers=("[BEGIN FINAL RESPONSE] + <tool_calls>", "[BEGIN FINAL RESPONSE]"),
    source="chat templates of Apriel-1.5- and 1.6-15b-Thinker",
    tokenizers=("apriel",),
    stops=("<|end|>",),
    options=Options,
    prompt=_TURNS,
    calls=_MARKS,
)
