"""The types of the items that clients send in the Responses API: the fields that are read, by OpenAI's names."""

from typing import Any, Final, Literal, TypeAlias

import msgspec

Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class Part(msgspec.Struct):
    type: str
    text: str | None = None
    refusal: str | None = None
    image_url: str | None = None
    detail: str | None = None
    file_id: str | None = None
    file_url: str | None = None
    file_data: str | None = None
    filename: str | None = None
    input_audio: dict[str, Any] | None = None


class Tagged(msgspec.Struct, tag_field="type"):
    id: str | None = None


class Message(Tagged, tag="message", kw_only=True):
    role: str
    content: str | list[Part]
    phase: str | None = None


class ReasoningText(msgspec.Struct):
    text: str = ""


class Reasoning(Tagged, tag="reasoning"):
    summary: list[ReasoningText] | None = None
    content: list[ReasoningText] | None = None
    encrypted_content: str | None = None


class FunctionCall(Tagged, tag="function_call", kw_only=True):
    call_id: str
    name: str
    arguments: str
    namespace: str | None = None
    status: str | None = None
    is_async: bool | None = msgspec.field(default=None, name="async")


class CustomCall(Tagged, tag="custom_tool_call", kw_only=True):
    call_id: str
    name: str
    input: str
    namespace: str | None = None
    status: str | None = None
    is_async: bool | None = msgspec.field(default=None, name="async")


class Output(Tagged, kw_only=True):
    call_id: str
    output: str | list[Part]


class FunctionOutput(Tagged, tag="function_call_output", kw_only=True):
    """It names its call, or if there was no call, the tool."""

    call_id: str | None = None
    output: str | list[Part]
    name: str | None = None
    namespace: str | None = None


class CustomOutput(Output, tag="custom_tool_call_output"):
    pass


class SearchCall(Tagged, tag="tool_search_call", kw_only=True):
    arguments: dict[str, Any] | str = {}
    call_id: str | None = None


class SearchOutput(Tagged, tag="tool_search_output", kw_only=True):
    tools: list[dict[str, Any]]
    call_id: str | None = None


class AdditionalTools(Tagged, tag="additional_tools", kw_only=True):
    tools: list[dict[str, Any]]


class Compaction(Tagged, tag="compaction", kw_only=True):
    encrypted_content: str


class CompactionTrigger(Tagged, tag="compaction_trigger"):
    pass


class UpdatedReasoning(msgspec.Struct):
    effort: Effort | None = None


class UpdatedText(msgspec.Struct):
    format: dict[str, Any] | None = None


class Update(Tagged, tag="configuration_update"):
    reasoning: UpdatedReasoning | None = None
    text: UpdatedText | None = None


class ShellCall(Tagged, tag="shell_call", kw_only=True):
    call_id: str
    action: dict[str, Any]


class LocalShellCall(Tagged, tag="local_shell_call", kw_only=True):
    call_id: str
    action: dict[str, Any]


class PatchCall(Tagged, tag="apply_patch_call", kw_only=True):
    call_id: str
    operation: dict[str, Any]


class AnyOutput(Tagged, kw_only=True):
    call_id: str
    output: Any = ""
    status: str | None = None


class ShellOutput(AnyOutput, tag="shell_call_output"):
    pass


class LocalShellOutput(Tagged, tag="local_shell_call_output"):
    """It names its call in `id`, by OpenAI's types, or in `call_id`, by its guide."""

    call_id: str | None = None
    output: Any = ""
    status: str | None = None


class PatchOutput(AnyOutput, tag="apply_patch_call_output"):
    pass


class McpRequest(Tagged, tag="mcp_approval_request", kw_only=True):
    name: str
    arguments: str = "{}"
    server_label: str | None = None


class McpResponse(Tagged, tag="mcp_approval_response", kw_only=True):
    approval_request_id: str
    approve: bool
    reason: str | None = None


class McpCall(Tagged, tag="mcp_call", kw_only=True):
    name: str
    server_label: str | None = None
    approval_request_id: str | None = None
    arguments: str = "{}"
    output: str | None = None
    error: Any = None


class WebSearchCall(Tagged, tag="web_search_call"):
    """A web search that ran here, with its results in `encrypted_content`, or elsewhere."""

    action: Any = None
    encrypted_content: Any = None


class Reference(Tagged, tag="item_reference"):
    pass


_ITEMS: Final = (
    *(Message, Reasoning, FunctionCall, CustomCall, FunctionOutput, CustomOutput, SearchCall, SearchOutput),
    *(AdditionalTools, Compaction, CompactionTrigger, Update, ShellCall, LocalShellCall, PatchCall),
    *(ShellOutput, LocalShellOutput, PatchOutput, McpRequest, McpResponse, McpCall, WebSearchCall),
    Reference,
)
BY_TYPE: Final = {str(item.__struct_config__.tag): item for item in _ITEMS}
