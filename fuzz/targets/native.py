"""The chunks of a chat server that reads calls itself, in the ways that servers have: nothing raises, the events are
well formed, however text and arguments are cut the same comes of them, and nothing that was said is lost.
"""

import json
from collections import Counter
from typing import Any

import msgspec

from callwright import ContentDelta, Markup, Problem, ReasoningDelta, collect
from callwright.conversation import Conversation, NamedTool, ToolChoice
from callwright.events import Event, Usage
from callwright.openai_format.tool_catalog import read_tool_catalog
from callwright.openai_format.tool_choice import write_tool_choice
from callwright.turn.model import Model
from callwright.turn.output import GenerationReader
from callwright.upstreams.answers import read_json
from callwright.upstreams.base import Delta, FinishDelta, GenerationRequest
from callwright.upstreams.chat_answers import ChatAnswer
from callwright.upstreams.simulated.scripted import ScriptedUpstream
from fuzz import values, words
from tests.support.cases import TOOLS, tools
from tests.support.choices import Choices
from tests.support.parsing import merged
from tests.support.properties import assert_calls_hold, assert_well_formed

__all__ = ["run"]

UPSTREAM = ScriptedUpstream(())
CHOICES: tuple[ToolChoice, ...] = ("auto", "auto", "none", "required", NamedTool("ping"))
NAMES: tuple[str | None, ...] = (None, None, "", "roll_dice", "ping", "take_note", "nobody", "functions.ping", "launch")
IDS: tuple[str | None, ...] = (None, None, "", "call_1", "call_2", "call_1")
ARGUMENTS: tuple[Any, ...] = (
    *(None, "", "{}", '{"sides": 6}', '{"sides"', ": 6}", '{"title": "a", ', '"body": "b"}', "}", "null", '"', "x"),
    *({"sides": 6}, {}, [], 5, '{"name": "ping", "arguments": {}}', "\ud83d", "{}{}"),
)


def run(draw: Choices) -> None:
    """See the module."""
    choice: ToolChoice = draw.one(CHOICES)
    parallel = not draw.once_in(4)
    offered = tools(*TOOLS)
    conversation = Conversation(
        tools=read_tool_catalog(offered).tools, tool_choice=choice, parallel_tool_calls=parallel
    )
    pieces = draw.several(10, lambda: _piece(draw))
    finish = draw.one(("stop", "length", "tool_calls", "content_filter", "function_call", None))
    whole = _read(conversation, pieces, finish)
    cut = [part for piece in pieces for part in _cut(draw, piece)]
    assert merged(_read(conversation, cut, finish)) == merged(whole), f"{pieces!r} and {cut!r}"
    assert_well_formed(whole)
    turn = collect(whole)
    request = {"tools": offered, "tool_choice": write_tool_choice(choice), "parallel_tool_calls": parallel}
    assert_calls_hold(turn, request)
    said = Counter("".join(_said(piece) for piece in pieces))
    told = Counter(
        "".join(event.text for event in whole if isinstance(event, ContentDelta | ReasoningDelta | Markup | Problem))
        + "".join(call.arguments + call.name for call in turn.calls)
    )
    missing = {letter for letter in said - told if letter.isalpha()}
    assert not missing or turn.calls or turn.problems, f"{missing} of {pieces!r} are lost in {whole!r}"


def _piece(draw: Choices) -> dict[str, Any]:
    """One delta of a chunk."""
    match draw.number(4):
        case 0:
            return {"content": words.output(draw, draw.one(("json", "hermes")))}
        case 1:
            return {"content": draw.text(words.JSON_ATOMS, 3)}
        case 2:
            return {draw.one(("reasoning", "reasoning_content")): values.string(draw)}
    index = draw.one((0, 0, 1, 1, 2, None, -1, 10**12))
    call: dict[str, Any] = {"index": index, "id": draw.one(IDS)}
    call["function"] = {"name": draw.one(NAMES), "arguments": draw.one(ARGUMENTS)}
    if draw.once_in(10):
        return {"function_call": call["function"]}
    return {"tool_calls": [call]}


def _said(piece: dict[str, Any]) -> str:
    return "".join(text for text in piece.values() if isinstance(text, str))


def _cut(draw: Choices, piece: dict[str, Any]) -> list[dict[str, Any]]:
    """The same in more chunks."""
    name = next(iter(piece))
    if isinstance(piece[name], str):
        return [{name: part} for part in draw.cuts(piece[name])]
    return [piece]


def _read(conversation: Conversation, pieces: list[dict[str, Any]], finish: str | None) -> list[Event]:
    model = Model(name="m", upstream=UPSTREAM, upstream_model="m")
    reader = GenerationReader(model, GenerationRequest(model="m", conversation=conversation))
    choices = ChatAnswer("a server", 1_024)
    deltas: list[Delta] = []
    for piece in pieces:  # read from its bytes, which is where halves of characters within a text are found
        text = json.dumps({"choices": [{"delta": piece}]}).encode()
        choices.read(read_json(text, ChatAnswer.kind, 10_000), deltas)
    assert not any(isinstance(delta, FinishDelta | Usage) for delta in deltas)
    choices.read(msgspec.convert({"choices": [{"delta": {}, "finish_reason": finish}]}, ChatAnswer.kind), deltas)
    return reader.read(deltas) + reader.finish()
