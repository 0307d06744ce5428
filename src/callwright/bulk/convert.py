"""One transcript in three forms: messages of Chat Completions, items of the Responses API, the text of a dialect.

To a dialect it becomes the whole prompt, as the model would see it. Data sets in a dialect have the calls of an
assistant in its text: they are parsed out of it, and each result gets the id of its call. Custom tools and namespaces
become functions, as models know them.
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
from callwright.events import FinishReason
from callwright.openai_format.messages import read_conversation, write_messages
from callwright.openai_format.tool_catalog import ToolCatalog
from callwright.reading.collect import Turn
from callwright.tolerant_json.codec import encode
from callwright.wire.pairing import paired
from callwright.wire.responses.input_items import InputItemReader

Json: TypeAlias = dict[str, Any]
CHAT: Final = "chat"
RESPONSES: Final = "responses"
_RESULT_BEGIN: Final = "<tool_response>"
_RESULT_END: Final = "</tool_response>"


def converted(row: Mapping[str, Any], source: str, target: str, options: Mapping[str, Any]) -> Json:
    """The transcript of a row in the form `target`: `messages`, or `input` (`tools` in that API's shape), or `text`.

    Raises `RequestError` for a transcript that cannot be read.
    """
    read = _from_items(row) if source == RESPONSES else _from_messages(row, source)
    if target == CHAT:
        tools = [_without_strict(tool.as_openai()) for tool in read.tools]
        return {"messages": write_messages(read), **_some(tools)}
    if target == RESPONSES:
        tools = [_flat(tool) for tool in read.tools]
        return {"input": [entry for item in read.items for entry in _entries(item)], **_some(tools)}
    checked = read_options(target, {"add_generation_prompt": False, **options})
    return {"text": get_dialect(target).render(read, checked).text}


def _some(tools: Sequence[Json]) -> Json:
    """The field of tools, if there are any: OpenAI's APIs reject an empty list."""
    return {"tools": tools} if tools else {}


def _from_messages(row: Mapping[str, Any], source: str) -> Conversation:
    tools, dialect = row.get("tools"), None if source == CHAT else source
    given = row["messages"] if dialect is None else list(_with_results(row["messages"]))
    return read_conversation([message for message, _ in read_turns(given, dialect, tools=tools)], tools, None)


def _with_results(messages: Sequence[Any]) -> Iterator[Any]:
    """The messages, with one tool message for each result that a text has in tags. In data sets that follow the prompts
    of Hermes and Qwen these are in a tool message, or in a user message after the calls.
    """
    before: object = None
    for message in messages:
        role = message.get("role") if isinstance(message, Mapping) else None
        may_be = role == "tool" or (role == "user" and before in ("assistant", "tool"))
        results = _results(_text(message.get("content")) or "") if may_be else []
        yield from ({**message, "role": "tool", "content": result} for result in results)
        if not results:
            yield message
        before = "tool" if results else role


def _results(text: str) -> list[str]:
    """The results in the tags of a text that contains nothing else."""
    *parts, rest = (part.strip() for part in text.split(_RESULT_END))
    if rest or not all(part.startswith(_RESULT_BEGIN) for part in parts):
        return []
    return [part.removeprefix(_RESULT_BEGIN).removeprefix("\n") for part in parts]


def read_turns(
    messages: Sequence[Any], dialect: str | None, ends: Mapping[int, str] = {}, **asked: Any
) -> Iterator[tuple[Json, Turn | None]]:
    """Return the messages, with calls parsed out of an assistant's text and their ids in the results, and how the text
    of each was parsed. Without a dialect no text is parsed. `ends`: the reasons why messages ended, by their places;
    `asked` is for `callwright.parse`.
    """
    waiting: list[str] = []
    for number, message in enumerate(messages):
        if not isinstance(message, Mapping):
            raise RequestError(f"Expected an object, got {type(message).__name__}.", param=f"messages[{number}]")
        if message.get("role") == "assistant":
            text, turn = _text(message.get("content")), None
            made = {**message}
            calls = [_with_text(call) for call in message.get("tool_calls") or ()]
            if dialect is not None and text:
                reason: FinishReason = "length" if ends.get(number) == "length" else "stop"
                turn = parse(text, dialect=dialect, **{"start": "message", "finish_reason": reason, **asked})
                read = turn.to_chat_message()
                made |= read
                calls += [{**call, "id": None} for call in read.get("tool_calls", ())]
            if calls:
                for place, call in enumerate(calls):
                    call["id"] = call.get("id") or f"call_{number}_{place}"
                made["tool_calls"] = calls
                waiting = [call["id"] for call in calls]
            yield made, turn
        elif message.get("role") == "tool" and not message.get("tool_call_id"):
            yield {**message, "tool_call_id": waiting.pop(0) if waiting else ""}, None
        else:
            yield dict(message), None


def _text(content: object) -> str | None:
    """The content of a message, if it is nothing but text."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else None
    parts = [part.get("text") if isinstance(part, Mapping) and part.get("type") == "text" else None for part in content]
    return "".join(map(str, parts)) if all(isinstance(part, str) for part in parts) else None


def _with_text(call: Any) -> Json:
    """A call whose arguments are JSON text: data sets have them as values, too."""
    if not isinstance(call, Mapping):
        raise RequestError(f"Expected an object, got {type(call).__name__}.", param="tool_calls")
    function = call.get("function")
    if not isinstance(function, Mapping) or isinstance(function.get("arguments"), str):
        return dict(call)
    arguments = encode(function.get("arguments") or {}).decode()
    return {**call, "type": "function", "function": {**function, "arguments": arguments}}


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
    """A tool in the Responses shape, with an explicit `strict`: the default there is true."""
    return {"type": "function", **tool.as_openai()["function"], "strict": bool(tool.strict)}


def _without_strict(tool: Json) -> Json:
    """A tool without a false `strict`, which is the default."""
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
