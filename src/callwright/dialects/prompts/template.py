"""Prompts of formats that put fixed text around each turn, from a declaration: what begins and ends a turn, where the
tools go.

A `Frame` renders whole prompts, writes what the model would write, and makes the chat messages of mode prompt. There
the tools are described in the same words for every format, with an example call in the format's own form.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypeAlias, assert_never

from msgspec import Struct

from callwright.conversation import AssistantTurn, Call, Conversation, ConversationTurn, Item, Message, ToolTurn
from callwright.dialects.base import RenderOptions, TurnMarks
from callwright.dialects.call_layout import CallLayout
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
from callwright.dialects.prompts.kept_parts import Apart, put_tools, put_turns
from callwright.dialects.prompts.told import ToldTurns
from callwright.prompt import Prompt, PromptBuilder, own_words

__all__ = [
    "Frame",
    "OpenThinkingOptions",
    "Place",
    "Result",
    "ThinkingOptions",
    "WriteResults",
    "WriteTools",
    "in_words",
    "put_example",
    "tell_tools",
    "tool_lines",
]

# Where the tools stand: in the system turn, behind or before its text; in a turn of their own; in a user message.
Place: TypeAlias = Literal[
    "system", "system first", "before system", "after system", "before last user", "in first user"
]

_EXAMPLE: Final = Call("function_name", '{"parameter_name": "value"}')


class ThinkingOptions(RenderOptions, frozen=True, kw_only=True):
    """`thinking`: `model` lets the model decide, `open` begins the answer inside reasoning, `off` behind closed, empty
    reasoning.
    """

    thinking: Literal["model", "open", "off"] = "model"


class OpenThinkingOptions(ThinkingOptions, frozen=True, kw_only=True):
    """The same for templates that begin the answer inside reasoning unless told otherwise."""

    thinking: Literal["model", "open", "off"] = "open"


class Result(Struct, frozen=True):
    """The output of a call: the tool's name, the call's number in the conversation, and the text."""

    name: str
    number: int
    text: str


WriteResults: TypeAlias = Callable[[PromptBuilder, Sequence[Result]], object]
WriteTools: TypeAlias = Callable[[PromptBuilder, Conversation], object]


def _plain_results(out: PromptBuilder, results: Sequence[Result]) -> None:
    out.text("\n".join(result.text for result in results))


class Frame(Struct, frozen=True, kw_only=True):
    """How one model family renders a conversation. A pair of strings stands around the turn of a role; the literals of
    `controls` in them are control tokens. `said` stands around the content of an assistant turn.

    `calls` is the layout of the calls of a turn. `gap` stands between
    a turn's text and its calls, `calls_begin` before the calls of a turn in the history that has nothing else.
    `calls_end` ends a turn with calls, if that is not what ends any turn.

    `trims`: blanks at the ends of what users and the system say are left out.

    `results` writes the outputs of a turn between `tool`, or one at a time if `each`. `resumes`: behind outputs the
    assistant's turn goes on, without a new begin; `reopens`: the turn to generate begins anew all the same.

    `tools` writes the section with the tools; `seam` stands between it and the system text. `without_tools` stands
    behind the system turn if there are none. `preamble` stands before the system text, `preamble_tools` does if there
    are tools (None: the same). `default_system` is the system text of a conversation without one; `with_tools` is it if
    there are tools. `empty_system`: the system turn is there even without text. Without `system` the text begins a user
    turn: the one with the tools, else the first. `system_lead` begins the system turn, whatever else stands in it.

    `thought` stands around reasoning, which is shown behind the last user turn (`running`), in `all` turns or in `none`
    (`thoughts`). `no_thought` begins a running turn without reasoning, `past_thought` a turn before the last user's
    (None: the same), `off` an answer with thinking off (None: `no_thought`, or empty reasoning).
    """

    controls: tuple[str, ...]
    calls: CallLayout
    user: tuple[str, str]
    assistant: tuple[str, str]
    tool: tuple[str, str]
    system: tuple[str, str] | None
    begin: str = ""
    preamble: str = ""
    preamble_tools: str | None = None
    default_system: str = ""
    with_tools: str | None = None
    empty_system: bool = False
    system_lead: str = ""
    without_tools: str = ""
    seam: str = "\n\n"
    said: tuple[str, str] = ("", "")
    gap: str = ""
    calls_begin: str = ""
    place: Place = "system"
    tools: WriteTools | None = None
    results: WriteResults = _plain_results
    each: bool = False
    thought: tuple[str, str] = ("<think>\n", "\n</think>\n\n")
    thoughts: Literal["running", "all", "none"] = "running"
    no_thought: str = ""
    past_thought: str | None = None
    off: str | None = None
    trims: bool = False
    resumes: bool = False
    reopens: bool = False
    calls_end: str | None = None

    @property
    def marks(self) -> TurnMarks:
        """See `PromptFormat`."""
        before, after = self.said
        is_marked = any(control in before for control in self.controls)
        return TurnMarks(
            thought=self.thought,
            said=(before, after + self.gap) if is_marked else None,
            answer=self.said if before else None,
            controls=self.controls,
        )

    def render(self, conversation: Conversation, options: RenderOptions) -> Prompt:
        """The whole prompt, up to where the model's answer begins."""
        out = PromptBuilder()
        self._fixed(out, self.begin)
        instructions, items = split_instructions(conversation.items)
        instructions += [*choice_note(conversation), *format_note(conversation)]
        users = user_turns(items)
        lead = self._lead(conversation, instructions)
        self._system(out, conversation, lead, has_users=bool(users))
        asked, apart = last_asked(conversation, items), self._apart(conversation, lead, items, users)
        last = put_turns(out, items, self._put_turn, asked=asked, leaves=_what_it_is, apart=apart)
        if not self.reopens:
            self._ended(out, last)
        start = self._generation(out, last, options) if options.add_generation_prompt else "assistant"
        return Prompt(out.pieces(), self.controls, start=start)

    def _apart(
        self, conversation: Conversation, lead: str, items: Sequence[Item], users: Sequence[int]
    ) -> Apart | None:
        """The user's turn that has the tools or the system text in it."""
        holds_tools = bool(conversation.tools) and self.place.endswith("user")
        text = lead if self.system is None else ""
        if not users or not (holds_tools or text):
            return None
        is_last = self.place == "before last user"
        message = items[last_of_user(items)] if is_last else next(one for one in items if is_of_user(one))
        assert isinstance(message, Message)
        number = users[-1] if is_last else users[0]

        def write(out: PromptBuilder, left: type[ConversationTurn] | None) -> None:
            self._ended(out, left)
            if holds_tools and is_last:
                self._tools(out, conversation)
            self._fixed(out, self.user[0])
            if holds_tools and not is_last:
                self._tools(out, conversation)
            out.text(text, "\n\n" if text else "", self._text(message, number))
            self._fixed(out, self.user[1])

        return Apart(number, write)

    def _put_turn(
        self,
        out: PromptBuilder,
        turn: ConversationTurn,
        number: int,
        *,
        reasons: bool,
        left: type[ConversationTurn] | None,
    ) -> None:
        """Append a turn behind one that is `left`. One that `reasons` stands behind the last question."""
        if type(turn) is not AssistantTurn:
            self._ended(out, left)
        match turn:
            case Message(role):
                before, after = self.user if role == "user" or self.system is None else self.system
                self._fixed(out, before)
                out.text(self._text(turn, number))
                self._fixed(out, after)
            case AssistantTurn():
                begins = self._begin(out, left)
                self._answer(out, turn, past=not reasons, begins=begins)
            case ToolTurn():
                self._outputs(out, turn, number)
            case _:
                assert_never(turn)

    def _text(self, message: Message, number: int) -> str:
        """What a user says, or the system later on."""
        text = plain_text(message.parts, number)
        return text.strip() if self.trims else text

    def _lead(self, conversation: Conversation, instructions: Sequence[str]) -> str:
        """The system text."""
        default = self.with_tools if conversation.tools and self.with_tools is not None else self.default_system
        preamble = self.preamble_tools if conversation.tools and self.preamble_tools is not None else self.preamble
        text = "\n\n".join(instructions or filter(None, [default]))
        return preamble + (text.strip() if self.trims else text)

    def _answer(self, out: PromptBuilder, turn: AssistantTurn, *, past: bool, begins: bool) -> None:
        """Append a past assistant turn, behind its begin."""
        hidden = self.thoughts == "none" or (past and self.thoughts == "running")
        shown = None if hidden else turn.reasoning
        if begins and not shown:
            self._fixed(out, self.past_thought if past and self.past_thought is not None else self.no_thought)
        self._fixed(out, self.calls_begin if turn.calls and not turn.text and not shown else "")
        self._turn(out, AssistantTurn(shown, turn.message, turn.calls, turn.calls_before))
        self._fixed(out, self.assistant[1] if self.calls_end is None or not turn.calls else self.calls_end)

    def _outputs(self, out: PromptBuilder, turn: ToolTurn, number: int) -> None:
        results = [
            Result(name, call, plain_text(output.parts, number))
            for call, (name, output) in zip(turn.numbers, turn.outputs, strict=True)
        ]
        for some in [[result] for result in results] if self.each else [results]:
            self._fixed(out, self.tool[0])
            self.results(out, some)
            self._fixed(out, self.tool[1])

    def _ended(self, out: PromptBuilder, last: type[ConversationTurn] | None) -> None:
        """End the assistant's turn that waited behind its calls for outputs, where it does not go on."""
        if last is ToolTurn and self.calls_end == "":
            self._fixed(out, self.assistant[1])

    def _generation(self, out: PromptBuilder, last: type[ConversationTurn] | None, options: RenderOptions) -> str:
        """Begin the turn to generate; answers its `Prompt.start`."""
        begins = self._begin(out, None if self.reopens else last)
        thinking = options.thinking if begins and isinstance(options, ThinkingOptions) else "model"
        if thinking == "off":
            self._fixed(out, self.off if self.off is not None else self.no_thought or "".join(self.thought))
        elif thinking == "open":
            self._fixed(out, self.thought[0])
            return "reasoning"
        return "assistant"

    def write(self, turn: AssistantTurn) -> str:
        """An assistant turn as the model writes it."""
        out = PromptBuilder()
        self._turn(out, turn)
        return Prompt(out.pieces(), ()).text

    def _wire_text(self, turn: AssistantTurn) -> str:
        """The same, with look-alikes of control tokens in its text broken up."""
        out = PromptBuilder()
        self._turn(out, turn)
        return Prompt(out.pieces(), self.controls).wire_text

    def messages(self, conversation: Conversation, options: RenderOptions) -> list[dict[str, Any]]:
        """Chat messages (mode prompt): tools in the system message, calls in the format's form, outputs in words."""
        turns = ToldTurns(self.controls, self._wire_text, in_words)
        return turns.messages(conversation, tell_tools, self.calls, self.controls)

    def _system(self, out: PromptBuilder, conversation: Conversation, text: str, *, has_users: bool) -> None:
        """Append the system turn, and the tools that stand in it, beside it, or have no user turn to stand in."""
        tools = bool(conversation.tools)
        if tools and self.place == "before system":
            self._tools(out, conversation)
        inside = tools and self.place in ("system", "system first")
        if self.system is not None and (text or inside or self.empty_system or self.system_lead):
            self._fixed(out, self.system[0])
            out.text(self.system_lead, self.seam if self.system_lead and (text or inside) else "")
            if inside and self.place == "system first":
                self._tools(out, conversation)
                out.text(self.seam if text else "")
            out.text(text)
            if inside and self.place == "system":
                out.text(self.seam if text else "")
                self._tools(out, conversation)
            self._fixed(out, self.system[1])
        self._fixed(out, "" if tools else self.without_tools)
        if tools and (self.place == "after system" or (not has_users and self.place.endswith("user"))):
            self._tools(out, conversation)

    def _begin(self, out: PromptBuilder, before: type[ConversationTurn] | None) -> bool:
        """Begin the assistant turn behind such a turn; False if it continues one that has begun."""
        if self.resumes and before is ToolTurn:
            return False
        self._fixed(out, self.assistant[0])
        return True

    def _tools(self, out: PromptBuilder, conversation: Conversation) -> None:
        if self.tools is None:
            put_tools(out, conversation, tell_tools, self.calls, self.controls)
        else:
            put_tools(out, conversation, self.tools)

    def _turn(self, out: PromptBuilder, turn: AssistantTurn) -> None:
        if turn.reasoning:
            self._fixed(out, self.thought[0])
            out.text(turn.reasoning.strip())
            self._fixed(out, self.thought[1])
        if turn.message and turn.text:
            self._fixed(out, self.said[0])
            out.text(plain_text(turn.message.parts, 0))
            self._fixed(out, self.said[1])
        if turn.calls:
            self._fixed(out, self.gap if turn.text else "")
            self.calls.put(out, turn.calls, turn.calls_before, self.controls)

    def _fixed(self, out: PromptBuilder, text: str) -> None:
        """Append text of the format, its control tokens as such."""
        own_words(out, text, self.controls)


def _what_it_is(_: object, turn: ConversationTurn) -> type[ConversationTurn]:
    return type(turn)


def in_words(outputs: Sequence[tuple[str, str]]) -> str:
    """Outputs of tools, pairs of tool name and text, for templates that are not told how these are shown."""
    return "\n\n".join(f"Result of {name or 'the tool'}:\n{text}" for name, text in outputs)


def tell_tools(
    out: PromptBuilder, conversation: Conversation, calls: CallLayout, controls: tuple[str, ...] = ()
) -> None:
    """Append the tools and the form of a call in words, for templates that describe neither."""
    out.text(
        "# Tools\n\nYou may call one or more functions to assist with the user query.\n\nThe functions, one a line:\n",
        tool_lines(conversation),
        "\n\nTo call a function, write exactly this, with its name and arguments, and nothing behind it:\n",
    )
    put_example(out, calls, controls)


def put_example(out: PromptBuilder, calls: CallLayout, controls: tuple[str, ...] = ()) -> None:
    """Append a call that shows the form."""
    calls.put(out, [_EXAMPLE], controls=controls)


def tool_lines(conversation: Conversation) -> str:
    """The tools as JSON, one a line."""
    return "\n".join(tool.openai_json for tool in conversation.tools)
