"""Shared parts of the prompts of several dialects: system messages, `tool_choice` in words, text and content of
messages.
"""

import json
from collections.abc import Sequence
from typing import Any, Final

from callwright.conversation import (
    Conversation,
    ConversationTurn,
    Item,
    MediaPart,
    Message,
    NamedTool,
    Part,
    TextPart,
    TurnsAlong,
    parts_text,
)
from callwright.errors import RequestError
from callwright.memo.prefixes import fold
from callwright.prompt import neutralise

# The roles of messages that instruct.
_INSTRUCT: Final = ("system", "developer")


def split_instructions(items: Sequence[Item]) -> tuple[list[str], tuple[Item, ...]]:
    """The texts of the system and developer messages at the start, and the items after them."""
    texts: list[str] = []
    for item in items:
        if not (isinstance(item, Message) and item.role in _INSTRUCT):
            break
        texts.append(item.text)
    return texts, tuple(items[len(texts) :])


def spoken_instructions(items: Sequence[Item]) -> tuple[list[str], tuple[Item, ...]]:
    """The same without empty texts."""
    texts, others = split_instructions(items)
    return [text for text in texts if text], others


def no_instructions(items: Sequence[Item]) -> tuple[list[str], tuple[Item, ...]]:
    """No texts, and all items, for formats that show each system message in its place."""
    return [], tuple(items)


def first_instruction(items: Sequence[Item]) -> tuple[list[str], tuple[Item, ...]]:
    """Like `split_instructions`, but for one message at most: the next ones are turns."""
    texts, behind = split_instructions(items[:1])
    return texts, (*behind, *items[1:])


def gather_instructions(items: Sequence[Item]) -> tuple[list[str], tuple[Item, ...]]:
    """The texts of all system and developer messages, for formats that show each of them at the start, and the other
    items.
    """
    texts, others = split_instructions(items)
    later = [item for item in others if type(item) is Message and item.role in _INSTRUCT]
    if not later:
        return texts, others
    said = {*map(id, later)}
    return texts + [item.text for item in later], tuple([item for item in others if id(item) not in said])


def user_turns(items: Sequence[Item]) -> Sequence[int]:
    """The numbers of the turns in which the user spoke."""
    return fold(items, TurnsAlong(), _find_user_turns).made


def last_of_user(items: Sequence[Item]) -> int:
    """The number of the last user message among the items, or -1."""
    return fold(items, -1, _of_user)


def _of_user(before: int, items: Sequence[Item], start: int) -> int:
    new = (number for number in range(start, len(items)) if is_of_user(items[number]))
    return max(new, default=before)


def is_of_user(turn: Item | ConversationTurn) -> bool:
    """Whether this is a user message."""
    return isinstance(turn, Message) and turn.role == "user"


def last_asked(conversation: Conversation, items: Sequence[Item]) -> int:
    """The number of the turn in which the user spoke last: most formats show no reasoning before it. -1 if there is
    none, or if all reasoning is to stay.
    """
    asked = () if conversation.keeps_reasoning else user_turns(items)
    return asked[-1] if asked else -1


def _find_user_turns(before: TurnsAlong, items: Sequence[Item], _: int) -> TurnsAlong:
    return before.more(items, lambda turn, number: [number] if is_of_user(turn) else [])


def choice_note(conversation: Conversation) -> list[str]:
    """The request's `tool_choice` in words, for prompts that cannot express it otherwise. Empty if it asks for nothing,
    or if there are no tools.
    """
    if not conversation.tools:
        return []
    if conversation.allowed_tools is not None and conversation.tool_choice in ("auto", "required"):
        names = ", ".join(conversation.allowed_tools)
        if conversation.tool_choice == "required":
            return [f"For this answer call at least one of these tools, and no other: {names}; do not answer in text."]
        return [f"For this answer call no other tools than {names}."]
    match conversation.tool_choice:
        case "none":
            return ["For this answer the tools are switched off: answer in text, without calling a tool."]
        case "required":
            return ["For this answer call at least one tool; do not answer in text."]
        case NamedTool(name):
            return [f"For this answer call the tool {name}; do not answer in text."]
    return []


def format_note(conversation: Conversation) -> list[str]:
    """The request's `response_format` in words; empty without one."""
    wanted = conversation.response_format
    if wanted is None:
        return []
    when = "When you answer in text instead of calling a tool, answer" if conversation.tools else "Answer"
    if wanted.schema is None:
        return [f"{when} with one JSON object and nothing else."]
    schema = json.dumps(wanted.schema, ensure_ascii=False)
    about = f"{wanted.name}: {wanted.description}" if wanted.description else wanted.name
    return [f"# Answer format\n\n{when} with JSON that fits this schema ({about}) and nothing else:\n\n{schema}"]


def chat_message(message: Message, controls: Sequence[str] | None) -> dict[str, Any]:
    """A chat message after the first ones. A developer message becomes a marked block in the user's name: few
    templates know the role, and fewer take a system message that late. Without `controls` the text stays as it is.
    """
    if message.role == "developer":
        return {"role": "user", "content": f"<system>\n{_neutralise_text(message.text, controls)}\n</system>"}
    return {"role": message.role, "content": chat_content(message.parts, controls)}


def plain_text(parts: Sequence[Part], number: int) -> str:
    """The text of a message, for prompts that hold only text. Raises `RequestError` for other parts; `number` is the
    turn that it names.
    """
    for part in parts:
        if type(part) is MediaPart:
            where = part.param or f"turn {number}"
            raise RequestError(
                f"This model is prompted with text only, got a part of type {part.value.get('type')!r} at {where}. "
                "Send text, or use a model in native mode.",
                param=part.param or "messages",
                code="unsupported_value",
            )
    return parts_text(tuple(parts))


def chat_content(parts: Sequence[Part], controls: Sequence[str] | None) -> Any:
    """The content of a chat message. Text that looks like a control token is broken up, so that it forges none."""
    if all(type(part) is TextPart for part in parts):
        return _neutralise_text(parts_text(tuple(parts)), controls)
    return [
        {"type": "text", "text": _neutralise_text(part.text, controls)}
        if isinstance(part, TextPart)
        else dict(part.value)
        for part in parts
    ]


def _neutralise_text(text: str, controls: Sequence[str] | None) -> str:
    return text if controls is None else neutralise(text, controls)
