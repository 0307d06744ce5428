"""Read items of the Responses API as a conversation, including items that clients bring from other servers.

Calls and outputs are paired by their call_id only; ids and states of items mean nothing. Items that only their own
server could run again are dropped or described in text, never refused.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from callwright.calls.custom_tools import input_arguments
from callwright.calls.history import late_output
from callwright.calls.tool_search import found_text, search_id
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
    TextPart,
    parts_text,
    shared_item,
)
from callwright.errors import RequestError
from callwright.memo.prefixes import fold
from callwright.openai_format.errors import missing, quote_list, type_error, wrong_type
from callwright.openai_format.tool_catalog import ToolCatalog
from callwright.tolerant_json.codec import encode
from callwright.wire.pairing import Found, copied
from callwright.wire.responses import item_types as types
from callwright.wire.responses.compaction import kept_beside_summary, unpack
from callwright.wire.responses.output_schema import unfit_words
from callwright.wire.sealed import SealedTexts
from callwright.wire.searches import Unsealer
from callwright.wire.server_words import NOT_OFFERED, WEB_SEARCH_GONE, call_words, rejected_words

_INPUT_PARTS: Final = ("input_text", "input_image", "input_file", "input_audio")
_OUTPUT_PARTS: Final = ("output_text", "refusal")
_ROLES: Final = ("assistant", "system", "developer", "user")
# History of tools that ran elsewhere, which the gateway cannot continue.
_DROPPED: Final = frozenset(
    {
        *("file_search_call", "code_interpreter_call", "image_generation_call", "computer_call"),
        *("computer_call_output", "mcp_list_tools", "program", "program_output"),
    }
)


# Items of these types are read without their id.
READ_WITHOUT_ID: Final = (
    *("message", "reasoning", "function_call", "function_call_output"),
    *("custom_tool_call", "custom_tool_call_output"),
)


class InputItemReader:
    """Reads items in order: `found` are those of the conversation.

    Tools in items join the `offer`. `effort` and `format` are those of the latest configuration update;
    `compacts`: the input ends in a request to compact the conversation. `approved` are approved calls of MCP tools
    that have not run yet, by the id of their approval request; a placeholder is their output. `listed` are the labels
    of the MCP servers whose tools an earlier response has listed. `sources` are the results of web searches, by their
    number.
    """

    def __init__(self, offer: ToolCatalog) -> None:
        self.found: list[Found] = []
        self.effort: str | None = None
        self.format: dict[str, Any] | None = None
        self.compacts = False
        self.offer = offer
        self._ids: set[str] = set()  # of the items of the request
        self._searched: list[str] = []  # ids of searches without an output
        self._searches = 0
        self.approved: dict[str, Call] = {}
        self.listed: set[str] = set()
        self.sources: dict[int, SearchResult] = {}
        self._unsealer = Unsealer()
        self._sealed = SealedTexts()
        self._waiting: dict[str, Call] = {}  # calls without a decision
        self._decided: set[str] = set()
        self._called: dict[str, str] = {}  # flat names of tools, by the ids of their calls
        self._summed_up: set[str] = set()  # ids of calls that a summary replaces

    @property
    def swells(self) -> bool:
        """Whether a sealed text was much longer than the bytes of the request that hold it."""
        return self._sealed.swells or self._unsealer.swells

    def read(self, items: Sequence[Any], param: str, start: int = 0, *, again: bool = False) -> None:
        """Read the items from index `start`. Raises `RequestError` that names the field.

        `again`: they were read before, with the requests that they were part of.
        """
        for number in range(start, len(items)):
            given, path = items[number], f"{param}[{number}]"
            item = _converted(given, path)
            if item is None:
                self._list(given)
                continue
            if item.id and not again and not isinstance(item, types.Reference):
                if item.id in self._ids:
                    raise RequestError(
                        f"Duplicate item found with id {item.id}. Remove duplicate items from your input and try "
                        "again.",
                        param=param,
                    )
                self._ids.add(item.id)
            before = len(self.found)
            self._read(item, path)
            self.compacts = isinstance(item, types.CompactionTrigger)
            if len(self.found) > before:
                self.found[before:] = map(_shared, self.found[before:])
        if again:
            self.approved = {}

    def finish(self) -> None:
        """End the input: calls without a decision were not approved."""
        for id_ in self._waiting:
            self._output(id_, (TextPart(rejected_words(None)),), "input")
        self._waiting = {}

    def _list(self, given: Any) -> None:
        if given["type"] == "mcp_list_tools" and not given.get("error"):
            self.listed.add(str(given.get("server_label")))

    def _read(self, item: types.Tagged, path: str) -> None:
        if _is_by_model(item):
            self.approved = {}  # the model has continued without them
        match item:
            case types.Message():
                self._message(item, path)
            case types.Reasoning():
                if thought := _thought(item, self._sealed):
                    self._add(Reasoning(thought), path)
            case types.FunctionCall() | types.CustomCall() | types.SearchCall():
                self._read_call(item, path)
            case types.FunctionOutput() | types.CustomOutput() | types.SearchOutput():
                self._read_output(item, path)
            case types.ShellCall() | types.LocalShellCall() | types.PatchCall():
                self._read_shell_call(item, path)
            case types.ShellOutput() | types.LocalShellOutput() | types.PatchOutput():
                self._read_shell_output(item, path)
            case types.McpRequest() | types.McpResponse() | types.McpCall():
                self._read_mcp(item, path)
            case types.WebSearchCall():
                self._web_search(item, path)
            case types.AdditionalTools(tools=tools):
                self._add_tools(tools, path)
            case types.Compaction(encrypted_content=content):
                self._compaction(content, path)
            case types.Update(reasoning=reasoning, text=text):
                self.effort = (reasoning and reasoning.effort) or self.effort
                self.format = (text and text.format) or self.format
            case types.Reference(id=id_):
                raise missing(f"{path}.id") if id_ is None else _not_found(id_)

    def _read_call(self, item: types.FunctionCall | types.CustomCall | types.SearchCall, path: str) -> None:
        if isinstance(item, types.SearchCall):
            id_ = item.call_id or search_id(self._searches)
            self._searches += 1
            self._searched.append(id_)
            self._call(id_, "tool_search", _json(item.arguments), path, "tool search call")
            return
        flat, complete = self.offer.names.flat(item.name, item.namespace), item.status != "incomplete"
        is_custom = isinstance(item, types.CustomCall)
        arguments = input_arguments(item.input) if isinstance(item, types.CustomCall) else item.arguments
        words = "custom tool call" if is_custom else "function call"
        self._call(item.call_id, flat, arguments, path, words, complete=complete, is_async=item.is_async)

    def _read_output(self, item: types.FunctionOutput | types.CustomOutput | types.SearchOutput, path: str) -> None:
        match item:
            case types.FunctionOutput(call_id=None, name=None):
                raise missing(f"{path}.call_id")
            case types.FunctionOutput(call_id=None, name=name, output=output):
                parts = _output_parts(output, path)
                self._add(
                    Message("user", (TextPart(f"An output of the tool {name}, which nobody called:\n"), *parts)), path
                )
            case types.FunctionOutput(call_id=str(id_), output=output):
                parts = _output_parts(output, path)
                self._output(id_, (*parts, *self._unfit(id_, parts)), path)
            case types.CustomOutput(call_id=id_, output=output):
                self._output(id_, _output_parts(output, path), path, "custom tool call")
            case types.SearchOutput(tools=tools):
                id_ = item.call_id or next(iter(self._searched), path)
                self._searched = [other for other in self._searched if other != id_]
                found = self._of_names(self.offer.load(tools, f"{path}.tools"))
                self._output(id_, (TextPart(found_text(found)),), path, "tool search call")

    def _read_shell_call(self, item: types.ShellCall | types.LocalShellCall | types.PatchCall, path: str) -> None:
        if isinstance(item, types.PatchCall):
            self._call(item.call_id, "apply_patch", _json(item.operation), path)
            return
        name = "shell" if isinstance(item, types.ShellCall) else "local_shell"
        self._call(item.call_id, name, _json({key: it for key, it in item.action.items() if key != "type"}), path)

    def _read_shell_output(
        self, item: types.ShellOutput | types.LocalShellOutput | types.PatchOutput, path: str
    ) -> None:
        id_ = item.call_id or item.id
        if id_ is None:
            raise missing(f"{path}.call_id")
        output = "" if item.output is None else _json(item.output)
        self._output(id_, (TextPart(output or item.status or ""),), path)

    def _read_mcp(self, item: types.McpRequest | types.McpResponse | types.McpCall, path: str) -> None:
        if isinstance(item, types.McpResponse):
            self._decide(item.approval_request_id, item, path)
            return
        flat, id_ = self.offer.names.flat(item.name, item.server_label), item.id or path
        if isinstance(item, types.McpRequest):
            self._waiting[id_] = call = Call(flat, item.arguments, id=id_)
            self._add(call, path)
            return
        output, request = call_words(item.output, item.error), item.approval_request_id
        if request is None or not self._settle(request, output):
            self._call(id_, flat, item.arguments, path)
            self._output(id_, (TextPart(output),), path)

    def _add_tools(self, tools: Any, path: str) -> None:
        """Offer more tools, and show them to the model."""
        before = {tool.openai_json for tool in self.offer.tools}
        self.offer.add(tools, f"{path}.tools")
        if added := [tool for tool in self.offer.tools if tool.openai_json not in before]:
            self._add(Message("developer", (TextPart(found_text(added)),)), path)

    def _web_search(self, item: types.WebSearchCall, path: str) -> None:
        """Read a web search as the model saw it, or as far as another server describes it."""
        action = item.action if isinstance(item.action, Mapping) else {}
        query = action.get("query")
        if not isinstance(query, str):  # a page was opened, or searched: nothing here does that
            return
        found = self._unsealer.search(item.encrypted_content)
        if found is not None:
            self.sources |= {result.number: result for result in found.results}
        id_ = item.id or path
        self._call(id_, WEB_SEARCH, _json({"query": query}), path, "web search call")
        self._output(id_, (TextPart(WEB_SEARCH_GONE if found is None else found.model_text),), path, "web search call")

    def _of_names(self, names: Sequence[str]) -> list[FunctionTool]:
        """The tools of these flat names that can be called."""
        known = {tool.name: tool for tool in self.offer.tools}
        return [known[name] for name in names if name in known]

    def _add(self, item: Item, path: str, words: str = "function call") -> None:
        self.found.append(Found(item, path, words))

    def _call(
        self,
        id_: str,
        name: str,
        arguments: str,
        path: str,
        words: str = "function call",
        *,
        complete: bool = True,
        is_async: bool | None = None,
    ) -> None:
        self._called[id_] = name
        if is_async is None:
            is_async = self.offer.names.client(name).is_async
        self.found.append(Found(Call(name, arguments, id=id_, complete=complete), path, words, is_async))

    def _unfit(self, id_: str, parts: Sequence[Part]) -> tuple[Part, ...]:
        """A note to the model after an output that does not match its tool's output schema."""
        tool = self.offer.shown_tool(self._called.get(id_, ""))
        if tool is None or tool.output_schema is None or not all(isinstance(part, TextPart) for part in parts):
            return ()
        words = unfit_words(tool, parts_text(tuple(parts)))
        return () if words is None else (TextPart(words),)

    def _output(self, id_: str, parts: tuple[Part, ...], path: str, words: str = "function call") -> None:
        if id_ in self._summed_up:
            self._add(late_output(parts), path)
            return
        self._add(CallOutput(id_, parts), path, words)

    def _decide(self, id_: str, item: types.McpResponse, path: str) -> None:
        """Read a decision on a call."""
        call = self._waiting.pop(id_, None)
        if call is None and not self.offer.has_servers:
            return  # for another server
        if call is None:
            raise RequestError(
                f"Invalid '{path}.approval_request_id': no 'mcp_approval_request' with id '{id_}' waits for an answer.",
                param=f"{path}.approval_request_id",
                code="invalid_value",
            )
        self._decided.add(id_)
        if item.approve:
            self.approved[id_] = call
        self._output(id_, (TextPart(NOT_OFFERED if item.approve else rejected_words(item.reason)),), path)

    def _settle(self, id_: str, told: str) -> bool:
        """Set the output of an approved call. False if there is no such call."""
        for number, each in enumerate(self.found if id_ in self._decided else ()):
            if isinstance(each.item, CallOutput) and each.item.call_id == id_:
                self.found[number] = msgspec.structs.replace(each, item=CallOutput(id_, (TextPart(told),)))
                self.approved.pop(id_, None)
                return True
        return False

    def _message(self, item: types.Message, path: str) -> None:
        if item.role not in _ROLES:
            raise RequestError(
                f"Invalid value: '{item.role}'. Supported values are: {quote_list(_ROLES)}.",
                param=f"{path}.role",
                code="invalid_value",
            )
        known = _OUTPUT_PARTS if item.role == "assistant" else _INPUT_PARTS
        self._add(Message(item.role, _parts(item.content, known, f"{path}.content")), path)  # type: ignore[arg-type]

    def _compaction(self, content: str, path: str) -> None:
        summary = unpack(content, self._sealed)
        if summary is None:
            raise RequestError(
                f"Invalid '{path}.encrypted_content': this compaction was not made here, so it cannot be read. Send "
                "the items that it stands for.",
                param=f"{path}.encrypted_content",
                code="invalid_value",
            )
        told = Found(Message("user", (TextPart(summary.text),)), path)
        if summary.stands_for_all:
            numbers, before = kept_beside_summary([each.item for each in self.found])
            kept = [self.found[number] for number in numbers]
            behind = {each.item.id for each in kept if isinstance(each.item, Call)}
            self._summed_up |= {each.item.id for each in self.found if isinstance(each.item, Call)} - behind
            self.found = [*kept[:before], told, *kept[before:]]
            return
        if self.compacts:  # it sums up everything before it; the user's messages remain
            self.found = [
                each for each in self.found if isinstance(each.item, Message) and each.item.role != "assistant"
            ]
        self.found.append(told)


def _converted(given: Any, path: str) -> types.Tagged | None:
    """An item of a known type; None for one that is dropped."""
    if not isinstance(given, Mapping):
        raise wrong_type(path, "object", given)
    kind = given.get("type")
    if kind is None:
        kind = "item_reference" if given.keys() == {"id"} else "message"
        given = {**given, "type": kind}
    if not isinstance(kind, str):
        raise wrong_type(f"{path}.type", "str", kind)
    if kind in _DROPPED:
        return None
    if kind not in types.BY_TYPE:
        raise RequestError(
            f"Invalid value: '{kind}'. Supported values are: {quote_list(sorted([*types.BY_TYPE, *_DROPPED]))}.",
            param=f"{path}.type",
            code="invalid_value",
        )
    try:
        return msgspec.convert(given, types.BY_TYPE[kind])
    except msgspec.ValidationError as error:
        raise type_error(error, path, given) from error


def _is_by_model(item: types.Tagged) -> bool:
    """Whether the model wrote an item; those of tools that ran elsewhere do not count."""
    if isinstance(item, types.Message):
        return item.role == "assistant"
    return isinstance(item, types.Reasoning | types.FunctionCall | types.CustomCall | types.McpRequest)


def _not_found(id_: str) -> RequestError:
    return RequestError(
        f"Item with id '{id_}' not found. Items are not persisted when store is set to false.",
        param="input",
        status=404,
    )


def _thought(item: types.Reasoning, sealed: SealedTexts) -> str:
    """The text of a reasoning item: its content, its sealed text, or its summary."""
    content = "\n".join(part.text for part in item.content or ())
    if not content and item.encrypted_content:
        content = sealed.text(item.encrypted_content) or ""
    return content or "\n\n".join(part.text for part in item.summary or ())


def _output_parts(output: str | list[types.Part], path: str) -> tuple[Part, ...]:
    return _parts(output, (*_INPUT_PARTS, "output_text"), f"{path}.output")


def _parts(content: str | list[types.Part], known: Sequence[str], path: str) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (TextPart(content),) if content else ()
    return tuple(_part(part, known, f"{path}[{number}]") for number, part in enumerate(content))


def _part(part: types.Part, known: Sequence[str], path: str) -> Part:
    if part.type not in known:
        raise RequestError(
            f"Invalid value: '{part.type}'. Supported values are: {quote_list(known)}.",
            param=f"{path}.type",
            code="invalid_value",
        )
    if part.type in ("input_text", "output_text", "refusal"):
        text = part.refusal if part.type == "refusal" else part.text
        if text is None:
            raise missing(f"{path}.{'refusal' if part.type == 'refusal' else 'text'}")
        return TextPart(text)
    if part.type == "input_image" and part.image_url:
        image = {"url": part.image_url} | ({"detail": part.detail} if part.detail not in (None, "auto") else {})
        return MediaPart({"type": "image_url", "image_url": image}, path)
    if part.type == "input_audio":
        if part.input_audio is None:
            raise missing(f"{path}.input_audio")
        return MediaPart({"type": "input_audio", "input_audio": part.input_audio}, path)
    if part.type == "input_file" and part.file_data:
        file = {"file_data": part.file_data} | ({"filename": part.filename} if part.filename else {})
        return MediaPart({"type": "file", "file": file}, path)
    field = next((name for name in ("file_id", "file_url") if getattr(part, name)), None)
    wanted = "image_url" if part.type == "input_image" else "file_data"
    if field is None:
        raise missing(f"{path}.{wanted}")
    raise RequestError(
        f"Unsupported parameter: '{path}.{field}': this gateway keeps and fetches no files. Send the content in "
        f"'{wanted}' as a data URL.",
        param=f"{path}.{field}",
        code="unsupported_parameter",
    )


def _json(value: Any) -> str:
    return value if isinstance(value, str) else encode(value).decode()


def read_along(reader: InputItemReader, items: Sequence[Any], given: Sequence[Any]) -> InputItemReader:
    """The reader after all items of a request; `given` has them as JSON. A prefix shared with an earlier request is
    not read again. Raises `RequestError` that names the field.
    """

    def read_on(before: InputItemReader, items: Sequence[Any], start: int) -> InputItemReader:
        reader = copied(before)
        reader.read(items, "input", start)
        return reader

    same = next((number for number, pair in enumerate(zip(items, given, strict=False)) if pair[0] is not pair[1]), None)
    steady = min(len(items), len(given)) if same is None else same
    begin = given if steady == len(given) else type(given)(given[:steady])  # type: ignore[call-arg]
    read = copied(fold(begin, reader, read_on, reader.offer.cache_key, "input"))
    read.read(items, "input", steady)
    return read


def _shared(found: Found) -> Found:
    item = shared_item(found.item)
    return found if item is found.item else msgspec.structs.replace(found, item=item)
