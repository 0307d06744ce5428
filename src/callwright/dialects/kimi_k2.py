"""Kimi K2: `<|tool_call_begin|>functions.NAME:IDX<|tool_call_argument_begin|>{…}<|tool_call_end|>` in a section.

The format of Kimi K2, K2-Thinking, K2.5 and K2.6. The header is the id of the call; IDX counts over the conversation.
A section may begin in a thought that is never closed. Checked against the chat templates of Kimi-K2-Thinking and
K2-Instruct.
"""

import re
from typing import Final, Literal

from callwright.calls.history import HistoryRules
from callwright.dialects.base import Dialect, ReadBy
from callwright.dialects.prompts.options import ThinkingOptions
from callwright.dialects.prompts.turns import Turns
from callwright.layout.calls import CallLayout
from callwright.reading.json.marked import CallMarks, MarkedCalls
from callwright.reading.text.answer_text import AnswerText
from callwright.reading.text.call_reader import CallReader
from callwright.streaming.reader import Parse, may_come


class Options(ThinkingOptions, frozen=True, kw_only=True):
    """`thinking`: `model` leaves it to the model, `open` begins the answer in reasoning, `off` with a closed, empty
    one. `flavour`: whether turns of the history have a thought, be it empty, as in K2-Thinking, or none, as in
    K2-Instruct.
    """

    flavour: Literal["thinking", "instruct"] = "thinking"


_ARGUMENTS: Final = "<|tool_call_argument_begin|>"
_CALLS: Final = CallLayout(
    open="<|tool_calls_section_begin|>",
    begin=f"<|tool_call_begin|>functions.${{name}}:${{number}}{_ARGUMENTS}",
    end="<|tool_call_end|>",
    close="<|tool_calls_section_end|>",
    variants=("functions.",),
)
_SECTION: Final = ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>")
_MARKS: Final = CallMarks(
    layout=_CALLS,
    opens=("<|tool_call_begin|>",),
    closes=("<|tool_call_end|>",),
    around=(*_SECTION, "<|tool_call_section_begin|>", "<|tool_call_section_end|>"),  # the latter two are seen, too
    header=re.compile(
        rf"\s*+(?:functions\.)?(?:([^\n<{{]*?)(?::\d+)?\s*+(?:{re.escape(_ARGUMENTS)}\s*+)+|([\w./-]+)(?::\d+)?\s*+\Z)"
    ),
)

_PREFIX: Final = "functions."
_MAX_HEADER: Final = 200
_BARE_HEADER = re.compile(rf"(?P<name>[\w./-]+):\d+\s*(?:{re.escape(_ARGUMENTS)}\s*)?(?=\{{)").match
_MAY_BE_HEADER = re.compile(may_come([r"[\w./-]+", ":", r"\d+", r"\s*", *map(re.escape, _ARGUMENTS), r"\s*"])).match


_SHOW_TOOLS: Final = "<|im_system|>tool_declare<|im_middle|>$list<|im_end|>"
_TURNS: Final = Turns(
    controls=(
        *("<|im_system|>", "<|im_user|>", "<|im_assistant|>", "<|im_middle|>", "<|im_end|>", "<think>", "</think>"),
        *(*_MARKS.opens, _ARGUMENTS, *_MARKS.closes, *_SECTION),
    ),
    head="$tools«<|im_system|>system<|im_middle|>$text<|im_end|>»",
    default="You are Kimi, an AI assistant created by Moonshot AI.",
    system="<|im_system|>system<|im_middle|>$text<|im_end|>",
    user="<|im_user|>user<|im_middle|>$text<|im_end|>",
    assistant="<|im_assistant|>assistant<|im_middle|>«!thought¦<think></think>»$written<|im_end|>",
    written="«<think>$thought:trim</think>»$text$calls",
    outputs="$each",
    output="<|im_system|>tool<|im_middle|>## Return of functions.$name:$number\n$text<|im_end|>",
    answer="<|im_assistant|>assistant<|im_middle|>«off¦<think></think>»«open¦<think>$thought»",
    calls=_CALLS,
    tools=_SHOW_TOOLS,
    flavours={
        "instruct": {"assistant": "<|im_assistant|>assistant<|im_middle|>$written<|im_end|>", "thoughts": "none"},
    },
)


class _Calls(MarkedCalls):
    """Reads calls without their tokens, too, at the begin of an answer or after another call."""

    def __init__(self, text: AnswerText) -> None:
        super().__init__(text, _MARKS, (_PREFIX,) if len(text.tools) else ())

    def marked(self, blanks: str, tag: str) -> Parse[CallReader | None]:
        """Read a marker, or the prefix of a name."""
        if tag != _PREFIX:
            return (yield from super().marked(blanks, tag))
        if header := (yield from self._bare_header()):
            self.text.source.take(self.text.source.at + header.end())
            yield from self._headed_call(header["name"], blanks + tag + header.group(), marked=False)
        else:
            self.text.emit(self.text.say(blanks + tag))
        return None

    def may_begin_call(self, tag: str) -> Parse[bool]:
        """Whether a call may follow a marker, or the prefix of a name."""
        if tag != _PREFIX:
            return (yield from super().may_begin_call(tag))
        return (yield from self._next_header()) is not None

    def _bare_header(self) -> Parse[re.Match[str] | None]:
        """The header of a call without its opening token, if one follows without text before it; not consumed."""
        if self.text.apart or not self.text.before.strip():
            return (yield from self._next_header())
        return None

    def _next_header(self) -> Parse[re.Match[str] | None]:
        """The header of a call of an offered tool, if one is next; not consumed."""
        while True:
            ahead = self.text.source.ahead(_MAX_HEADER)
            if header := _BARE_HEADER(ahead):
                return header if self.text.tools.resolve_name(header["name"]) in self.text.tools else None
            if not self.text.source.more(_MAX_HEADER) or not _MAY_BE_HEADER(ahead):
                return None
            yield


def _id(name: str, number: int) -> str:
    return f"functions.{name}:{number}"


DIALECT = Dialect(
    name="kimi_k2",
    aliases=("kimi", "kimi_k2_thinking", "kimi_k25", "moonshot"),
    model_families="Kimi K2, K2-Thinking, K2.5, K2.6",
    model_globs=("kimi-k2*", "kimi-linear", "llada-2.2"),
    model_options={
        **{name: {"flavour": "instruct"} for name in ("kimi-k2", "kimi-linear", "llada-2.2")},
        "kimi-k2-thinking": {"flavour": "thinking"},
    },
    template_markers=("tool_calls_section", "<|im_middle|> + tool_declare"),
    history_rules=HistoryRules(call_id=lambda call, number: _id(call.name, number)),
    source="chat templates of Kimi-K2-Thinking and Kimi-K2-Instruct",
    tokenizers=("kimi_k2", "qwen2.5"),
    stops=("<|im_end|>",),
    options=Options,
    prompt=_TURNS,
    calls=ReadBy(_CALLS, _Calls),
)
