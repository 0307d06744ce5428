"""The messages of a Chat Completions request, as they are decoded."""

from typing import TypeAlias

import msgspec


class ContentPart(msgspec.Struct):
    type: str
    text: str | None = None
    refusal: str | None = None


Content: TypeAlias = str | list[ContentPart]


class TextMessage(msgspec.Struct, tag_field="role"):
    content: Content
    name: str | None = None


class SystemMessage(TextMessage, tag="system"):
    pass


class DeveloperMessage(TextMessage, tag="developer"):
    pass


class UserMessage(TextMessage, tag="user"):
    pass


class CallFunction(msgspec.Struct):
    """`name`: models call without one, and clients send such a call back."""

    name: str | None
    arguments: str = ""


class CallCustom(msgspec.Struct):
    name: str
    input: str = ""


class ToolCall(msgspec.Struct):
    function: CallFunction | None = None
    custom: CallCustom | None = None
    id: str | None = None
    type: str = "function"


class AssistantMessage(msgspec.Struct, tag_field="role", tag="assistant"):
    content: Content | None = None
    refusal: str | None = None
    name: str | None = None
    tool_calls: list[ToolCall] | None = None
    function_call: CallFunction | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None


class ToolMessage(msgspec.Struct, tag_field="role", tag="tool"):
    content: Content
    tool_call_id: str


class FunctionMessage(msgspec.Struct, tag_field="role", tag="function"):
    """The output of the API before tools: it names the function and has no id."""

    name: str
    content: str | None = None


ChatMessage: TypeAlias = (
    SystemMessage | DeveloperMessage | UserMessage | AssistantMessage | ToolMessage | FunctionMessage
)
