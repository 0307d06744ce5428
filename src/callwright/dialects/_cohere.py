"""What Cohere's formats share: the tokens of turns, citations in text, which are left out of it, and the prompt of
Command 4 and 5, as Cohere's own encoder `cohere-melody` writes it.
"""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypeAlias, assert_never

from msgspec import Struct

from callwright.conversation import AssistantTurn, Conversation, ConversationTurn, Message, ToolTurn
from callwright.dialects.base import TurnMarks
from callwright.dialects.call_layout import CallLayout
from callwright.dialects.prompts.chat_messages import choice_note, format_note, plain_text
from callwright.dialects.prompts.kept_parts import put_tools, put_turns
from callwright.dialects.prompts.template import Result, ThinkingOptions, in_words, tell_tools
from callwright.dialects.prompts.told import ToldTurns
from callwright.dialects.readers.marked import MarkedReader
from callwright.dialects.readers.prose import ProseReader
from callwright.events import Markup
from callwright.prompt import Prompt, PromptBuilder, own_words
from callwright.stream_reader import Markers, Parse, read_until

__all__ = [
    "ANSWERS",
    "CITATIONS",
    "TEXT",
    "THOUGHT",
    "TURNS",
    "CohereReader",
    "CommandForm",
    "Effort",
    "read_citation",
    "turn",
]

Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]

TURNS: Final = (
    *("<BOS_TOKEN>", "<|START_OF_TURN_TOKEN|>", "<|END_OF_TURN_TOKEN|>"),
    *("<|SYSTEM_TOKEN|>", "<|USER_TOKEN|>", "<|CHATBOT_TOKEN|>"),
)
THOUGHT: Final = ("<|START_THINKING|>", "<|END_THINKING|>")
TEXT: Final = ("<|START_TEXT|>", "<|END_TEXT|>")
# `<co>…</co: 0:[1]>` or `<co: 0>…</co: 0>` around what is cited.
CITATIONS: Final = ("<co>", "<co:", "</co:", "</co>")
# What begins the text of an answer.
ANSWERS: Final = ("<|START_RESPONSE|>", "<|START_TEXT|>")
_MAX_SOURCES: Final = 200
_SOURCES = re.compile(r"[\s\d:,\[\]]*>")


def turn(role: str) -> tuple[str, str]:
    """What stands around the turn of a role."""
    return f"<|START_OF_TURN_TOKEN|><|{role}_TOKEN|>", "<|END_OF_TURN_TOKEN|>"


class CommandForm(Struct, frozen=True):
    """The prompt of Command 4 or 5: `calls`, what `results` writes of the results of a turn, and the control tokens.

    Each turn of the assistant begins with a thought, which may be empty; text stands between tokens of its own. What
    was said beside calls stays text, though the encoder shows it as the thought.
    """

    calls: CallLayout
    results: Callable[[PromptBuilder, Sequence[Result]], object]
    controls: tuple[str, ...]

    @property
    def marks(self) -> TurnMarks:
        """See `PromptFormat`."""
        return TurnMarks(thought=THOUGHT, said=TEXT, answer=TEXT, controls=self.controls)

    def render(self, conversation: Conversation, options: ThinkingOptions) -> Prompt:
        """The whole prompt, up to where the model's answer begins."""
        out = PromptBuilder()
        self._fixed(out, "<BOS_TOKEN>", turn("SYSTEM")[0], TEXT[0])
        put_tools(out, conversation, _tools)
        for note in (*choice_note(conversation), *format_note(conversation)):
            out.text(f"\n\n{note}")
        self._fixed(out, TEXT[1], turn("SYSTEM")[1])
        put_turns(out, conversation.items, self._turn)
        if not options.add_generation_prompt:
            return Prompt(out.pieces(), self.controls)
        self._fixed(out, turn("CHATBOT")[0])
        if options.thinking != "model":
            self._fixed(out, THOUGHT[0] if options.thinking == "open" else "".join(THOUGHT))
        start = "reasoning" if options.thinking == "open" else "assistant"
        return Prompt(out.pieces(), self.controls, start=start)

    def write(self, turn: AssistantTurn) -> str:
        """See `PromptFormat`."""
        return self._written(turn).text

    def messages(self, conversation: Conversation, options: ThinkingOptions) -> list[dict[str, Any]]:
        """See `PromptFormat`."""
        turns = ToldTurns(self.controls, self._wire_text, in_words)
        return turns.messages(conversation, tell_tools, self.calls, self.controls)

    def _wire_text(self, turn: AssistantTurn) -> str:
        return self._written(turn).wire_text

    def _written(self, turn: AssistantTurn) -> Prompt:
        out = PromptBuilder()
        if turn.reasoning:
            self._between(out, THOUGHT, turn.reasoning)
        if turn.text:
            self._between(out, TEXT, turn.text)
        if turn.calls:
            self.calls.put(out, turn.calls, turn.calls_before, self.controls)
        return Prompt(out.pieces(), self.controls)

    def _turn(self, out: PromptBuilder, said: ConversationTurn, number: int) -> None:
        match said:
            case Message(role, parts):
                begin, end = turn("USER" if role == "user" else "SYSTEM")
                self._fixed(out, begin)
                self._between(out, TEXT, plain_text(parts, number))
                self._fixed(out, end)
            case AssistantTurn(reasoning, message, calls, before):
                begin, end = turn("CHATBOT")
                self._fixed(out, begin)
                self._between(out, THOUGHT, reasoning or "")
                text = plain_text(message.parts, number) if message else ""
                if text or not calls:
                    self._between(out, TEXT, text)
                if calls:
                    self.calls.put(out, calls, before, self.controls)
                self._fixed(out, end)
            case ToolTurn(outputs, numbers):
                begin, end = turn("SYSTEM")
                self._fixed(out, begin)
                results = [
                    Result(name, call, plain_text(output.parts, number))
                    for call, (name, output) in zip(numbers, outputs, strict=True)
                ]
                self.results(out, results)
                self._fixed(out, end)
            case _:
                assert_never(said)

    def _between(self, out: PromptBuilder, marks: tuple[str, str], text: str) -> None:
        self._fixed(out, marks[0])
        out.text(text)
        self._fixed(out, marks[1])

    def _fixed(self, out: PromptBuilder, *texts: str) -> None:
        """Append text of the format, its control tokens as such."""
        own_words(out, "".join(texts), self.controls)


def _tools(out: PromptBuilder, conversation: Conversation) -> None:
    shown = [
        {"name": tool.name, "description": tool.about or "", "parameters": tool.parameters or {}, "responses": None}
        for tool in conversation.tools
    ]
    lines = ",\n    ".join(json.dumps(tool, ensure_ascii=False) for tool in shown)
    out.text("# Available Tools\n```json\n[\n", f"    {lines}" if shown else "", "\n]\n```")


class CohereReader(MarkedReader):
    """Marked calls, and text without its marks of citations. The begin of the answer's text ends a thought."""

    def _draft(self, opening: str, close: str) -> Parse[bool]:
        if opening.strip() in ANSWERS:
            self.source.unread(opening)
            return True
        return (yield from super()._draft(opening, close))

    def _marked(self, blanks: str, tag: str) -> Parse[None]:
        if tag not in CITATIONS:
            yield from super()._marked(blanks, tag)
            return
        yield from read_citation(self, blanks, tag)


def read_citation(reader: ProseReader, blanks: str, tag: str) -> Parse[None]:
    """Read a mark of a citation, which is no text; what only begins as one is."""
    if blanks:
        reader.emit(reader.say(blanks))
    if tag.endswith(">"):
        reader.emit(Markup(tag))
        return
    sources, end = yield from read_until(reader.source, Markers(">"), _MAX_SOURCES)
    is_citation = bool(_SOURCES.fullmatch(sources + end))
    reader.emit(Markup(tag + sources + end) if is_citation else reader.say(tag + sources + end))
