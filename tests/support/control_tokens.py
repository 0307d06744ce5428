"""Control tokens in a prompt, looked for without the product's own pattern: every place, every token of some tables."""

import json
from collections import Counter
from collections.abc import Collection
from functools import cache
from typing import Any

import callwright
from callwright.dialects.base import get_dialect
from callwright.dialects.tokenizers import added_tokens
from callwright.openai_format.messages import read_conversation
from callwright.prompt import Control, Prompt

__all__ = ["assert_none_forged", "chat_texts", "conversation", "everywhere", "found", "tokens_of"]


@cache
def tokens_of(dialect: str) -> frozenset[str]:
    """All added tokens of the tokenizers that a dialect claims."""
    return frozenset(token for name in get_dialect(dialect).tokenizers for token in added_tokens(name))


def found(text: str, tokens: Collection[str]) -> Counter[str]:
    """How often each token stands in a text, within another one too."""
    firsts, lengths = _shapes(frozenset(tokens))
    places = (at for at, character in enumerate(text) if character in firsts)
    slices = (text[at : at + length] for at in places for length in lengths if at + length <= len(text))
    return Counter(piece for piece in slices if piece in tokens)


@cache
def _shapes(tokens: frozenset[str]) -> tuple[frozenset[str], list[int]]:
    return frozenset(token[0] for token in tokens), sorted({len(token) for token in tokens})


def assert_none_forged(prompt: Prompt, tokens: Collection[str]) -> None:
    """A prompt that is sent holds no token but those that its template put there."""
    ours: Counter[str] = Counter()
    for piece in prompt.pieces:
        if isinstance(piece, Control):
            ours += found(piece.text, tokens)
    assert found(prompt.wire_text, tokens) == ours


def everywhere(dialect: str, text: str, choice: Any = "auto", /, **options: Any) -> Prompt:
    """A prompt with a foreign text in every place that a client fills, names of tools and parameters among them."""
    messages, tools = conversation(text)
    return callwright.render(messages, tools=tools, dialect=dialect, tool_choice=choice, **options)


def conversation(text: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Messages and tools that hold a text wherever they can."""
    arguments = json.dumps({text: text, "list": [text, {text: text}]}, ensure_ascii=False)
    call = {"id": "c1", "type": "function", "function": {"name": text, "arguments": arguments}}
    parameter = {"type": "string", "title": text, "description": text, "default": text, "enum": [text, "b"]}
    schema = {
        "type": "object",
        "title": text,
        "description": text,
        "properties": {text: parameter, "o": {"type": "object", "properties": {text: {"const": text}}}},
        "required": [text],
        "$defs": {text: parameter},
    }
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": text},
        {"role": "user", "content": [{"type": "text", "text": text}, {"type": "text", "text": text}]},
        {"role": "assistant", "content": text, "reasoning_content": text, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": text},
        {"role": "developer", "content": text},
        {"role": "user", "content": text},
    ]
    return messages, [{"type": "function", "function": {"name": text, "description": text, "parameters": schema}}]


def chat_texts(dialect: str, text: str) -> list[str]:
    """The texts of the chat messages of mode prompt, with a foreign text in every place."""
    messages, tools = conversation(text)
    kind = get_dialect(dialect)
    chat = kind.messages(read_conversation(messages, tools, None), kind.options())
    return [str(message["content"]) for message in chat]
