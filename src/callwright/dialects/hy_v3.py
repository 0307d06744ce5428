"""Hunyuan 3 and 4: `<tool_calls>` around `<tool_call>f<tool_sep>` and lines of `<arg_key>` and `<arg_value>`.

Released checkpoints put a word after the name of every tag, `<tool_call:opensource>`; Hunyuan 4 leaves `<tool_sep>`
and the line feeds out. Each spelling is read, as in vLLM's parser `hy_v3`. Prompts are checked against the chat
template of Hy3.
"""

import re
from typing import Final, Literal

from msgspec.structs import replace

from callwright.dialects.base import Dialect, ReadBy, RenderOptions
from callwright.dialects.prompts.chat_messages import gather_instructions
from callwright.dialects.prompts.turns import Turns
from callwright.layout.key_values import (
    LINES,
    KeyValueTags,
    write_turns,
)
from callwright.reading.tagged.key_values import KeyValueCalls
from callwright.reading.text.answer_text import AnswerText
from callwright.reading.text.call_reader import CallReader
from callwright.streaming.reader import Parse

_STOPS: Final = ("<｜hy_eos｜>", "<｜hy_eos:opensource｜>")

_SUFFIX: Final = ":opensource"
_SUFFIX_END = re.compile(r"(\w+)>")
_WORD = re.compile(r"\w*")
_MAX_SUFFIX: Final = 64
_BEGIN: Final = "<｜hy_begin_of_sentence:opensource｜>"
_USER: Final = "<｜hy_User:opensource｜>"
_ASSISTANT: Final = "<｜hy_Assistant:opensource｜>"
_EOS: Final = _STOPS[1]


def _tags(suffix: str) -> KeyValueTags:
    """The tags with a suffix after their names."""
    return KeyValueTags(
        call=f"<tool_call{suffix}>",
        call_end=f"</tool_call{suffix}>",
        key=f"<arg_key{suffix}>",
        key_end=f"</arg_key{suffix}>",
        value=f"<arg_value{suffix}>",
        value_end=f"</arg_value{suffix}>",
        name_end=f"<tool_sep{suffix}>",
        blocks=((f"<tool_calls{suffix}>", f"</tool_calls{suffix}>"),),
        gaps=LINES,
        between="\n",
    )


_TAGS: Final = _tags("")
_RELEASED: Final = _tags(_SUFFIX)
_THOUGHTS: Final = tuple((f"<think{suffix}>", f"</think{suffix}>") for suffix in ("", _SUFFIX))
_MODE: Final = "<｜reasoning_mode:opensource｜>"
_SHOW_TOOLS: Final = """# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
$lines
</tools>

For function call returns, you should first print <tool_calls:opensource>
For each function call, you should return object like:
<tool_call:opensource>{function-name}<tool_sep:opensource>
<arg_key:opensource>{arg-key-1}</arg_key:opensource>
<arg_value:opensource>{arg-value-1}</arg_value:opensource>
<arg_key:opensource>{arg-key-2}</arg_key:opensource>
<arg_value:opensource>{arg-value-2}</arg_value:opensource>
...
</tool_call:opensource>
At the end of function call returns, you should print </tool_calls:opensource>"""
_RESULTS: Final = (f"<tool_responses{_SUFFIX}>", f"</tool_responses{_SUFFIX}>")
_RESULT: Final = (f"<tool_response{_SUFFIX}>", f"</tool_response{_SUFFIX}>")
_CONTROLS: Final = (
    *(_BEGIN, _MODE, _USER, _ASSISTANT, *_RESULTS, *_STOPS, *_TAGS.literals, *_RELEASED.literals),
    *(*_RESULT, "<tool_response>", "</tool_response>", *(tag for pair in _THOUGHTS for tag in pair)),
)


class Options(RenderOptions, frozen=True, kw_only=True):
    """`thinking`: `open` begins the answer in reasoning, `off` after a closed, empty one. `reasoning_effort`: the
    amount of reasoning, if there is any.
    """

    thinking: Literal["open", "off"] = "off"
    reasoning_effort: Literal["low", "high"] = "high"

    def with_effort(self, level: str) -> "Options":
        """See `RenderOptions`: the model knows two levels, and none; any but that opens a thought."""
        if level == "none":
            return replace(self, thinking="off")
        return replace(self, thinking="open", reasoning_effort="low" if level in ("minimal", "low") else "high")


_TURNS: Final = Turns(
    controls=_CONTROLS,
    head=(
        f"{_BEGIN}$text«text notes¦\n\n»$notes«tools¦«text|notes¦\n\n»$tools»{_MODE}"
        "reasoning_effort:«open¦$reasoning_effort¦no_think»"
    ),
    gather=gather_instructions,
    joint="",  # as the template joins them
    system=f"{_USER}$text",
    user=f"{_USER}$text",
    assistant=f"{_ASSISTANT}<think:opensource>$thought</think:opensource>$text$calls{_EOS}",
    past_calls=_RELEASED.layout,
    keeps_thoughts_with_tools=True,
    outputs="<tool_responses:opensource>\n$each</tool_responses:opensource>",
    output="<tool_response:opensource>\n$text\n</tool_response:opensource>\n",
    answer=f"{_ASSISTANT}<think:opensource>«open¦$thought¦</think:opensource>»",
    tools=_SHOW_TOOLS,
    **write_turns(_TAGS),
)


# --- output ---


def _reader(text: AnswerText) -> CallReader:
    """The reader of the calls in one answer."""
    ends = (*_STOPS, _THOUGHTS[1][1])  # which of the thoughts is open is not known: the end of any is the end
    return _Calls(text, _TAGS, thoughts=_THOUGHTS, ends=ends, also=("<tool_calls:", "<tool_call:"))


class _Calls(KeyValueCalls):
    """Calls in tags with any suffix, or none."""

    def _spelling(self, opener: str) -> Parse[tuple[str, KeyValueTags] | None]:
        while True:
            ahead = self.text.source.ahead(_MAX_SUFFIX)
            if found := _SUFFIX_END.match(ahead):
                return found.group(), _tags(f":{found[1]}")
            if not self.text.source.more(_MAX_SUFFIX) or not _WORD.fullmatch(ahead):
                return None
            yield


DIALECT = Dialect(
    name="hy_v3",
    aliases=("hunyuan_v3", "hy_v4", "hy3"),
    model_families="Hunyuan 3, Hunyuan 4",
    model_globs=("hunyuan-3*", "hy-v3*", "hy-3*", "hunyuan-4", "hy-v4", "hy-4"),
    template_markers=(
        "<arg_key> + <tool_sep",
        "<tool_call{}> + <tool_sep{}>",
    ),
    source="chat template of Hy3; vLLM's parsers hy_v3 (Hunyuan 3) and hy_v4 (Hy4, Hunyuan 4)",
    tokenizers=("hy3",),
    stops=_STOPS,
    options=Options,
    prompt=_TURNS,
    calls=ReadBy(_TAGS.layout, _reader),
)
