"""Laguna: `<tool_call>f` and lines of `<arg_key>k</arg_key>`, `<arg_value>v</arg_value>`, as GLM 4.5 writes it.

Poolside's models. JSON between the tags is read as well, as in vLLM's parser `poolside_v1` and Ollama's of Laguna, and
some checkpoints open a call with the tag of a turn. Prompts are checked against the chat templates of Laguna-XS.2,
XS-2.1 and S-2.1, which has no line feeds within turns and calls and has no example of a call.
"""

from typing import Final, Literal

from callwright.dialects.base import Dialect, ReadBy, RenderOptions
from callwright.dialects.prompts.chat_messages import spoken_instructions
from callwright.dialects.prompts.turns import Turns
from callwright.layout.key_values import LINES, KeyValueTags, write_turns
from callwright.reading.tagged.key_values import KeyValueCalls
from callwright.reading.text.answer_text import AnswerText
from callwright.reading.text.call_reader import CallReader
from callwright.streaming.reader import Parse

_STOPS: Final = ("</assistant>",)

_TAGS: Final = KeyValueTags(gaps=LINES, between="\n")
_DENSE: Final = KeyValueTags()
_IN_TURN: Final = KeyValueTags(call="<user>", call_end="</user>")
_ROLES: Final = ("system", "user", "assistant")
_BEGIN: Final = "〈|EOS|〉"
_CONTROLS: Final = (
    _BEGIN,
    *(tag for role in _ROLES for tag in (f"<{role}>", f"</{role}>")),
    *(*_TAGS.literals, "<tool_response>", "</tool_response>", "<think>", "</think>"),
)


_SHOW_TOOLS: Final = """### Tools

You may call functions to assist with the user query.
All available function signatures are listed below:
<available_tools>
$lines
</available_tools>"""
_HOW_TO: Final = """

«open¦Wrap your thinking in '<think>', '</think>' tags, followed by a function call. »For each function call, return \
an unescaped XML-like object with function name and arguments within '<tool_call>' and '</tool_call>' tags, like here:
«open¦<think> your thoughts here </think>
»<tool_call>function-name
<arg_key>argument-key</arg_key>
<arg_value>value-of-argument-key</arg_value>
</tool_call>"""


class Options(RenderOptions, frozen=True, kw_only=True):
    """`thinking`: `open` begins the answer in reasoning, `off` after an empty one. `flavour`: the model whose template
    is followed.
    """

    thinking: Literal["open", "off"] = "open"
    flavour: Literal["xs", "s-2.1"] = "xs"


_TURNS: Final = Turns(
    controls=_CONTROLS,
    head=("〈|EOS|〉«text|tools¦<system>«text¦\n\n¦\n»$text«text tools¦\n\n»$tools\n</system>\n»"),
    gather=spoken_instructions,
    system="<system>\n$text\n</system>\n",
    user="<user>\n$text\n</user>\n",
    assistant=("<assistant>\n«<think>\n$thought:trim\n»</think>\n«$text\n»«$calls\n»</assistant>\n"),
    thoughts="all",
    trims=("assistant",),
    outputs="$each",
    output="<tool_response>\n$text\n</tool_response>\n",
    answer="<assistant>\n«open¦<think>$thought¦</think>»",
    tools=_SHOW_TOOLS + _HOW_TO,
    **write_turns(_TAGS),
    flavours={
        "s-2.1": {
            "head": "〈|EOS|〉«text|tools|open¦<system>$text«text tools¦\n\n»$tools</system>\n»",
            "system": "<system>$text</system>\n",
            "user": "<user>$text</user>\n",
            "assistant": "<assistant>«open¦<think>$thought»</think>$text$calls</assistant>\n",
            "past_calls": _DENSE.layout,
            "trims": (),
            "output": "<tool_response>$text</tool_response>\n",
            "answer": "<assistant>«open¦<think>$thought¦</think>»",
            "tools": _SHOW_TOOLS,
        }
    },
)


# --- output ---


def _reader(text: AnswerText) -> CallReader:
    """The reader of the calls in one answer."""
    return _Calls(text, _TAGS, ends=_STOPS, also=(_IN_TURN.call,))


class _Calls(KeyValueCalls):
    """Calls in their own tags, and those in the tags of a user's turn."""

    def _spelling(self, opener: str) -> Parse[tuple[str, KeyValueTags] | None]:
        yield from ()
        return "", _IN_TURN


DIALECT = Dialect(
    name="laguna",
    aliases=("poolside_v1", "poolside"),
    model_families="Poolside Laguna",
    model_globs=("laguna",),
    model_options={"laguna-s-2.1": {"flavour": "s-2.1"}},
    template_markers=("<assistant> + </assistant> + <arg_key> + <arg_value>",),
    source="chat templates of Laguna-XS.2, XS-2.1 and S-2.1",
    tokenizers=("laguna",),
    stops=_STOPS,
    options=Options,
    prompt=_TURNS,
    calls=ReadBy(_TAGS.layout, _reader),
)
