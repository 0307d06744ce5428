"""Prompts by a model's own chat template.

The client's texts are passed to the template with the look-alikes of control tokens escaped, so that every control
token of the prompt is the template's.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from callwright.calls.history import HistoryRules, apply_history_rules
from callwright.chat_template.probes import THOUGHTS, Telling
from callwright.chat_template.renderer import TemplateFailureError, renderer_of
from callwright.conversation import AssistantTurn, Conversation, Message, TextPart
from callwright.dialects.base import RenderOptions, TurnMarks, get_dialect, read_options
from callwright.dialects.prompts.chat_messages import choice_note, format_note, plain_text
from callwright.dialects.prompts.in_words import in_words, tell_tools
from callwright.dialects.prompts.told import ToldTurns
from callwright.errors import RequestError
from callwright.layout.calls import CallLayout
from callwright.openai_format.messages import write_messages
from callwright.prompt import Prompt, PromptBuilder, neutralise, own_words

_TODAY: Final = "2026-01-01"
_TOLD: Final = "json"


class TemplateOptions(RenderOptions, frozen=True, kw_only=True):
    """`thinking`: `model` leaves it to the template, `open` and `off` set its `enable_thinking`. `reasoning_effort` and
    `current_date` (YYYY-MM-DD) are passed unchanged. `variables` are further variables of the template.
    """

    thinking: Literal["model", "open", "off"] = "model"
    reasoning_effort: str | None = None
    current_date: str | None = None
    variables: Mapping[str, Any] = {}

    def __hash__(self) -> int:
        told = json.dumps(self.variables, sort_keys=True, default=repr)
        return hash((self.thinking, self.reasoning_effort, self.current_date, told))


class ToldOptions(TemplateOptions, frozen=True, kw_only=True):
    """The options of a template that shows no calls. `examples`: as in the dialect `json`."""

    examples: bool = False

    __hash__ = TemplateOptions.__hash__


class TemplatePrompt(Struct, frozen=True, eq=False):
    """A `PromptFormat` that renders with a chat template.

    `fixed` are variables that are always set, such as `bos_token`. `calls` is the layout of calls, after `gap` if there
    is text before them. `told`: the tools and calls are described as text, as in the dialect `json`.
    `shows_tools`: the template shows the tools; else the system message describes them. `system`: the template takes
    such a message. `lead`: the generation prompt, for a template without one.
    """

    template: str
    fixed: tuple[tuple[str, Any], ...]
    telling: Telling
    controls: tuple[str, ...]
    turn_marks: TurnMarks
    calls: CallLayout
    gap: str = ""
    told: bool = False
    shows_tools: bool = True
    system: bool = True
    lead: str = ""

    @property
    def marks(self) -> TurnMarks:
        return self.turn_marks

    def render(self, conversation: Conversation, options: RenderOptions) -> Prompt:
        """The whole prompt. Raises `RequestError` if the template refuses the conversation, or cannot render it."""
        given = options if isinstance(options, TemplateOptions) else TemplateOptions()
        messages, tools = (
            self._messages_in_words(conversation, given) if self.told else self._template_inputs(conversation)
        )
        variables: dict[str, Any] = {**dict(self.fixed), **given.variables}
        if given.thinking != "model":
            variables["enable_thinking"] = given.thinking == "open"
        if given.reasoning_effort is not None:
            variables["reasoning_effort"] = given.reasoning_effort
        variables |= {"messages": messages, "tools": tools, "add_generation_prompt": options.add_generation_prompt}
        try:
            text = renderer_of(self.template).render(variables, given.current_date or _TODAY)
        except TemplateFailureError as error:
            what = "refuses this conversation" if error.refused else "cannot render this conversation"
            raise RequestError(
                f"The model's chat template {what}: {error}", param="messages", code="template_error"
            ) from error
        if options.add_generation_prompt:
            text += self.lead
        opened = self.turn_marks.thought[0].strip() if self.turn_marks.thought else ""
        thinks = bool(opened) and options.add_generation_prompt and text.rstrip().endswith(opened)
        pieces = own_words(PromptBuilder(), text, self.controls).pieces()
        return Prompt(pieces, self.controls, start="reasoning" if thinks else "assistant")

    def messages(self, conversation: Conversation, options: RenderOptions) -> list[dict[str, Any]]:
        """Chat messages (mode prompt): the tools in the system message, calls in their form, outputs in words."""
        if self.told:
            return _told_messages(conversation, options)
        turns = ToldTurns(self.controls, self._wire_text, in_words)
        return turns.messages(conversation, tell_tools, self.calls, self.controls)

    def write(self, turn: AssistantTurn) -> str:
        """An assistant turn as the model writes it."""
        return Prompt(self._turn(turn).pieces(), ()).text

    def _wire_text(self, turn: AssistantTurn) -> str:
        return Prompt(self._turn(turn).pieces(), self.controls).wire_text

    def _turn(self, turn: AssistantTurn) -> PromptBuilder:
        out = PromptBuilder()
        marks, text = self.turn_marks, turn.text
        if turn.reasoning and marks.thought is not None:
            own_words(out, marks.thought[0], self.controls).text(turn.reasoning.strip())
            own_words(out, marks.thought[1], self.controls)
        if text and marks.answer is not None and not turn.calls:
            text, around = "", marks.answer
            own_words(out, around[0], self.controls).text(turn.text)
            own_words(out, around[1], self.controls)
        out.text(text)
        if turn.calls:
            own_words(out, self.gap if text else "", self.controls)
            self.calls.put(out, turn.calls, controls=self.controls)
        return out

    def _messages_in_words(
        self, conversation: Conversation, options: TemplateOptions
    ) -> tuple[list[dict[str, Any]], None]:
        """The messages with the tools in words, for a template that shows none."""
        _check_text(conversation)
        messages = _told_messages(conversation, options)
        return [self._safe(message) for message in self._without_system(messages)], None

    def _template_inputs(self, conversation: Conversation) -> tuple[list[dict[str, Any]], list[dict[str, Any]] | None]:
        """The messages and tools as the template takes them."""
        _check_text(conversation)
        items = apply_history_rules(conversation.items, HistoryRules(single_calls=not self.calls.several))
        messages = write_messages(replace(conversation, items=items))
        for message in messages:
            if (thought := message.get("reasoning_content")) is not None:
                message |= dict.fromkeys(THOUGHTS, thought)
        notes = [*choice_note(conversation), *format_note(conversation)]
        tools: list[dict[str, Any]] | None = None
        if conversation.tools and self.shows_tools:
            tools = [self._safe(tool.openai) for tool in conversation.tools]
        messages = [self._safe(message) for message in messages]
        notes = [self._safe(note) for note in notes]
        if conversation.tools and not self.shows_tools:
            out = PromptBuilder()
            tell_tools(out, conversation, self.calls, self.controls)
            notes.insert(0, Prompt(out.pieces(), self.controls).wire_text)
        return self.telling.messages(self._without_system(self._with_notes(messages, notes))), tools

    def _with_notes(self, messages: list[dict[str, Any]], notes: Sequence[str]) -> list[dict[str, Any]]:
        if not notes:
            return messages
        leads = messages[:1] if messages and messages[0]["role"] == "system" else []
        told = [lead["content"] for lead in leads if isinstance(lead["content"], str)]
        return [{"role": "system", "content": "\n\n".join([*told, *notes])}, *messages[len(leads) :]]

    def _without_system(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Move the system message to the begin of the first user message, for a template that takes none."""
        if self.system or not messages or messages[0]["role"] != "system":
            return messages
        told, rest = messages[0]["content"], messages[1:]
        if rest and rest[0]["role"] == "user":
            return [{**rest[0], "content": f"{told}\n\n{rest[0]['content']}"}, *rest[1:]]
        return [{"role": "user", "content": told}, *rest]

    def _safe(self, value: Any) -> Any:
        """A value whose texts hold no control token."""
        match value:
            case str():
                return neutralise(value, self.controls)
            case Mapping():
                return {self._safe(key): self._safe(inner) for key, inner in value.items()}
            case [*inners]:
                return [self._safe(inner) for inner in inners]
        return value


def _told_messages(conversation: Conversation, options: RenderOptions) -> list[dict[str, Any]]:
    """The messages of the dialect that describes tools and calls."""
    told = get_dialect(_TOLD)
    examples = isinstance(options, ToldOptions) and options.examples
    return told.messages(conversation, read_options(_TOLD, {"examples": examples}))


def _check_text(conversation: Conversation) -> None:
    """Raises `RequestError` for images and files: a prompt is a text."""
    for number, item in enumerate(conversation.items):
        if isinstance(item, Message) and not all(isinstance(part, TextPart) for part in item.parts):
            plain_text(item.parts, number)
