"""Prompts as a table of turns: a layout for each role, see `callwright.dialects.prompts.layouts`.

A table gives whole prompts, the output of the model, the chat messages of mode prompt, and the marks around the parts
of an answer.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Final, Literal, TypeAlias, assert_never

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from callwright.conversation import (
    AssistantTurn,
    Conversation,
    ConversationTurn,
    Item,
    Message,
    NamedTool,
    ToolTurn,
)
from callwright.dialects.base import RenderOptions, TurnMarks
from callwright.dialects.prompts.chat_messages import (
    choice_note,
    format_note,
    is_of_user,
    last_asked,
    plain_text,
    split_instructions,
    user_turns,
)
from callwright.dialects.prompts.kept_parts import Apart, put_turns
from callwright.dialects.prompts.layouts import Layout, Values, compile_layout, put_each
from callwright.dialects.prompts.options import option_values
from callwright.dialects.prompts.told import ToldTurns
from callwright.dialects.prompts.tool_section import ToolSection, WriteTools
from callwright.layout.calls import CallLayout, filled
from callwright.prompt import Collected, Prompt, PromptBuilder, own_words


class Result(Struct, frozen=True):
    """The output of a call: the tool's name, the call's number in the conversation, and the text."""

    name: str
    number: int
    text: str


WriteResults: TypeAlias = Callable[[PromptBuilder, Sequence[Result]], object]


def _make_turns(fields: Mapping[str, Any]) -> "Turns":
    return Turns(**fields)


class Turns(Struct, frozen=True, kw_only=True, eq=False):
    """Renders the conversations of one model family: a layout for each role. The literals of `controls` in a layout are
    control tokens; `calls` is the layout of calls. Each layout can name the options and their values.

    `head` precedes the turns. Its `$text` is the instructions: each in the layout `instruction`, joined by `joint`, or
    `default` (`default_with_tools`) without instructions. `instructed`: there are instructions. `asked`: there are
    tools, and a message of the user that can hold them. `$notes` is the request's format and choice of tools in words;
    if the head does not name it, they are the last instructions. `notes_choice`: the choice is one of them. `gather`
    splits the instructions from the other items. `more` returns further slots for a conversation.

    `system` and `user` are messages (`$text`, `$name`); `first_user` is the first message of the user if it has to
    hold `$tools`. `text_slots` returns further slots for a text.

    `written` is the output of the model: `$thought`, `$text`, `$calls`. `assistant` is the same turn in a history, in
    which `$written` repeats that layout; `past_calls` is the layout of calls there. Reasoning is shown after the last
    message of the user (`running`), in `all` turns or in `none`; `reasons` is true after that message.

    `outputs` is a turn of tool results. At `$each` it has one `output` for each (`$name`, `$number`, `$index`,
    `$text`) with `between` between them, or the output of a function.

    `answer` begins the turn to generate. `$thought` marks that reasoning follows; `$prefill` is the beginning of a
    forced call. `close` precedes it.

    `after_outputs` and `after_calls` are true in a turn, and in `answer`, that follows these. `trims` lists the roles
    whose texts are stripped (`late system`: only after the head).

    `tools` describes the tools: a function, or a layout with `$lines` (JSON, one tool a line), `$list` (a JSON array),
    `$functions` (an array of the functions), `$example` (a call) and `$each`: one layout `tool` for each tool, with
    `$tool`, `$function` (JSON), `$name` and `$about`. None describes the tools in plain words.

    `chat_tools`, `chat_output`, `chat_between`, `chat_calls` and `chat_written` replace `tools`, `output`, `between`,
    `calls` and `written` in the chat messages of mode prompt.

    `flavours` maps a value of the option `flavour` to the fields that differ in prompts. Outputs and chat messages
    do not depend on it.
    """

    controls: tuple[str, ...]
    calls: CallLayout
    head: str = ""
    instruction: str = "$text"
    joint: str = "\n\n"
    default: str = ""
    default_with_tools: str | None = None
    gather: Callable[[Sequence[Item]], tuple[list[str], tuple[Item, ...]]] = split_instructions
    notes_choice: bool = True
    more: Callable[[Conversation], Values] | None = None
    system: str
    user: str
    first_user: str | None = None
    text_slots: Callable[[str], Values] | None = None
    assistant: str
    written: str
    past_calls: CallLayout | None = None
    thoughts: Literal["running", "all", "none"] = "running"
    keeps_thoughts_with_tools: bool = False
    outputs: str
    output: str | WriteResults = "$text"
    between: str = ""
    answer: str
    close: str = ""
    trims: tuple[str, ...] = ()
    tools: str | WriteTools | None = None
    tool: str = "$tool"
    chat_tools: str | WriteTools | None = None
    chat_output: str = "Result of «name¦$name¦the tool»:\n$text"
    chat_between: str = "\n\n"
    chat_calls: CallLayout | None = None
    chat_written: str | None = None
    own_marks: TurnMarks | None = None
    flavours: Mapping[str, Mapping[str, Any]] = {}
    renderer: Any = None

    def __post_init__(self) -> None:
        force_setattr(self, "renderer", _Renderer.of_table(self))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the table without its renderer, which refers to it."""
        declared = (field for field in self.__struct_fields__ if field != "renderer")
        return _make_turns, ({field: getattr(self, field) for field in declared},)

    @property
    def marks(self) -> TurnMarks:
        renderer: _Renderer = self.renderer
        return self.own_marks or renderer.marks

    def render(self, conversation: Conversation, options: RenderOptions) -> Prompt:
        renderer: _Renderer = self.renderer
        return renderer.of(options).render(conversation, options)

    def messages(self, conversation: Conversation, options: RenderOptions) -> list[dict[str, Any]]:
        renderer: _Renderer = self.renderer
        return renderer.messages(conversation, options)

    def write(self, turn: AssistantTurn) -> str:
        renderer: _Renderer = self.renderer
        return renderer.write(turn)


class _Renderer(Struct, frozen=True, kw_only=True, eq=False):
    """Renders by a table, whose layouts are compiled here. `names` has the slots and conditions of all turns."""

    table: Turns
    head: Layout
    system: Layout
    user: Layout
    first_user: Layout
    assistant: Layout
    written: Layout
    chat_written: Layout
    outputs: Layout
    output: Layout | None
    between: Layout
    close: Layout
    answer: Layout
    instruction: Layout
    chat_output: Layout
    tools: ToolSection
    chat_tools: ToolSection
    reasons: bool
    follows: bool
    names: frozenset[str]
    shows_options: bool
    flavours: Mapping[str, "_Renderer"]

    @classmethod
    def of_table(cls, table: Turns) -> "_Renderer":
        """Compile the layouts of a table."""
        made = partial(compile_layout, controls=table.controls)
        assistant = made(table.assistant.replace("$written", table.written))
        turns = [made(table.system), made(table.user), assistant, made(table.outputs)]
        output = made(table.output) if isinstance(table.output, str) else None
        turns += [output] if output else []
        names = frozenset[str]().union(*[layout.names for layout in turns])
        section = partial(ToolSection, tool=table.tool, calls=table.calls, controls=table.controls)
        return cls(
            table=table,
            head=made(table.head),
            system=turns[0],
            user=turns[1],
            first_user=made(table.first_user or ""),
            assistant=assistant,
            written=made(table.written),
            chat_written=made(table.written if table.chat_written is None else table.chat_written),
            outputs=turns[3],
            output=output,
            between=made(table.between),
            close=made(table.close),
            answer=made(table.answer),
            instruction=made(table.instruction),
            chat_output=compile_layout(table.chat_output),
            tools=section(write=table.tools),
            chat_tools=section(write=table.chat_tools),
            reasons=table.thoughts == "running" or "reasons" in names,
            follows=bool({"after_outputs", "after_calls"} & (names | made(table.answer + table.close).names)),
            names=names,
            shows_options=bool(names - _OF_TURNS),
            flavours={name: replace(table, flavours={}, **own).renderer for name, own in table.flavours.items()},
        )

    @property
    def marks(self) -> TurnMarks:
        """The marks around the parts of `written`."""
        written = self.written
        answer = written.around("text")
        is_marked = answer is not None and any(control in answer[0] for control in self.table.controls)
        said = (answer[0], answer[1] + written.between("text", "calls")) if answer and is_marked else None
        return TurnMarks(thought=written.around("thought"), said=said, answer=answer, controls=self.table.controls)

    def of(self, options: RenderOptions) -> "_Renderer":
        """Return the renderer of the flavour."""
        return self.flavours.get(getattr(options, "flavour", ""), self) if self.flavours else self

    def render(self, conversation: Conversation, options: RenderOptions) -> Prompt:
        """Render the whole prompt, up to the answer of the model."""
        out = PromptBuilder()
        values = dict(option_values(options))
        more = {} if self.table.more is None else self.table.more(conversation)
        values |= more
        instructions, items = self.table.gather(conversation.items)
        holds_tools = bool(conversation.tools) and self.table.first_user is not None
        users = user_turns(items) if holds_tools else ()
        values["asked"] = bool(users)
        values |= self._head_values(conversation, instructions, options)
        self.head.put(out, values)
        asked: int | None = None
        if self.reasons:
            keeps = self.table.keeps_thoughts_with_tools and conversation.tools
            asked = -1 if keeps else last_asked(conversation, items)
        last = put_turns(
            out,
            items,
            self._put_turn,
            *([options, {name: more[name] for name in more if name in self.names}] if self.shows_options else ()),
            asked=asked,
            leaves=_what_it_is if self.follows else None,
            apart=self._apart(items, users, values) if holds_tools else None,
        )
        if self.table.close:
            self.close.put(out, {**values, **_FOLLOWS[last]})
        if not options.add_generation_prompt:
            return Prompt(out.pieces(), self.table.controls, start="assistant")
        prefill = self._prefill(conversation)
        begin, start = _begin_answer(self, options, last, prefill)
        out.put(begin)
        return Prompt(out.pieces(), self.table.controls, start=start, prefill=prefill)

    def _head_values(
        self, conversation: Conversation, instructions: list[str], options: RenderOptions
    ) -> dict[str, Any]:
        notes = [*(choice_note(conversation) if self.table.notes_choice else []), *format_note(conversation)]
        if "notes" not in self.head.names:
            instructions = [*instructions, *notes]
        instructed = bool(instructions)
        has_default = conversation.tools and self.table.default_with_tools is not None
        default = self.table.default_with_tools if has_default else self.table.default
        if not instructions and default:
            instructions = [default]
        shown: Any
        if self.table.instruction == "$text":
            shown = self.table.joint.join(instructions)
            shown = shown.strip() if "system" in self.table.trims else shown
        else:
            each = [{"text": text} for text in instructions]
            shown = partial(put_each, self.instruction, each, None) if each else ""
        show = partial(self.tools.show, conversation, options)
        return {
            "text": shown,
            "instructed": instructed,
            "notes": "\n\n".join(notes),
            "tools": show if conversation.tools else "",
        }

    def _prefill(self, conversation: Conversation) -> str:
        if "prefill" not in self.answer.names:
            return ""
        match conversation.tool_choice:
            case NamedTool(name):
                return filled(self.table.calls.begin, {"name": name})
            case "required":
                return self.table.calls.begin.partition("${")[0] + '"'
        return ""

    def _apart(self, items: Sequence[Item], users: Sequence[int], values: Values) -> Apart | None:
        """The user's first turn, which has the tools in it."""
        if not users:
            return None
        message = next(item for item in items if is_of_user(item))
        assert isinstance(message, Message)

        def write(out: PromptBuilder, left: str | None) -> None:
            text = self._text(message, users[0])
            self.first_user.put(out, {**values, **_FOLLOWS[left], "text": text, "name": message.name or ""})

        return Apart(users[0], write)

    def _put_turn(
        self,
        out: PromptBuilder,
        turn: ConversationTurn,
        number: int,
        options: RenderOptions | None = None,
        more: Values | None = None,
        *,
        reasons: bool = True,
        left: str | None = None,
    ) -> None:
        """Append a turn of the history. One that `reasons` follows the last question."""
        values: dict[str, Any] = {**_FOLLOWS[left], "reasons": reasons}
        if options is not None:
            values |= {**option_values(options), **(more or {})}
        match turn:
            case Message(role):
                values["text"] = self._text(turn, number)
                values["name"] = turn.name or ""
                if self.table.text_slots is not None:
                    values |= self.table.text_slots(values["text"])
                (self.user if role == "user" else self.system).put(out, values)
            case AssistantTurn(reasoning, message, calls):
                shown = self.table.thoughts == "all" or (self.table.thoughts == "running" and reasons)
                text = plain_text(message.parts, number) if message else ""
                values["thought"] = reasoning or "" if shown else ""
                values["text"] = text.strip() if "assistant" in self.table.trims else text
                values["calls"] = self._calls(self.table.past_calls or self.table.calls, turn) if calls else ""
                self.assistant.put(out, values)
            case ToolTurn():
                self._put_outputs(out, turn, number, values)
            case _:
                assert_never(turn)

    def _text(self, message: Message, number: int) -> str:
        """The text of a message of the user, or of a late one of the system."""
        text = plain_text(message.parts, number)
        whose = ("user",) if message.role == "user" else ("system", "late system")
        return text.strip() if any(role in self.table.trims for role in whose) else text

    def _calls(self, layout: CallLayout, turn: AssistantTurn) -> Callable[[PromptBuilder], object]:
        return lambda out: layout.put(out, turn.calls, turn.calls_before, self.table.controls)

    def _put_outputs(self, out: PromptBuilder, turn: ToolTurn, number: int, values: dict[str, Any]) -> None:
        texts = [plain_text(output.parts, number) for _, output in turn.outputs]
        results = [
            Result(name, call, text) for (name, _), call, text in zip(turn.outputs, turn.numbers, texts, strict=True)
        ]
        if callable(self.table.output):
            values["each"] = partial(_put_results, self.table.output, results)
        elif self.output is not None:
            each = [
                {**values, "name": one.name, "text": one.text, "number": str(one.number), "index": str(index)}
                for index, one in enumerate(results, 1)
            ]
            values["each"] = partial(put_each, self.output, each, self.between)
        self.outputs.put(out, values)

    def write(self, turn: AssistantTurn) -> str:
        """An assistant turn as the model writes it."""
        return Prompt(self._write_turn(turn, self.written, self.table.calls), ()).text

    def _wire_text(self, turn: AssistantTurn) -> str:
        """The same for chat messages, with look-alikes of control tokens in its text broken up."""
        table = self.table
        return Prompt(
            self._write_turn(turn, self.chat_written, table.chat_calls or table.calls), table.controls
        ).wire_text

    def _write_turn(self, turn: AssistantTurn, layout: Layout, calls: CallLayout) -> Any:
        out = PromptBuilder()
        shown = self._calls(calls, turn) if turn.calls else ""
        layout.put(out, {"thought": turn.reasoning or "", "text": turn.text, "calls": shown})
        return out.pieces()

    def messages(self, conversation: Conversation, options: RenderOptions) -> list[dict[str, Any]]:
        """Return the chat messages of mode prompt."""
        shown = self.of(options)
        turns = ToldTurns(self.table.controls, self._wire_text, self._chat_outputs)
        return turns.messages(conversation, shown.chat_tools.put, shown.chat_tools.needed(options))

    def _chat_outputs(self, outputs: Sequence[tuple[str, str]]) -> str:
        layout: Layout = self.chat_output
        return self.table.chat_between.join([layout.text({"name": name, "text": text}) for name, text in outputs])


def _put_results(write: WriteResults, results: Sequence[Result], out: PromptBuilder) -> None:
    write(out, results)


@lru_cache(maxsize=512)
def _begin_answer(form: _Renderer, options: RenderOptions, last: str | None, prefill: str) -> tuple[Collected, str]:
    """The begin of the turn to generate after a `last` one, and its `Prompt.start`."""
    out = PromptBuilder()
    thinks: list[bool] = []
    values = {
        **option_values(options),
        **_FOLLOWS[last],
        "prefill": (lambda out: own_words(out, prefill, form.table.controls)) if prefill else "",
        "thought": lambda _: thinks.append(True),
    }
    form.answer.put(out, values)
    return out.collected(), "reasoning" if thinks else "assistant"


# Slots of turns; other names are those of options.
_OF_TURNS: Final = frozenset(
    (
        *("thought", "text", "calls", "name", "number", "index", "each"),
        *("reasons", "after_outputs", "after_calls"),
    )
)
_NOTHING: Final = {"after_outputs": False, "after_calls": False}
_FOLLOWS: Final[Mapping[str | None, dict[str, bool]]] = {
    None: _NOTHING,
    "outputs": {**_NOTHING, "after_outputs": True},
    "calls": {**_NOTHING, "after_calls": True},
    "text": _NOTHING,
}


def _what_it_is(_: object, turn: ConversationTurn) -> str:
    if isinstance(turn, ToolTurn):
        return "outputs"
    return "calls" if isinstance(turn, AssistantTurn) and turn.calls else "text"
