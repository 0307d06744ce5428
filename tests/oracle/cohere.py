"""Cohere's own encoder and parser, `cohere-melody`, as oracles: prompts of Command 4 and 5, and what outputs mean."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

__all__ = ["prompt_of", "reading_of"]

melody = pytest.importorskip("cohere_melody", reason="cohere-melody is not installed")


def prompt_of(version: int, messages: Sequence[Any], tools: Sequence[Any] | None, *, thinks: bool = True) -> str:
    """What the encoder makes of a conversation in the Chat shape."""
    asked: dict[str, Any] = {"messages": list(map(_message, messages)), "grounding": "disabled"}
    if tools:
        asked["available_tools"] = [_tool(tool["function"]) for tool in tools]
    asked["reasoning_type"] = "enabled" if thinks else "disabled"
    made: str = (melody.render_cmd4 if version == 4 else melody.render_cmd5)(asked)
    return made


def _tool(function: dict[str, Any]) -> dict[str, Any]:
    return {"description": "", "parameters": {}, **{key: function[key] for key in function if key != "strict"}}


def _message(message: dict[str, Any]) -> dict[str, Any]:
    role = {"assistant": "chatbot"}.get(message["role"], message["role"])
    content = message["content"]
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}] if content is not None else []
    if message.get("tool_calls") and content == "":
        parts = []
    if "reasoning_content" in message:
        parts = [{"type": "thinking", "thinking": message["reasoning_content"]}, *parts]
    made = {"role": role, "content": parts}
    if "tool_call_id" in message:
        made["tool_call_id"] = message["tool_call_id"]
    if "tool_calls" in message:
        made["tool_calls"] = [
            {"id": call["id"], "name": call["function"]["name"], "parameters": call["function"]["arguments"]}
            for call in message["tool_calls"]
        ]
    return made


def reading_of(output: str) -> tuple[str, str, list[tuple[str, Any]]]:
    """Reasoning, content and calls that the parser reads in an output of Command 5."""
    read = melody.PyFilter.cmd5().process_full_text(output)
    calls = [(call.name, json.loads(call.arguments)) for call in read.tool_calls]
    return read.reasoning or "", read.content or "", calls
