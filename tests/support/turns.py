"""Turns of a model, written as a server hands them on that the gateway asks in one of its ways."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import callwright
from tests.support.outputs import spoken
from tests.support.servers import Answer, call_deltas, chat

__all__ = ["Written", "shown", "wrote"]

# A name, and the arguments.
Written: TypeAlias = tuple[str, Mapping[str, Any]]


def wrote(way: str, text: str = "", calls: Sequence[Written] = (), *, thought: str = "", finish: str = "") -> Answer:
    """An answer of a model that is asked in this way (`tests.conftest.scripted_models`): reasoning, text, calls."""
    if way == "native":
        return _native(text, calls, thought, finish)
    dialect = way.split("-")[1]
    tools = [{"type": "function", "function": {"name": name}} for name in dict.fromkeys(name for name, _ in calls)]
    named = [{"name": name, "arguments": _json(arguments)} for name, arguments in calls]
    made = callwright.write(named, tools=tools, dialect=dialect) if calls else ""
    if dialect != "harmony":
        lead = f"<think>\n{thought}\n</think>\n\n" if thought else ""
        return spoken(way, "\n".join(filter(None, (f"{lead}{text}", made))), finish=finish or "stop")
    parts = [
        f"<|channel|>analysis<|message|>{thought}<|end|>" if thought else "",
        f"<|channel|>{'commentary' if calls else 'final'}<|message|>{text}{'<|end|>' if calls else '<|return|>'}"
        if text
        else "",
        made,
    ]
    return spoken(way, "<|start|>assistant".join(filter(None, parts)), finish=finish or "stop")


def shown(body: Mapping[str, Any]) -> str:
    """All that a server was told the model is to read."""
    return str(body.get("prompt") or _json(body["messages"]))


def _native(text: str, calls: Sequence[Written], thought: str, finish: str) -> Answer:
    deltas: list[dict[str, Any]] = []
    if thought:
        deltas.append({"reasoning_content": thought})
    if text:
        deltas.append({"content": text})
    for number, (name, arguments) in enumerate(calls):
        deltas += call_deltas(name, _json(arguments), index=number, id_=f"call_up_{number}")
    return chat(*deltas, finish=finish or ("tool_calls" if calls else "stop"))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
