"""Repair chat messages with unpaired calls and outputs instead of refusing them.

OpenAI's API refuses them. If configured, clients that truncate their history, lose ids or answer late are served
anyway. The repair of a message depends on nothing after the outputs of its calls, so that the prompt's prefix is
stable.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from callwright.calls.history import NOT_RUN
from callwright.tolerant_json.codec import encode

# The fields of an assistant message with content.
_SAYS = ("content", "tool_calls", "function_call", "refusal", "reasoning", "reasoning_content")


def mend_messages(messages: Sequence[Any]) -> list[Any]:
    """The messages with every call answered directly after its message, every output after its call, unique ids, one
    system message at the start, and no empty assistant messages.
    """
    found: list[Any] = []
    for message in _numbered(messages):
        if _is(message, "assistant") and not any(message.get(field) for field in _SAYS):
            continue
        found.append(message)
    return _system_first(_paired(found))


def _numbered(messages: Sequence[Any]) -> list[Any]:
    """The messages with an id for each call and output: derived from its position if it is missing or not unique."""
    given: dict[str, deque[str]] = {}  # the new ids of the calls with one id, in order, which may lack an output
    waiting: dict[str, None] = {}  # ids of calls without an output, in order
    seen: set[str] = set()
    made: list[Any] = []
    for number, message in enumerate(messages):
        if _is(message, "assistant") and isinstance(message.get("tool_calls"), list):
            calls = []
            for place, call in enumerate(message["tool_calls"]):
                if not isinstance(call, Mapping):
                    calls.append(call)
                    continue
                old = call.get("id") if isinstance(call.get("id"), str) else ""
                new = old if old and old not in seen else f"call_mended_{number}_{place}"
                seen.add(new)
                given.setdefault(old or new, deque()).append(new)
                waiting[new] = None
                calls.append({**call, "id": new, "function": _function(call.get("function"))})
            made.append({**message, "tool_calls": calls})
        elif _is(message, "tool"):
            old = message.get("tool_call_id") if isinstance(message.get("tool_call_id"), str) else ""
            same = given.get(old, deque((old,)))
            while len(same) > 1 and same[0] not in waiting:
                same.popleft()
            new = same[0] if old else next(iter(waiting), "")
            waiting.pop(new, None)
            made.append({**message, "tool_call_id": new})
        else:
            made.append(message)
    return made


def _function(given: Any) -> Any:
    """A called function with its arguments as text, and its name without control tokens appended by a model."""
    if not isinstance(given, Mapping):
        return given
    arguments = given.get("arguments")
    name = given.get("name")
    made = dict(given)
    if arguments is None:
        made["arguments"] = "{}"
    elif not isinstance(arguments, str):
        made["arguments"] = encode(arguments).decode()
    if isinstance(name, str):
        made["name"] = name.partition("<|")[0] or name
    return made


def _paired(messages: Sequence[Any]) -> list[Any]:
    """Each output directly after the message with its call; an output without a call becomes a user message."""
    outputs: dict[str, Any] = {}
    more: set[int] = set()  # outputs of calls that have one already, by their `id()`
    calls = {call["id"] for message in messages for call in _calls(message)}
    for message in messages:
        if _is(message, "tool"):
            first = outputs.setdefault(message["tool_call_id"], message)
            if first is not message and message["tool_call_id"] in calls:
                more.add(id(message))
    made: list[Any] = []
    for message in messages:
        if _is(message, "tool"):
            if message["tool_call_id"] not in calls or id(message) in more:
                words = f"The output of a call that is not shown ({message['tool_call_id'] or 'without an id'}):"
                made.append({"role": "user", "content": _with_words(words, message.get("content"))})
            continue
        made.append(message)
        for call in _calls(message):
            missing = {"role": "tool", "tool_call_id": call["id"], "content": NOT_RUN}
            made.append(outputs.get(call["id"], missing))
    return made


def _system_first(messages: Sequence[Any]) -> list[Any]:
    """One system message at the start; a later one becomes a user message with a marked block in its position."""
    count = next((n for n, message in enumerate(messages) if not _is_system(message)), len(messages))
    begin = list(messages[:count])
    if count > 1:
        begin = [{**begin[0], "content": "\n\n".join(map(_words_of, begin))}]
    rest = [
        {"role": "user", "content": f"<system>\n{_words_of(message)}\n</system>"} if _is_system(message) else message
        for message in messages[count:]
    ]
    return begin + rest


def _with_words(words: str, content: Any) -> Any:
    if isinstance(content, list):
        return [{"type": "text", "text": words}, *content]
    return f"{words}\n{content or ''}"


def _words_of(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    return "".join(str(part.get("text") or "") for part in parts if isinstance(part, Mapping))


def _calls(message: Any) -> list[Mapping[str, Any]]:
    calls = message.get("tool_calls") if _is(message, "assistant") else None
    return [call for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []


def _is(message: Any, role: str) -> bool:
    return isinstance(message, Mapping) and message.get("role") == role


def _is_system(message: Any) -> bool:
    return _is(message, "system") or _is(message, "developer")
