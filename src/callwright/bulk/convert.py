"""One transcript in three forms: messages of Chat Completions, items of the Responses API, the text of a dialect.

To a dialect it becomes the whole prompt, as the model would see it. From a dialect come data sets in which the calls of
an assistant stand in what it said: they are told apart, and each result gets the id of its call. Custom tools and
namespaces become functions, as models know them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, assert_never

from callwright.api import parse
from callwright.conversation import (
    Call,
    CallOutput,
    Conversation,
    FunctionTool,
    Item,
    MediaPart,
    Message,
    Part,
    Reasoning,
    TextPart,
)
from callwright.dialects.base import get_dialect, read_options
from callwright.errors import RequestError
from callwright.openai_format.messages import read_conversation, write_messages
from callwright.openai_format.tool_catalog import ToolCatalog
from callwright.wire.pairing import paired
from callwright.wire.responses.input_items import InputItemReader

Json: TypeAlias = dict[str, Any]
CHAT: Final = "chat"
RESPONSES: Final = "responses"


def converted(row: Mapping[str, Any], source: str, target: str, options: Mapping[str, Any]) -> Json:
    """A row with its transcript in the form `target`: `messages`, or `input` (`tools` in that API's shape), or `text`.

    Raises `RequestError` for a transcript that cannot be read.
    """
    others = {key: value for key, value in row.items() if key not in ("messages", "input", "instructions", "tools")}
    return others | _written(row, source, target, options)


def _written(row: Mapping[str, Any], source: str, target: str, options: Mapping[str, Any]) -> Json:
    conversation = _from_items(row) if source == RESPONSES else _from_messages(row, source)
    if target == CHAT:
        tools = [_without_strict(tool.as_openai()) for tool in conversation.tools]
        return {"messages": write_messages(conversation), "tools": tools}
    if target == RESPONSES:
        tools = [_flat(tool) for tool in conversation.tools]
        return {"input": [entry for item in conversation.items for entry in _entries(item)], "tools": tools}
    read = read_options(target, {"add_generation_prompt": False, **options})
    return {"text": get_dialect(target).render(conversation, read).text}


def _from_messages(row: Mapping[str, Any], source: str) -> Conversation:
    messages, tools = row.get("messages"), row.get("tools")
    if not isinstance(messages, list):
        raise RequestError("Expected a list.", param="messages")
    if source != CHAT:
        messages = list(_told_apart(messages, source, tools))
    return read_conversation(messages, tools, None)


def _told_apart(messages: Sequence[Any], dialect: str, tools: Any) -> Iterator[Json]:
    """The messages with the calls in what assistants said as calls, and results with the ids of theirs."""
    waiting: list[str] = []
    for number, message in enumerate(messages):
        if not isinstance(message, Mapping):
            raise RequestError(f"Expected an object, got {type(message).__name__}.", param=f"messages[{number}]")
        if message.get("role") == "assistant" and isinstance(message.get("content"), str):
            made = parse(message["content"], dialect=dialect, tools=tools, start="message").to_chat_message()
            waiting = [f"call_{number}_{place}" for place in range(len(made.get("tool_calls", ())))]
            for call, id_ in zip(made.get("tool_calls", ()), waiting, strict=True):
                call["id"] = id_
            yield {**message, **made}
        elif message.get("role") == "tool" and "tool_call_id" not in message:
            yield {**message, "tool_call_id": waiting.pop(0) if waiting else ""}
        else:
            yield dict(message)


def _from_items(row: Mapping[str, Any]) -> Conversation:
    offer = ToolCatalog()
    offer.add(row.get("tools"))
    reader = InputItemReader(offer)
    given = row.get("input")
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    if not isinstance(given, list):
        raise RequestError("Expected a list, or a text.", param="input")
    reader.read(given, "input")
    items = paired(reader.found, mend=False)
    if row.get("instructions"):
        items = (Message("system", (TextPart(str(row["instructions"])),)), *items)
    return Conversation(items=items, tools=offer.tools)


def _flat(tool: FunctionTool) -> Json:
    """A tool in the Responses shape, in which `strict` has to be told: there it would be true."""
    return {"type": "function", **tool.as_openai()["function"], "strict": bool(tool.strict)}


def _without_strict(tool: Json) -> Json:
    """A tool without a `strict` that says nothing."""
    function = {key: value for key, value in tool["function"].items() if key != "strict" or value}
    return {**tool, "function": function}


def _entries(item: Item) -> list[Json]:
    """One item in the words of the Responses API."""
    match item:
        case Message(role="assistant"):
            return [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": item.text}]}]
        case Message(role=role, parts=parts):
            return [{"type": "message", "role": role, "content": list(map(_part, parts))}]
        case Reasoning(text):
            return [{"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": text}]}]
        case Call(name=name, arguments=arguments, id=id_):
            return [{"type": "function_call", "call_id": id_, "name": name, "arguments": arguments}]
        case CallOutput(call_id=id_, parts=parts):
            texts = all(isinstance(part, TextPart) for part in parts)
            output = "".join(part.text for part in parts if isinstance(part, TextPart))
            return [
                {"type": "function_call_output", "call_id": id_, "output": output if texts else list(map(_part, parts))}
            ]
        case _:
            assert_never(item)


def _part(part: Part) -> Json:
    """A part of a message: text, image or file."""
    if isinstance(part, TextPart):
        return {"type": "input_text", "text": part.text}
    return _media(part)


def _media(part: MediaPart) -> Json:
    value = part.value
    match value.get("type"):
        case "image_url":
            return {"type": "input_image", "image_url": value["image_url"]["url"]}
        case "file":
            return {"type": "input_file", **value["file"]}
    raise RequestError(f"The Responses API has no part of type '{value.get('type')}'.", param="messages")
