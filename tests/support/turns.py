"""Turns of a model, written as a server hands them on that the gateway asks in one of its ways."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

import callwright
from callwright.constraints.shape import reasoning_opener
from callwright.conversation import AssistantTurn, Call, Message, TextPart
from callwright.dialects.base import get_dialect
from tests.support.outputs import spoken
from tests.support.servers import Answer, call_deltas, chat

__all__ = ["Written", "broken_off", "repeated", "shown", "wrote"]

# A name, and the arguments.
Written: TypeAlias = tuple[str, Mapping[str, Any]]


def wrote(way: str, text: str = "", calls: Sequence[Written] = (), *, thought: str = "", finish: str = "") -> Answer:
    """An answer of a model that is asked in this way (`tests.conftest.scripted_models`): reasoning, text, calls."""
    if way == "native":
        return _native(text, calls, thought, finish)
    dialect = way.split("-")[1]
    opener = _opened(dialect)
    turn = AssistantTurn(
        thought or ("Well." if opener else None),
        Message("assistant", (TextPart(text),)) if text else None,
        [Call(name, _json(arguments)) for name, arguments in calls],
    )
    return spoken(way, get_dialect(dialect).write(turn).removeprefix(opener), finish=finish or "stop")


def broken_off(answer: Answer, steps: int | None = None) -> Answer:
    """The answer, its connection closed after so many of its writes; unless told, after half of them."""
    return Answer((*answer.steps[: len(answer.steps) // 2 if steps is None else steps], "cut"))


@cache
def _opened(dialect: str) -> str:
    """With what a prompt of this dialect ends where it begins the model's reasoning; else empty."""
    prompt = callwright.render([{"role": "user", "content": "Hi."}], dialect=dialect)
    return reasoning_opener(dialect) if prompt.start == "reasoning" else ""


def repeated(way: str, text: str) -> str:
    """A text as a model repeats it that has read it in its prompt: what looks like a control token is broken there."""
    if way == "native":
        return text
    prompt = callwright.render([{"role": "user", "content": f"«{text}»"}], dialect=way.split("-")[1])
    return prompt.wire_text.partition("«")[2].rpartition("»")[0]


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
