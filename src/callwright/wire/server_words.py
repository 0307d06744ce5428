"""Texts for the model about steps of the gateway, in any API: results of MCP calls, summaries.

Source of the errors' shapes: OpenAI's `McpToolCallError` of the Responses API.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from callwright.tolerant_json.codec import encode

NOT_OFFERED: Final = "This call was not run: the request does not offer its server any more."
WEB_SEARCH_GONE: Final = "The results of this search are not shown any more."
_REJECTED: Final = "The user did not approve this call; it was not run."
_SUMMARY: Final = "Summary of the conversation so far, which is not shown any more:\n\n"
_INVALID_PARAMS: Final = -32602  # of JSON-RPC
_Error: TypeAlias = dict[str, Any]


def tool_failure(words: str) -> _Error:
    """The error of a call that its tool or its server failed."""
    return {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": words}]}


def wrong_call(words: str) -> _Error:
    """The error of a call that was not run."""
    return {"type": "mcp_protocol_error", "code": _INVALID_PARAMS, "message": words}


def call_words(output: str | None, error: Any) -> str:
    """The text for the model for a call, from the fields of its item."""
    if error is None:
        return output or ""
    if isinstance(error, Mapping):
        content = error.get("content")
        texts = [str(part.get("text")) for part in content or () if isinstance(part, Mapping) and part.get("text")]
        error = error.get("message") or "\n".join(texts) or encode(error).decode()
    return f"Error: {error if isinstance(error, str) else encode(error).decode()}"


def rejected_words(reason: str | None) -> str:
    """The text for the model for a call that was not approved."""
    return f"{_REJECTED} {reason}" if reason else _REJECTED


def summary_words(summary: str) -> str:
    """The text for the model in place of a compacted conversation."""
    return f"{_SUMMARY}{summary}"
