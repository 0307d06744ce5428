"""The prompts of Spark 2.5: turns between tokens of sentences, the calls of GLM 4.7."""

import json
from collections.abc import Sequence
from functools import cache
from typing import Final

from callwright.conversation import Conversation
from callwright.dialects.prompts.key_value_tags import KeyValueTags
from callwright.dialects.prompts.template import Frame, OpenThinkingOptions, Result
from callwright.prompt import Prompt, PromptBuilder

__all__ = ["SPARK_ENDS", "spark_prompt"]

_BEGIN: Final = "<｜start▁of▁sentence｜>"
_END: Final = "<｜end▁of▁sentence｜>"
SPARK_ENDS: Final = (_END,)
_DEFAULT: Final = "you are a helpful assistant."


def spark_prompt(conversation: Conversation, tags: KeyValueTags, *, begins: bool, thinks: bool) -> Prompt:
    """The whole prompt. `begins`: up to where the answer begins; if it `thinks`, in reasoning."""
    options = OpenThinkingOptions(add_generation_prompt=begins, thinking="open" if thinks else "off")
    return _frame(tags, tools=bool(conversation.tools)).render(conversation, options)


def _tools(out: PromptBuilder, conversation: Conversation) -> None:
    shown = "".join(f"\n{json.dumps(tool.as_openai()['function'], ensure_ascii=False)}" for tool in conversation.tools)
    out.text(f"{_DEFAULT}## Tools\nYou have access to the following functions:\n<tools>{shown}\n</tools>")


def _results(out: PromptBuilder, results: Sequence[Result]) -> None:
    for result in results:
        out.control("<tool_response>").text(result.text).control("</tool_response>")


def _turn(role: str) -> tuple[str, str]:
    return f"{_BEGIN}<|{role}|>", _END


@cache
def _frame(tags: KeyValueTags, *, tools: bool) -> Frame:
    roles = ("<|System|>", "<|User|>", "<|Bot|>", "<|Tool|>")
    tokens = ("<think>", "</think>", "<tool_response>", "</tool_response>")
    return Frame(
        controls=(_BEGIN, _END, *roles, *tokens, *tags.literals),
        system=(f"{_turn('System')[0]}\n", _END),
        user=_turn("User"),
        assistant=_turn("Bot"),
        tool=_turn("Tool"),
        system_lead="" if tools else _DEFAULT,
        place="system first",
        tools=_tools,
        calls=tags.layout,
        results=_results,
        thought=("<think>", "</think>"),
        thoughts="all",
        no_thought="</think>",
    )
