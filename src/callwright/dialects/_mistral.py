"""The shared parts of Mistral's formats: the markers, read in either form, and the prompt.

A call is `[TOOL_CALLS]NAME[ARGS]{…}` (from v11 on) or an object in the list after `[TOOL_CALLS]` (v3, v7). Nothing
marks its end. Ids are nine letters or digits. The prompt is that of Mistral's own encoder, `mistral-common`, whose
versions differ in the position of the system text and the tools, and in the other parts of a turn.
"""

import json
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Literal, assert_never

import msgspec
from msgspec import Struct

from callwright.calls.history import HistoryRules
from callwright.conversation import (
    AssistantTurn,
    Call,
    CallOutput,
    Conversation,
    ConversationTurn,
    Item,
    Message,
    Reasoning,
    TextPart,
    ToolTurn,
    shared_item,
)
from callwright.dialects.base import RenderOptions, TurnMarks
from callwright.dialects.prompts.chat_messages import (
    choice_note,
    format_note,
    is_of_user,
    last_asked,
    last_of_user,
    plain_text,
    split_instructions,
    user_turns,
)
from callwright.dialects.prompts.in_words import in_words, tell_tools
from callwright.dialects.prompts.kept_parts import Apart, put_tools, put_turns
from callwright.dialects.prompts.options import ThinkingOptions
from callwright.dialects.prompts.told import ToldTurns
from callwright.layout.calls import CallLayout, sized_id, written_anew
from callwright.memo.prefixes import fold
from callwright.prompt import Prompt, PromptBuilder, own_words
from callwright.reading.json.marked import CallMarks

_ID_LENGTH: Final = 9
# The id after the name, and the name, which is the last group.
_HEADER: Final = re.compile(
    r"\s*+(?:(?=[^\n<{\[]*+\[CALL_ID\]\s*+(?P<id>[0-9a-zA-Z]{9})\s*+\[ARGS\])?"
    r"([^\n<{\[]*?)\s*+(?:\[CALL_ID\]\s*+[\w-]*+\s*+)?\[ARGS\]\s*+|([\w./-]+)\s*+\Z)"
)
_CONTROLS: Final = (
    *("<s>", "</s>", "[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[THINK]", "[/THINK]"),
    *("[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[MODEL_SETTINGS]", "[/MODEL_SETTINGS]"),
    *("[TOOL_CALLS]", "[CALL_ID]", "[ARGS]", "[TOOL_RESULTS]", "[TOOL_CONTENT]", "[/TOOL_RESULTS]"),
)
_THOUGHT: Final = ("[THINK]", "[/THINK]")
_SYSTEM: Final = ("system", "developer")
_NO_WORDS: Final = Message("user", (TextPart(""),))


def marks(layout: CallLayout) -> CallMarks:
    """The marks of both forms: the reader accepts either."""
    thoughts = (_THOUGHT, ("<think>", "</think>"))
    return CallMarks(
        layout=layout,
        opens=("[TOOL_CALLS]",),
        around=("[/TOOL_CALLS]",),  # no version has it, but models write it
        header=_HEADER,
        thoughts=thoughts,
        ends=("</s>",),
    )


def call_id(given: str, number: int) -> str:
    """The id that the model sees: its own ids are unchanged, others are converted to its form."""
    return sized_id(given, number, _ID_LENGTH)


HISTORY: Final = HistoryRules(call_id=lambda call, number: call_id(call.id, number))


class MistralForm(Struct, frozen=True, kw_only=True):
    """The prompt of one version of the encoder.

    `result` writes the body of a tool result from its text, its call's id and the `space`. `tools_at`: before the last
    or the first user turn. `system`: system texts have turns of their own; else they begin the last user turn.
    `thoughts`: the reasoning of a history that is shown, between the marks `thought`. `joint` separates the text parts
    of one message. `space` precedes each text, as SentencePiece adds it.
    """

    calls: CallLayout
    result: Callable[[PromptBuilder, str, str, str], object]
    tools_at: Literal["first", "last"]
    system: bool = True
    thoughts: Literal["none", "running", "all"] = "none"
    thought: tuple[str, str] = _THOUGHT
    joint: str = "\n\n"
    space: str = ""

    @property
    def marks(self) -> TurnMarks:
        return TurnMarks(thought=_THOUGHT, controls=_CONTROLS)

    def render(self, conversation: Conversation, options: Any, settings: str = "") -> Prompt:
        """The whole prompt, which has no generation prompt except for the `thinking` option. `settings`: the JSON of
        the model's settings, if it has any.
        """
        out = PromptBuilder().control("<s>")
        texts, items = self._split(self._grouped(conversation.items))
        if notes := [*choice_note(conversation), *format_note(conversation)]:
            texts = [*texts[:-1], "\n\n".join([*texts[-1:], *notes])]
        lead = "" if self.system else "\n\n".join(texts)
        for text in texts if self.system else ():
            self._between(out, "SYSTEM_PROMPT", text)

        def before_user(out: PromptBuilder) -> None:
            if conversation.tools:
                put_tools(out, conversation, self._tools)
            if settings:
                out.control("[MODEL_SETTINGS]").text(settings).control("[/MODEL_SETTINGS]")

        users = user_turns(items)
        apart = None
        if not users:
            before_user(out)
        elif conversation.tools or settings or lead:
            apart = self._apart(items, users, before_user, lead)
        asked = last_asked(conversation, items) if self.thoughts == "running" else -1
        put_turns(out, items, self._turn, asked=asked, apart=apart)
        thinking = options.thinking if isinstance(options, ThinkingOptions) else "model"
        if not options.add_generation_prompt or thinking == "model":
            return Prompt(out.pieces(), _CONTROLS)
        own_words(out, self.thought[0] if thinking == "open" else "".join(self.thought), _CONTROLS)
        return Prompt(out.pieces(), _CONTROLS, start="reasoning" if thinking == "open" else "assistant")

    def write(self, turn: AssistantTurn) -> str:
        return self._write_turn(turn).text

    def messages(self, conversation: Conversation, options: RenderOptions) -> list[dict[str, Any]]:
        turns = ToldTurns(_CONTROLS, self._wire_text, in_words)
        return turns.messages(conversation, tell_tools, self.calls, _CONTROLS)

    def _wire_text(self, turn: AssistantTurn) -> str:
        return self._write_turn(turn).wire_text

    def _write_turn(self, turn: AssistantTurn) -> Prompt:
        out = PromptBuilder()
        self._put_answer(out, turn, turn.reasoning, _THOUGHT, self.calls)
        return Prompt(out.pieces(), _CONTROLS)

    # --- the items, as the encoder groups them ---

    def _split(self, items: Sequence[Item]) -> tuple[list[str], Sequence[Item]]:
        """The system texts that are moved out of the turns, and all other items. Without system turns these are the
        texts at the begin and those after a user's; later ones remain in place.
        """
        if self.system:
            return split_instructions(items)
        said = [
            at
            for at, item in enumerate(items)
            if type(item) is Message and item.role in _SYSTEM and (not at or _is_said(items[at - 1]))
        ]
        leaves = {*said}
        rest = [item for at, item in enumerate(items) if at not in leaves]
        texts = [text for at in said if (text := items[at].text)]  # type: ignore[union-attr]
        begins = bool(rest) and type(rest[0]) is Message and rest[0].role == "user"
        return texts, tuple(rest if begins else [_NO_WORDS, *rest])

    def _grouped(self, items: Sequence[Item]) -> Sequence[Item]:
        """The items with messages of one role in a row as one message, and each of them with one text."""
        before = fold(items, _Grouped(), partial(_more, self.joint), self.joint, "grouped")
        return (*before.made, *_joined(items[before.items :], self.joint))

    # --- turns ---

    def _apart(
        self, items: Sequence[Item], users: Sequence[int], before: Callable[[PromptBuilder], None], lead: str
    ) -> Apart:
        """The user's turn with the tools before it, beginning with the text `lead`."""
        is_last = self.tools_at == "last"
        message = items[last_of_user(items)] if is_last else next(item for item in items if is_of_user(item))
        assert isinstance(message, Message)
        number = users[-1 if is_last else 0]

        def write(out: PromptBuilder, _: object) -> None:
            before(out)
            said = plain_text(message.parts, number)
            self._between(out, "INST", f"{lead}\n\n{said}" if lead else said)

        return Apart(number, write)

    def _turn(self, out: PromptBuilder, turn: ConversationTurn, number: int, *, reasons: bool) -> None:
        match turn:
            case Message(role, parts):
                is_system = self.system and role != "user"
                self._between(out, "SYSTEM_PROMPT" if is_system else "INST", plain_text(parts, number))
            case AssistantTurn(reasoning):
                shown = reasoning if reasons and self.thoughts != "none" else None
                plain_text(turn.message.parts if turn.message else (), number)  # raises for other parts than text
                self._put_answer(out, turn, shown, self.thought, written_anew(self.calls))
                out.control("</s>")
            case ToolTurn(outputs, numbers):
                for call, (_, output) in zip(numbers, outputs, strict=True):
                    out.control("[TOOL_RESULTS]")
                    self.result(out, plain_text(output.parts, number), call_id(output.call_id, call), self.space)
                    out.control("[/TOOL_RESULTS]")
            case _:
                assert_never(turn)

    def _put_answer(
        self,
        out: PromptBuilder,
        turn: AssistantTurn,
        reasoning: str | None,
        thought: tuple[str, str],
        calls: CallLayout,
    ) -> None:
        text = turn.text
        if reasoning:
            own_words(own_words(out, thought[0], _CONTROLS).text(reasoning), thought[1], _CONTROLS)
        else:
            text = text.rstrip(" ")
        out.text(self._spaced(text))
        if turn.calls:
            calls.put(out, turn.calls, turn.calls_before, _CONTROLS)

    def _between(self, out: PromptBuilder, token: str, text: str) -> None:
        out.control(f"[{token}]").text(self._spaced(text)).control(f"[/{token}]")

    def _spaced(self, text: str) -> str:
        return self.space + text if text else ""

    def _tools(self, out: PromptBuilder, conversation: Conversation) -> None:
        shown = [
            {"type": "function", "function": {"name": tool.name, "description": tool.about or "", "parameters": schema}}
            for tool in conversation.tools
            for schema in [tool.parameters or {}]
        ]
        self._between(out, "AVAILABLE_TOOLS", json.dumps(shown, ensure_ascii=False))


def _is_said(item: Item) -> bool:
    return type(item) is Message and item.role != "assistant"


class _Grouped(Struct, frozen=True):
    """The result `made` from the first `items`, which no later item can join."""

    made: list[Item] = []
    items: int = 0


def _more(joint: str, before: _Grouped, items: Sequence[Item], _: int) -> _Grouped:
    made, start = [*before.made], before.items
    for at in range(start + 1, len(items)):
        last, item = items[at - 1], items[at]
        is_said = type(item) is Message and item.role not in _SYSTEM
        if not (is_said and type(last) is Message and item.role == last.role):  # type: ignore[union-attr]
            made += _joined(items[start:at], joint)
            start = at
    return _Grouped(made, start)


def _joined(run: Sequence[Any], joint: str) -> Sequence[Item]:
    """One item, or messages of one role, joined into one with one text, if they hold only text."""
    if len(run) == 1 and (isinstance(run[0], Call | Reasoning) or len(run[0].parts) < 2):
        return run
    if not run or any(item.has_media for item in run):
        return run
    return [shared_item(_one(run, joint))]


def _one(items: Sequence[Message | CallOutput], joint: str) -> Message | CallOutput:
    each = [joint.join([part.text for part in item.parts if type(part) is TextPart and part.text]) for item in items]
    return msgspec.structs.replace(items[-1], parts=(TextPart("\n\n".join(filter(None, each))),))
