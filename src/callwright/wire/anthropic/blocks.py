"""Messages of Anthropic's API as a conversation, block by block.

Blocks that mean nothing here are left out of the prompt and named, never refused; calls and results are paired by their
ids, later. Each message reads the same whatever follows it, so that the prompt of a later request begins as this one's.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from callwright.calls.tool_search import SEARCH_TOOL, found_schemas, found_text, found_words, search_id
from callwright.calls.web_search import NAME as WEB_SEARCH
from callwright.calls.web_search import SearchResult
from callwright.conversation import (
    Call,
    CallOutput,
    FunctionTool,
    Item,
    MediaPart,
    Message,
    Part,
    Reasoning,
    Role,
    TextPart,
    shared_item,
)
from callwright.memo.prefixes import fold
from callwright.openai_format.errors import missing, wrong_type
from callwright.openai_format.tool_catalog import ToolCatalog
from callwright.wire.anthropic.inputs import read_input
from callwright.wire.anthropic.media import document_parts, image_part, search_result_parts, text_of
from callwright.wire.anthropic.searches import read_result
from callwright.wire.anthropic.tools import find_tool, is_direct
from callwright.wire.anthropic.types import MessageParam
from callwright.wire.instructions import instructions
from callwright.wire.pairing import Found, copied
from callwright.wire.sealed import SealedTexts
from callwright.wire.searches import Unsealer
from callwright.wire.server_words import call_words, tool_failure

# With it Claude Code's first system block begins. The line differs from conversation to conversation, and would part
# prompts that are the same otherwise.
_BILLING: Final = "x-anthropic-billing-header:"
_ERROR: Final = "Error: "
_UNTIL_USER: Final = "next_user_message"
_SEVERAL: Final = 2


class MessageReader:
    """Reads messages in order: `told` are the instructions before all of them, `found` the items of the conversation.
    `dropped` are the types of blocks that were left out. `removed` are the flat names of tools that may not be called
    any more, `sources` the results of web searches, by their number.

    The `catalog` shows tools from the first reference in a message; their schemas are inserted at the reference.
    """

    def __init__(self, catalog: ToolCatalog) -> None:
        self.catalog = catalog
        self.told: list[Message] = []
        self.found: list[Found] = []
        self.dropped: set[str] = set()
        self.removed: set[str] = set()
        self.sources: dict[int, SearchResult] = {}
        self._unsealer = Unsealer()
        self._sealed = SealedTexts()
        self._done = 0  # the number of messages in `found` that are whole
        self._searches: dict[str, str] = {}  # ids of searches that ran here, as the model is shown them

    def read_system(self, given: str | Sequence[Mapping[str, Any]] | None) -> None:
        """The instructions before all messages. Raises `RequestError`."""
        if isinstance(given, str):
            texts = [given]
        else:
            texts = [text_of(block, f"system[{number}]") for number, block in enumerate(given or ())]
        for told in _joined([TextPart(_unbilled(text)) for text in texts]):  # one at most: there are only texts
            assert isinstance(told, TextPart)
            self.told.append(instructions(told.text))

    def tell(self, words: str) -> None:
        """Add a text to the instructions before all messages."""
        self.told.append(instructions(words))

    @property
    def swells(self) -> bool:
        """Whether a sealed text was much longer than the bytes of the request that hold it."""
        return self._sealed.swells or self._unsealer.swells

    def read(self, number: int, message: MessageParam) -> None:
        """One more message, with its number. Raises `RequestError` that names the field."""
        path = f"messages[{number}]"
        match message.role:
            case "user":
                self._user(_blocks(message), path)
            case "assistant":
                self._assistant(_blocks(message), path)
            case "system":
                self._system(_blocks(message), path, is_first=number == 0)

    def make_whole(self, until: int) -> None:
        """Join the texts of the first `until` items of `found`, each of which is a message of several texts."""
        done = self._done
        self.found[done:until] = [_whole(one) for one in self.found[done:until]]
        self._done = max(done, until)

    # --- by role ---

    def _user(self, blocks: Sequence[Mapping[str, Any]], path: str) -> None:
        parts: list[Part] = []
        for number, block in enumerate(blocks):
            at = f"{path}.content[{number}]"
            if _kind(block, at) == "tool_result":
                id_ = text_of(block, at, "tool_use_id")
                self._add(CallOutput(id_, self._result(block, at)), at)
            else:
                parts += self._parts(block, at)
        self._say("user", parts, path)

    def _assistant(self, blocks: Sequence[Mapping[str, Any]], path: str) -> None:
        texts: list[Part] = []

        def say() -> None:
            self._say("assistant", texts, path)
            texts.clear()

        for number, block in enumerate(blocks):
            at = f"{path}.content[{number}]"
            kind = _kind(block, at)
            if kind == "text":
                texts.append(TextPart(text_of(block, at)))
                continue
            say()
            match kind:
                case "thinking":
                    self._thought(block)
                case "tool_use":
                    name = self.catalog.names.flat(text_of(block, at, "name"))
                    self.catalog.show_deferred(name)  # found earlier, in messages that a summary may have replaced
                    self._add(Call(name, _arguments(block, at), id=text_of(block, at, "id")), at)
                case "mcp_tool_use":
                    flat = self.catalog.names.flat(text_of(block, at, "name"), text_of(block, at, "server_name"))
                    self._add(Call(flat, _arguments(block, at), id=text_of(block, at, "id")), at)
                case "mcp_tool_result":
                    told = "".join(part.text for part in self._result(block, at) if isinstance(part, TextPart))
                    error = tool_failure(told) if block.get("is_error") is True else None
                    words = call_words(told, error)
                    self._add(CallOutput(text_of(block, at, "tool_use_id"), (TextPart(words),)), at)
                case "server_tool_use" if str(block.get("name", "")).startswith("tool_search"):
                    id_ = self._searches[text_of(block, at, "id")] = search_id(len(self._searches))
                    self._add(Call(SEARCH_TOOL.name, _arguments(block, at), id=id_), at)
                case "server_tool_use" if block.get("name") == WEB_SEARCH:
                    self._add(Call(WEB_SEARCH, _arguments(block, at), id=text_of(block, at, "id")), at)
                case "web_search_tool_result":
                    words, results = read_result(block.get("content"), max(self.sources, default=0), self._unsealer)
                    self.sources |= {result.number: result for result in results}
                    self._add(CallOutput(text_of(block, at, "tool_use_id"), (TextPart(words),)), at)
                case "tool_search_tool_result":
                    inner = block.get("content")
                    references = inner.get("tool_references") if isinstance(inner, Mapping) else None
                    named = references if isinstance(references, list) else []
                    tools = [tool for one in named if (tool := self._referred(one, at)) is not None]
                    id_ = text_of(block, at, "tool_use_id")
                    self._add(CallOutput(self._searches.get(id_, id_), (TextPart(found_text(tools)),)), at)
                case "compaction":
                    self._add(Message("user", (TextPart(text_of(block, at, "content")),)), at)
                case _:
                    self.dropped.add(kind)
        say()

    def _system(self, blocks: Sequence[Mapping[str, Any]], path: str, *, is_first: bool) -> None:
        parts: list[Part] = []
        for number, block in enumerate(blocks):
            at = f"{path}.content[{number}]"
            match _kind(block, at):
                case "text":
                    parts.append(TextPart(text_of(block, at)))
                case "tool_addition":
                    parts += self._addition(block.get("tool"), f"{at}.tool")
                case "tool_removal":
                    parts += self._removal(block.get("tool"), f"{at}.tool")
                case kind:
                    self.dropped.add(kind)
        if told := _joined(parts):
            self._add(Message("system" if is_first and not self.told else "developer", told), path)

    # --- blocks ---

    def _parts(self, block: Mapping[str, Any], at: str) -> list[Part]:
        match kind := _kind(block, at):
            case "text":
                return [TextPart(text_of(block, at))]
            case "image":
                return [image_part(block, at)]
            case "document":
                return document_parts(block, at, self.dropped)
            case "search_result":
                return search_result_parts(block, at, self.dropped)
            case "tool_reference":
                return self._reference(block, at)
            case _:
                self.dropped.add(kind)
                return []

    def _result(self, block: Mapping[str, Any], at: str) -> tuple[Part, ...]:
        """A tool's output, with a prefix if the tool failed."""
        content = block.get("content")
        if content is None or isinstance(content, str):
            parts: list[Part] = [TextPart(content)] if content else []
        elif isinstance(content, list):
            parts = []
            for is_found, blocks in groupby(enumerate(content), lambda one: _is_reference(one[1])):
                if is_found:  # side by side, as one search has found them
                    tools = [self._referred(one, f"{at}.content[{n}]") for n, one in blocks]
                    offered = [tool for tool in tools if tool is not None]
                    parts.append(TextPart(found_schemas(offered) if offered else found_words(())))
                else:
                    parts += [part for n, one in blocks for part in self._parts(one, f"{at}.content[{n}]")]
        else:
            raise wrong_type(f"{at}.content", "str | array", content)
        parts = list(_joined(parts))
        if block.get("is_error") is True and _kind(block, at) == "tool_result":
            parts.insert(0, TextPart(_ERROR))
        return tuple(parts)

    def _thought(self, block: Mapping[str, Any]) -> None:
        """Read reasoning that is unsigned or was signed here. Other servers' reasoning is unreadable here."""
        signature, said = block.get("signature"), block.get("thinking")
        text = said if isinstance(said, str) else ""
        if isinstance(signature, str) and signature:
            packed = self._sealed.text(signature)
            if packed is None:
                self.dropped.add("thinking")
                return
            text = text or packed
        last = self.found[-1].item if self.found else None
        if text and isinstance(last, Reasoning):  # the blocks between them are not shown
            self.found[-1] = Found(Reasoning(f"{last.text}\n{text}"), "")
        elif text:
            self._add(Reasoning(text), "")

    def _reference(self, block: object, at: str) -> list[Part]:
        """The schema of a tool, for the position of its reference; none if it is not offered any more."""
        tool = self._referred(block, at)
        return [TextPart(found_schemas([tool]))] if tool is not None else []

    def _referred(self, block: object, at: str) -> FunctionTool | None:
        """The tool that a reference names, which can be called from here on; None for one that is not offered."""
        if not isinstance(block, Mapping):
            raise wrong_type(at, "object", block)
        name = block.get("tool_name") or block.get("name")
        if not isinstance(name, str):
            raise missing(f"{at}.tool_name")
        flat = self.catalog.names.flat(name)
        self.catalog.show_deferred(flat)
        self.removed.discard(flat)
        return self.catalog.shown_tool(flat)

    def _addition(self, given: object, at: str) -> list[Part]:
        """A tool that can be called from here on."""
        tool = _tool_object(given, at)
        if tool.get("type") == "tool_definition" and isinstance(tool.get("definition"), Mapping):
            definition = tool["definition"]
            read, _ = find_tool(definition, f"{at}.definition", self.catalog.rules)
            if not is_direct(definition):
                return []
            if not self.catalog.names.has(read.name, None):
                self.catalog.offer_tool(read, definition, f"{at}.definition", is_deferred=True)
            return self._reference({"tool_name": read.name}, at)
        return [part for name in self._referenced_names(tool, at) for part in self._reference({"tool_name": name}, at)]

    def _removal(self, given: object, at: str) -> list[Part]:
        names = self._referenced_names(_tool_object(given, at), at)
        self.removed |= {self.catalog.names.flat(name) for name in names}
        return [TextPart(f"These tools cannot be called any more: {', '.join(names)}.")] if names else []

    def _referenced_names(self, tool: Mapping[str, Any], at: str) -> list[str]:
        """The flat names of the tools that a reference means."""
        names = self.catalog.names
        match tool.get("type"):
            case "tool_reference":
                return [text_of(tool, at, "name")]
            case "mcp_tool_reference":
                return [names.flat(text_of(tool, at, "name"), text_of(tool, at, "server_name"))]
            case "mcp_toolset_reference":
                server = text_of(tool, at, "server_name")
                offered = (*self.catalog.tools, *self.catalog.deferred)
                return [one.name for one in offered if names.client(one.name).namespace == server]
            case kind:
                self.dropped.add(str(kind))
                return []

    def _say(self, role: Role, parts: Sequence[Part], path: str) -> None:
        """Text and media of a role: messages of one role that follow each other are one, whose texts are joined once
        all of them are there.
        """
        said = _joined(parts)
        last = self.found[-1].item if self.found else None
        if said and isinstance(last, Message) and last.role == role:
            self.found[-1] = Found(Message(role, (*last.parts, *said)), self.found[-1].path)
        elif said:
            self._add(Message(role, said), path)

    def _add(self, item: Item, path: str) -> None:
        self.found.append(Found(shared_item(item), path))


def _unbilled(text: str) -> str:
    return text.partition("\n")[2] if text.startswith(_BILLING) else text


def _blocks(message: MessageParam) -> Sequence[Mapping[str, Any]]:
    content = message.content
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _kind(block: object, at: str) -> str:
    if not isinstance(block, Mapping):
        raise wrong_type(at, "object", block)
    kind = block.get("type")
    if kind is None:
        raise missing(f"{at}.type")
    if not isinstance(kind, str):
        raise wrong_type(f"{at}.type", "str", kind)
    return kind


def _is_reference(block: object) -> bool:
    return isinstance(block, Mapping) and block.get("type") == "tool_reference"


def _tool_object(given: object, at: str) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise missing(at) if given is None else wrong_type(at, "object", given)
    return given


def _arguments(block: Mapping[str, Any], at: str) -> str:
    given = block.get("input")
    if given is None:
        return "{}"
    if not isinstance(given, Mapping):
        raise wrong_type(f"{at}.input", "object", given)
    return read_input(given)


def _joined(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Join adjacent texts, each on its own lines; blank ones are left out."""
    made: list[Part] = []
    for is_media, run in groupby(parts, lambda part: isinstance(part, MediaPart)):
        if is_media:
            made += run
            continue
        texts = [part.text for part in run if isinstance(part, TextPart) and part.text.strip()]
        lines = [text if text.endswith("\n") else f"{text}\n" for text in texts[:-1]]
        if texts:
            made.append(TextPart("".join((*lines, texts[-1]))))
    return tuple(made)


def _whole(found: Found) -> Found:
    """A message with adjacent texts joined."""
    item = found.item
    if not isinstance(item, Message) or len(item.parts) < _SEVERAL:
        return found
    return Found(shared_item(Message(item.role, _joined(item.parts))), found.path)


def read_messages(reader: MessageReader, messages: Sequence[MessageParam], given: Sequence[Any]) -> MessageReader:
    """The reader after all messages; `given` has them as JSON. Messages that an earlier request began with are not read
    again. Raises `RequestError` that names the field.
    """
    last_user = max([number for number, message in enumerate(messages) if message.role == "user"], default=-1)
    passing = {n for n, one in enumerate(messages) if one.role == "system" and one.clear_at == _UNTIL_USER}
    # A message that is shown until the user's next one differs from request to request.
    steady = min([number for number in passing if number >= last_user], default=len(messages))

    def read_on(before: MessageReader, given: Sequence[Any], start: int) -> MessageReader:
        reader = copied(before)
        for number in range(start, len(given)):
            if number not in passing or number >= last_user:
                reader.read(number, messages[number])
        reader.make_whole(len(reader.found) - 1)  # the next message may continue the last one
        return reader

    begin = given if steady == len(given) else type(given)(given[:steady])  # type: ignore[call-arg]
    read = copied(fold(begin, reader, read_on, (reader.catalog.cache_key, len(reader.told)), "messages"))
    if steady < len(given):
        read = read_on(read, given, steady)
    read.told = reader.told
    read.make_whole(len(read.found))
    return read
