"""The output items of a response while they are written: each knows its events and what it is in the end."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from callwright.openai_format.tool_names import ClientTool, ToolKind
from callwright.tolerant_json.codec import NotJsonError, decode
from callwright.wire.responses.input_items import sealed

__all__ = [
    "Emit",
    "OpenCall",
    "OpenItem",
    "OpenMcpCall",
    "OpenMessage",
    "OpenReasoning",
    "OpenSummary",
    "Status",
    "WholeCall",
]

Emit: TypeAlias = Callable[..., None]  # the type of an event and its fields
Status: TypeAlias = Literal["completed", "incomplete", "failed"]

# Calls whose arguments are fields of their item: the item's type, and the field they go into (`""` = each its own).
_WHOLE: Final[Mapping[ToolKind, tuple[str, str, str]]] = {
    "tool_search": ("tsc", "tool_search_call", "arguments"),
    "shell": ("sh", "shell_call", "action"),
    "local_shell": ("lsh", "local_shell_call", "action"),
    "apply_patch": ("apc", "apply_patch_call", "operation"),
}


class OpenItem:
    """An item that is being written. `item` is what it is so far."""

    def __init__(self, item: dict[str, Any], index: int, emit: Emit) -> None:
        self.item = item
        self._at = {"item_id": item["id"], "output_index": index}
        self._index = index
        self._emit = emit
        self._pieces: list[str] = []

    def begin(self) -> None:
        """Say that the item begins."""
        self._emit("output_item.added", output_index=self._index, item=dict(self.item))

    def add(self, text: str, logprobs: Sequence[Any] = ()) -> None:
        """More of its text."""
        raise NotImplementedError

    def end(self, status: Status) -> None:
        """Say that the item is over."""
        raise NotImplementedError

    def abandon(self) -> None:
        """The item stays as it is, and nothing more is said of it: what is `done` counts, whatever its status. Codex
        runs such a call, and keeps such a text when it asks again.
        """
        self._emit = _unsaid
        self.end("incomplete")

    def _done(self, status: Status) -> None:
        self.item["status"] = status
        self._emit("output_item.done", output_index=self._index, item=dict(self.item))


def _unsaid(_: str, **__: Any) -> None:
    pass


class OpenMessage(OpenItem):
    """Text for the user. `phase` is set when it is known: `commentary` before a call, else `final_answer`."""

    def __init__(self, id_: str, index: int, emit: Emit) -> None:
        item = {"id": id_, "type": "message", "status": "in_progress", "role": "assistant", "content": []}
        super().__init__(item, index, emit)
        self.phase: str | None = None
        self._logprobs: list[Any] = []

    def begin(self) -> None:
        """See `OpenItem`."""
        super().begin()
        self._emit("content_part.added", **self._at, content_index=0, part=_output_text("", []))

    def add(self, text: str, logprobs: Sequence[Any] = ()) -> None:
        """See `OpenItem`."""
        self._pieces.append(text)
        self._logprobs += logprobs
        self._emit("output_text.delta", **self._at, content_index=0, delta=text, logprobs=list(logprobs))

    def end(self, status: Status) -> None:
        """See `OpenItem`."""
        text = "".join(self._pieces)
        part = _output_text(text, self._logprobs)
        self._emit("output_text.done", **self._at, content_index=0, text=text, logprobs=self._logprobs)
        self._emit("content_part.done", **self._at, content_index=0, part=part)
        self.item["content"] = [part]
        if self.phase is not None:
            self.item["phase"] = self.phase
        self._done(status)


def _output_text(text: str, logprobs: list[Any]) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs}


class OpenReasoning(OpenItem):
    """Reasoning, as its own text. `event` names its deltas; `seals`: it also goes out as encrypted content."""

    def __init__(self, id_: str, index: int, emit: Emit, *, event: str = "reasoning_text", seals: bool = False) -> None:
        item: dict[str, Any] = {"id": id_, "type": "reasoning", "status": "in_progress", "summary": [], "content": []}
        super().__init__(item, index, emit)
        self._event = event
        self._seals = seals

    def begin(self) -> None:
        """See `OpenItem`."""
        super().begin()
        part = {"type": "reasoning_text", "text": ""}
        self._emit("content_part.added", **self._at, content_index=0, part=part)

    def add(self, text: str, logprobs: Sequence[Any] = ()) -> None:
        """See `OpenItem`."""
        self._pieces.append(text)
        self._emit(f"{self._event}.delta", **self._at, content_index=0, delta=text)

    def end(self, status: Status) -> None:
        """See `OpenItem`."""
        text = "".join(self._pieces)
        part = {"type": "reasoning_text", "text": text}
        self._emit(f"{self._event}.done", **self._at, content_index=0, text=text)
        self._emit("content_part.done", **self._at, content_index=0, part=part)
        self.item["content"] = [part]
        if self._seals:
            self.item["encrypted_content"] = sealed(text)
        self._done(status)


class OpenSummary(OpenItem):
    """Reasoning, where the client wants a summary: open models have none apart, so all of it is the summary."""

    def __init__(self, id_: str, index: int, emit: Emit, *, seals: bool = False) -> None:
        item: dict[str, Any] = {"id": id_, "type": "reasoning", "status": "in_progress", "summary": []}
        super().__init__(item, index, emit)
        self._seals = seals

    def begin(self) -> None:
        """See `OpenItem`."""
        super().begin()
        part = {"type": "summary_text", "text": ""}
        self._emit("reasoning_summary_part.added", **self._at, summary_index=0, part=part)

    def add(self, text: str, logprobs: Sequence[Any] = ()) -> None:
        """See `OpenItem`."""
        self._pieces.append(text)
        self._emit("reasoning_summary_text.delta", **self._at, summary_index=0, delta=text)

    def end(self, status: Status) -> None:
        """See `OpenItem`."""
        text = "".join(self._pieces)
        part = {"type": "summary_text", "text": text}
        self._emit("reasoning_summary_text.done", **self._at, summary_index=0, text=text)
        self._emit("reasoning_summary_part.done", **self._at, summary_index=0, part=part)
        self.item["summary"] = [part]
        if self._seals:
            self.item["encrypted_content"] = sealed(text)
        self._done(status)


class OpenCall(OpenItem):
    """A call of a function or of a custom tool, whose arguments or input flow."""

    def __init__(self, id_: str, call_id: str, tool: ClientTool, index: int, emit: Emit) -> None:
        self._tool = tool
        is_custom = tool.kind == "custom"
        self._field = "input" if is_custom else "arguments"
        self._event = "custom_tool_call_input" if is_custom else "function_call_arguments"
        item = {
            "id": id_,
            "type": "custom_tool_call" if is_custom else "function_call",
            "status": "in_progress",
            "call_id": call_id,
            "name": tool.name,
            self._field: "",
        }
        if tool.namespace:
            item["namespace"] = tool.namespace
        super().__init__(item, index, emit)

    def add(self, text: str, logprobs: Sequence[Any] = ()) -> None:
        """See `OpenItem`."""
        self._pieces.append(text)
        self._emit(f"{self._event}.delta", **self._at, delta=text)

    def end(self, status: Status) -> None:
        """See `OpenItem`."""
        text = "".join(self._pieces)
        name = {} if self._field == "input" else {"name": self._tool.name}
        self._emit(f"{self._event}.done", **self._at, **name, **{self._field: text})
        self.item[self._field] = text
        self._done(status)


class OpenMcpCall(OpenItem):
    """A call of an MCP tool, which is run here: its arguments flow, and it stays open until it is answered."""

    def __init__(self, id_: str, tool: ClientTool, index: int, emit: Emit, approval_request_id: str | None) -> None:
        item = {
            "id": id_,
            "type": "mcp_call",
            "status": "in_progress",
            "server_label": tool.namespace,
            "name": tool.name,
            "arguments": "",
            "approval_request_id": approval_request_id,
            "output": None,
            "error": None,
        }
        super().__init__(item, index, emit)

    def begin(self) -> None:
        """See `OpenItem`."""
        super().begin()
        self._emit("mcp_call.in_progress", **self._at)

    def add(self, text: str, logprobs: Sequence[Any] = ()) -> None:
        """See `OpenItem`."""
        self._pieces.append(text)
        self._emit("mcp_call_arguments.delta", **self._at, delta=text)

    def written(self) -> None:
        """Its arguments are whole."""
        self.item["arguments"] = "".join(self._pieces)
        self._emit("mcp_call_arguments.done", **self._at, arguments=self.item["arguments"])

    def answer(self, output: str | None, error: Mapping[str, Any] | None) -> None:
        """Say what came of it."""
        self.item |= {"output": output, "error": error}
        status: Status = "completed" if error is None else "failed"
        self._emit(f"mcp_call.{status}", **self._at)
        self._done(status)

    def end(self, status: Status) -> None:
        """See `OpenItem`: nobody has answered it."""
        self.item["arguments"] = "".join(self._pieces)
        self._done(status)


class WholeCall(OpenItem):
    """A call of a built-in kind, whose arguments are fields of its item: it goes out when it is whole."""

    def __init__(self, new_id: Callable[[str], str], call_id: str, tool: ClientTool, index: int, emit: Emit) -> None:
        prefix, type_, self._field = _WHOLE[tool.kind]
        self._tool = tool
        self._new_id = new_id
        item = {"id": new_id(prefix), "type": type_, "status": "in_progress", "call_id": call_id, self._field: {}}
        if tool.kind == "tool_search":
            item["execution"] = "client"
        super().__init__(item, index, emit)

    def begin(self) -> None:
        """Nothing is said before it is whole."""

    def add(self, text: str, logprobs: Sequence[Any] = ()) -> None:
        """See `OpenItem`."""
        self._pieces.append(text)

    def end(self, status: Status) -> None:
        """See `OpenItem`. Arguments that are no object make it a call of a function, as which it was offered."""
        text = "".join(self._pieces)
        try:
            value = decode(text)
        except NotJsonError:
            value = None
        if not isinstance(value, dict):
            call = OpenCall(self._new_id("fc"), self.item["call_id"], self._tool, self._index, self._emit)
            call.begin()
            call.add(text)
            call.end(status)
            self.item = call.item
            return
        super().begin()
        given = {key: it for key, it in value.items() if it is not None}
        if self._tool.kind == "local_shell":
            given = {"type": "exec", "env": {}, **given}
        self.item[self._field] = given
        self._done(status)
