"""Plain JSON calls, for any model: the tools are told in words, and a call is a fenced block of JSON.

For servers without tool support, with a broken parser, or without a template for the model. What a reply may look
like is wide; `toolwright.recover` reads it. Text before the first thing that may be a call flows; from there on the
reply is held, because what follows (a question, a record's output) may still make it text. Source of the forms:
docs/dialects.md.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, Final, assert_never

import msgspec

from toolwright.conversation import AssistantTurn, Call, Conversation, FunctionTool, Message, ToolTurn
from toolwright.dialects._chat import chat_content, chat_role, choice_note, plain_text, split_instructions
from toolwright.dialects.base import RenderOptions
from toolwright.events import ArgumentsDelta, CallEnded, CallStarted, ContentDelta, Markup, Problem, ReasoningDelta
from toolwright.forms import call_keys
from toolwright.prompt import Prompt, PromptBuilder
from toolwright.recover import END_TOKENS, JSON_TAGS, OPENERS, Found, Prose, recover
from toolwright.schema.typescript import declaration
from toolwright.source import JsonStops, Markers, Source, Steps, gather, json_text, stream, stream_text
from toolwright.toolset import Toolset

__all__ = ["Options", "aliases", "messages", "models", "parse", "render", "source", "stop_token_ids", "stops", "write"]

aliases = ("prompt", "generic", "generic_json", "bare_json")
models = "any model that follows instructions"
source = "no template: tools and calls are told in words"
stops = ("### User", "### System")
stop_token_ids = ()

_FORM: Final = '```json\n{"tool": "tool_name", "arguments": {"parameter": "value"}}\n```'
_HEADINGS: Final = ("### System", "### User", "### Assistant")
# From the first thing that may be a call the reply is held up to this size; what is longer is text.
_MAX_HELD: Final = 4_194_304
# The first key of an object, or the tag of a fence, is waited for this long.
_MAX_PEEK: Final = 300
# So much of what was said is remembered, to judge a call by the words before it.
_REMEMBERED: Final = 400

_IN_TEXT = Markers(*OPENERS, "</think>", *END_TOKENS)
_THOUGHT_END = Markers("</think>")
_CODE_END = Markers("`", "\n")
_FENCE_END = Markers("```", "~~~")
_EVERYTHING = Markers()
_NO_STOPS = JsonStops()

_FENCE_HEAD = re.compile(r"[`~]*+[ \t]*+(?P<tag>[\w+-]*+)\s*+(?=\S)")
_FIRST_KEY = re.compile(r'[\s\[{]*\{\s*"((?:[^"\\]|\\.)*)"')
_MAY_BE_OBJECT = re.compile(r'[\s\[{]*(?:\{\s*(?:"(?:[^"\\]|\\.)*\\?)?)?\Z')


class Options(RenderOptions, frozen=True, kw_only=True):
    """No options of its own."""


# --- prompts ---


def messages(conversation: Conversation, options: Options) -> list[dict[str, Any]]:
    """Chat messages with the tools in the system message, calls as the taught form, outputs as user messages."""
    instructions, items = split_instructions(conversation.items)
    system = [*_tool_section(conversation), *instructions]
    chat: list[dict[str, Any]] = [{"role": "system", "content": "\n\n".join(system)}] if system else []
    for turn in msgspec.structs.replace(conversation, items=items).turns():
        match turn:
            case Message(role, parts):
                chat.append({"role": chat_role(role), "content": chat_content(parts, ())})
            case AssistantTurn(_, message, calls):
                # Reasoning is dropped on purpose: the server's template has its own place for it, or none.
                chat.append({"role": "assistant", "content": write(AssistantTurn(None, message, calls))})
            case ToolTurn(outputs):
                texts = [f"Result of {name or 'the tool'}:\n{plain_text(output.parts, 0)}" for name, output in outputs]
                chat.append({"role": "user", "content": "\n\n".join(texts)})
            case _:
                assert_never(turn)
    return chat


def render(conversation: Conversation, options: Options) -> Prompt:
    """The same as a plain text with headings, for completion endpoints of models without a chat format."""
    out = PromptBuilder()
    for message in messages(conversation, options):
        out.control(f"### {message['role'].capitalize()}").text("\n", _text_only(message["content"]), "\n\n")
    if options.add_generation_prompt:
        out.control("### Assistant").text("\n")
    return Prompt(out.pieces(), _HEADINGS)


def write(turn: AssistantTurn) -> str:
    """A turn as the model writes it: one fenced block for each call."""
    thought = f"<think>\n{turn.reasoning}\n</think>\n\n" if turn.reasoning else ""
    said = [turn.text + "\n" if turn.calls else turn.text] if turn.text else []
    return thought + "\n".join(said + [_block(call) for call in turn.calls])


def _block(call: Call) -> str:
    name = json.dumps(call.name, ensure_ascii=False)
    return f'```json\n{{"tool": {name}, "arguments": {call.arguments or "{}"}}}\n```'


def _tool_section(conversation: Conversation) -> list[str]:
    """The tools in words. Always the same text for the same tools: the prefix cache of the server lives on it."""
    if not conversation.tools:
        return []
    several = "use several by writing several blocks" if conversation.parallel_tool_calls else "use one at a time"
    section = (
        "# Tools\n\nYou can use the tools below where they help. To use one, write a block of exactly this form:\n\n"
        f"{_FORM}\n\n"
        "The tools and their parameters (? marks those that may be left out):\n\n"
        f"```ts\n{_declarations(conversation.tools)}\n```\n\n"
        "- Write the block only when you really use the tool, and write nothing behind it: its result comes next.\n"
        f"- You may {several}.\n"
        "- Leave optional parameters out unless they are needed; never make up a value that you do not know.\n"
        "- When no tool is needed, answer in text."
    )
    return [section, *choice_note(conversation)]


def _declarations(tools: Sequence[FunctionTool]) -> str:
    return "\n\n".join(declaration(tool) for tool in tools)


def _text_only(content: object) -> str:
    return content if isinstance(content, str) else plain_text((), 0)


# --- output ---


def parse(source: Source, start: str, tools: Toolset) -> Steps[None]:
    """Events of a reply. `start`: `reasoning` when the prompt left `<think>` open."""
    return _Reader(source, tools).read(start)


class _Reader:
    def __init__(self, source: Source, tools: Toolset) -> None:
        self._source = source
        self.emit = source.emit
        self.markup = source.markup
        self._tools = tools
        self._before = ""  # the end of what was said
        self._keys = call_keys(tools)

    def read(self, start: str) -> Steps[None]:
        yield from self._thought(open_=start == "reasoning")
        while not self._source.done:
            blanks, marker = yield from stream_text(self._source, _IN_TEXT, self._say)
            match marker:
                case "":
                    pass
                case "</think>":
                    self.emit(Markup(blanks + marker))
                    if self._before:
                        self.emit(
                            Problem("unopened_reasoning", "</think> without <think>: what stood before it was thought")
                        )
                        self._before = ""
                    yield from self._skip_blanks()
                case "`":
                    self.emit(self._say(blanks + marker))
                    yield from self._pass(_CODE_END)
                case "```" | "~~~":
                    yield from self._fence(blanks, marker)
                case "{" | "[":
                    self._source.at -= 1
                    yield from self._value(blanks)
                case _ if marker in END_TOKENS:
                    self.emit(Markup(blanks + marker))
                case _:
                    yield from self._held(blanks, marker)

    def _say(self, text: str) -> ContentDelta:
        self._before = (self._before + text)[-_REMEMBERED:]
        return ContentDelta(text)

    def _pass(self, end: Markers) -> Steps[None]:
        """Hand text on, up to and with a marker."""
        marker = yield from stream(self._source, end, self._say)
        if marker:
            self.emit(self._say(marker))

    def _thought(self, *, open_: bool) -> Steps[None]:
        """Reasoning at the begin of the reply."""
        source = self._source
        begin = source.text
        while not source.ended and "<think>".startswith(begin.lstrip()[:7]) and len(begin.lstrip()) < 7:
            yield
            begin = source.text
        if begin.lstrip().startswith("<think>"):
            self.emit(Markup(source.take(begin.index("<think>") + 7)))
        elif not open_:
            return
        yield from self._skip_blanks()
        blanks, marker = yield from stream_text(source, _THOUGHT_END, ReasoningDelta)
        self.markup(blanks + marker)
        yield from self._skip_blanks()

    def _skip_blanks(self) -> Steps[None]:
        while not self._source.done:
            self.markup(self._source.blanks())
            if self._source.at < len(self._source.text):
                return
            yield

    # --- what may be a call ---

    def _fence(self, blanks: str, ticks: str) -> Steps[None]:
        """A fenced block: an object in it may be a call; everything else is text up to the fence's end."""
        source = self._source
        while not (head := _FENCE_HEAD.match(source.text, source.at)) and source.more(_MAX_PEEK):
            yield
        if head and head["tag"].lower() in JSON_TAGS and source.text[head.end()] in "{[":
            opening = blanks + ticks + source.take(head.end())
            if (yield from self._value(opening)):
                return
        else:
            self.emit(self._say(blanks + ticks))
        yield from self._pass(_FENCE_END)

    def _value(self, lead: str) -> Steps[bool]:
        """A brace or a bracket behind `lead`; True when it may be a call and the reply was held from here on."""
        key = yield from self._first_key()
        if key in self._keys:
            yield from self._held(lead, "")
            return True
        if lead:
            self.emit(self._say(lead))
        if key is None:
            self.emit(self._say(self._source.take(self._source.at + 1)))
        else:
            # Data, whatever stands deeper in it.
            yield from json_text(self._source, _NO_STOPS, self._say)
        return False

    def _first_key(self) -> Steps[str | None]:
        """The first key of the object that begins here, None when none does."""
        source = self._source
        while True:
            begin = source.text[source.at : source.at + _MAX_PEEK]
            if found := _FIRST_KEY.match(begin):
                return found[1]
            if source.ended or len(begin) == _MAX_PEEK or not _MAY_BE_OBJECT.match(begin):
                return None
            yield

    def _held(self, lead: str, marker: str) -> Steps[None]:
        """Hold the rest of the reply, then find the calls in it."""
        rest, _ = yield from gather(self._source, _EVERYTHING, _MAX_HELD)
        text = lead + marker + rest
        pieces = recover(text, self._tools, before=self._before, cut=self._source.cut)
        if not any(isinstance(piece, Found) for piece in pieces):
            self.emit(self._say(text))
            return
        calls = 0
        for piece in pieces:
            match piece:
                case Prose(words):
                    said = words.strip()
                    self.emit(self._say(f"\n\n{said}" if self._before else said))
                case Found():
                    if piece.decoded:
                        self.emit(Problem("arguments_decoded", "the arguments were a JSON string", call=calls))
                    self.emit(CallStarted(calls, piece.name))
                    self.emit(ArgumentsDelta(calls, piece.arguments))
                    self.emit(CallEnded(calls))
                    self.markup(piece.text)
                    calls += 1
                case _:
                    assert_never(piece)
