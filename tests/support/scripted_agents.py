"""Agents for tests: a model that answers by a script, in whatever dialect, and histories that the wire checks."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from callwright import Agent
from callwright.conversation import AssistantTurn, Call, Message, TextPart
from callwright.dialects.base import get_dialect
from callwright.turn.model import Mode, Model
from callwright.upstreams.base import Delta, FinishDelta, TextDelta, ToolCallDelta
from callwright.upstreams.simulated.scripted import ScriptedUpstream
from callwright.wire.chat.request import read_request

Arguments: TypeAlias = str | Mapping[str, Any]
# What a model answers: a text, calls, or the deltas themselves.
Answer: TypeAlias = str | Sequence[tuple[str, Arguments]] | Sequence[Delta | Exception]


def calls(*made: tuple[str, Arguments], text: str = "", stop: bool = True) -> list[Delta | Exception]:
    """A native turn: some text, then calls."""
    deltas: list[Delta | Exception] = [TextDelta(text)] if text else []
    for index, (name, arguments) in enumerate(made):
        written = arguments if isinstance(arguments, str) else json.dumps(arguments)
        deltas.append(ToolCallDelta(index, None, name, written))
    return [*deltas, FinishDelta("stop")] if stop else deltas


def written(dialect: str, answer: Answer) -> str:
    """What a model of a family writes to say a text or to make calls."""
    if isinstance(answer, str):
        turn = AssistantTurn(message=Message("assistant", (TextPart(answer),)))
    else:
        made: Any = answer
        turn = AssistantTurn(calls=[Call(name, json.dumps(arguments)) for name, arguments in made])
    return get_dialect(dialect).write(turn)


def scripted(*answers: Any, dialect: str | None = None, retries: int = 0) -> tuple[Model, ScriptedUpstream]:
    """A model that gives these answers, natively or in a dialect, and its upstream, which knows what it was asked."""
    played = [written(dialect, answer) if dialect else _native(answer) for answer in answers]
    upstream = ScriptedUpstream(played)
    mode: Mode = "raw" if dialect else "native"
    return Model("scripted", upstream, "scripted", mode=mode, dialect=dialect, retries=retries), upstream


def _native(answer: Answer) -> Any:
    is_calls = not isinstance(answer, str) and all(isinstance(one, tuple) for one in answer)
    return calls(*answer) if is_calls else answer


def agent(*answers: Any, tools: Sequence[Callable[..., Any]] = (), dialect: str | None = None, **how: Any) -> Agent:
    """An agent whose model gives these answers."""
    model, _ = scripted(*answers, dialect=dialect)
    return Agent(model=model, tools=tools, **how)


def check_history(messages: Sequence[Mapping[str, Any]]) -> None:
    """The next request takes this conversation: each call has exactly one output, right behind it."""
    made = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    answered = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    assert sorted(made) == sorted(answered)
    assert len(set(made)) == len(made)
    assert not [one for one in messages if one["role"] == "assistant" and not (one["content"] or one.get("tool_calls"))]
    read_request({"model": "m", "messages": [*messages, {"role": "user", "content": "And now?"}]})
