"""What the simulated model answers: calls, as long as the request asks for any, then what came of them.

A request may ask for several things (`Add 3 and 4, then multiply 5 by 6`). Each part of it that a tool can do is a
task. What was called since the request counts as done, so that a server that takes one call at a time gets them one
after the other.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import msgspec

from callwright.calls.custom_tools import INPUT
from callwright.conversation import (
    AssistantTurn,
    Call,
    Conversation,
    FunctionTool,
    Message,
    NamedTool,
    TextPart,
)
from callwright.grammar.grammar import Grammar
from callwright.tolerant_json.codec import decode, encode
from callwright.upstreams.simulated.arguments import arguments_of, value_of
from callwright.upstreams.simulated.choice import demanded_first, known_words, score, tasks
from callwright.upstreams.simulated.drawn import drawn
from callwright.upstreams.simulated.session import Output, asks_for_summary, forbids_calls, session_of, summary_of
from callwright.upstreams.simulated.spans import quoted, spans

__all__ = ["answer", "chosen_word"]

Plan: TypeAlias = list[tuple[FunctionTool, Call]]

_MAX_READ: Final = 1_000  # so much is read of the begin of a request, and of its end
_PATH = re.compile(r"(?!\S*://)[^\s@]*(?:[\w-]\.[A-Za-z]\w{0,4}|/[^\s@]*)")


def answer(conversation: Conversation) -> AssistantTurn:
    """What the model means to say or call."""
    session = session_of(conversation)
    said, outputs = session.said, session.outputs
    asked = said if len(said) <= 2 * _MAX_READ else f"{said[:_MAX_READ]}\n{said[-_MAX_READ:]}"
    if (
        conversation.tool_choice == "auto"
        and (forbids_calls(said) or not conversation.tools)
        and asks_for_summary(said)
    ):
        return _said(_formed(summary_of(conversation, said), conversation, asked), "This is to be summed up.")
    tool, calls = _wanted(conversation, asked, outputs)
    if tool is not None:
        reasoning = f"The user asks for something that {tool.name} can do."
        return AssistantTurn(reasoning=reasoning, calls=calls)
    if outputs:
        told = " ".join(output.told() for output in outputs)
        return _said(_formed(told, conversation, asked), "The results are in, so I can answer.")
    reply = f"You said: {said}" if said else "Hello! How can I help?"
    return _said(_formed(reply, conversation, asked), "No tool is needed here." if conversation.tools else None)


def chosen_word(words: Sequence[str], conversation: Conversation) -> AssistantTurn:
    """The reply to the question whether the answer before was meant as a call: the first of these words if the model
    did mean one, else the last.
    """
    before = msgspec.structs.replace(conversation, items=conversation.items[:-2], tool_choice="auto")
    return _said(words[0] if answer(before).calls else words[-1], None)


def _formed(reply: str, conversation: Conversation, asked: str) -> str:
    """An answer in the form that is asked for."""
    if conversation.response_format is None:
        return reply
    return encode(value_of(conversation.response_format.schema or {"type": "object"}, asked)).decode()


def _said(text: str, reasoning: str | None) -> AssistantTurn:
    return AssistantTurn(reasoning, Message("assistant", (TextPart(text),)))


# --- what it calls ---


def _wanted(
    conversation: Conversation, asked: str, outputs: Sequence[Output]
) -> tuple[FunctionTool | None, list[Call]]:
    """The calls that are still to be made, and the tool that the first of them is of."""
    tools = conversation.tools
    match conversation.tool_choice:
        case "none":
            return None, []
        case NamedTool(name):
            tools = tuple(tool for tool in tools if tool.name == name)
        case _ if conversation.allowed_tools is not None:
            tools = tuple(tool for tool in tools if tool.name in conversation.allowed_tools)
    if not tools:
        return None, []
    made = Counter(output.name for output in outputs if not output.refused)
    demanded = conversation.tool_choice != "auto"
    if not demanded and (forbids_calls(asked) or any(output.failed and not output.refused for output in outputs)):
        return None, []
    named = isinstance(conversation.tool_choice, NamedTool)
    left = made.copy()
    calls: list[tuple[FunctionTool, Call]] = []
    for tool, call in _planned(tools, [(tools[0], asked)] if named else tasks(tools, asked)):
        if left[tool.name] > 0:
            left[tool.name] -= 1
        else:
            calls.append((tool, call))
    offered = {tool.name for tool in conversation.tools}
    calls = calls[
        sum(number for name, number in made.items() if name not in offered) :
    ]  # whoever was called in between
    if not calls and demanded:
        # All is done, but a call is demanded: those that were called least often come first, then those that fit best.
        tool = min(tools, key=lambda tool: (made[tool.name], -score(tool, asked)))
        calls = [(tool, _calls(tool, asked)[0])]
    if not calls:
        return None, []
    return calls[0][0], _together([call for _, call in calls]) if conversation.parallel_tool_calls else [calls[0][1]]


def _planned(tools: Sequence[FunctionTool], parts: Sequence[tuple[FunctionTool, str]]) -> Plan:
    """All calls that a request asks for, in order, and before each the call that its tool demands."""
    planned: Plan = []
    for tool, part in parts:
        for call in _calls(tool, part):
            for path in _paths(call):
                first = demanded_first(tool, tools)
                before = _calls(first, path)[0] if first is not None else None
                if first is not None and before is not None and path in _paths(before):
                    planned += [(first, before)] if (first, before) not in planned else []
            planned.append((tool, call))
    return planned


def _together(calls: Sequence[Call]) -> list[Call]:
    """The first of some calls that can be made at once: one that names a file of a call before it waits for that."""
    ready: list[Call] = []
    for call in calls:
        if any(path in call.arguments for before in ready for path in _paths(before)):
            break
        ready.append(call)
    return ready


def _paths(call: Call) -> list[str]:
    """The values of a call that look like files."""
    values = decode(call.arguments.encode())
    assert isinstance(values, dict)
    return [value for value in values.values() if isinstance(value, str) and _PATH.fullmatch(value)]


def _calls(tool: FunctionTool, asked: str) -> list[Call]:
    if tool.custom is not None and tool.custom.grammar is not None:
        return [_call(tool, {INPUT: _sentence(tool.custom.grammar, asked)})]
    return [_call(tool, arguments) for arguments in arguments_of(tool.parameters or {}, asked, known_words(tool))]


def _call(tool: FunctionTool, arguments: dict[str, Any]) -> Call:
    return Call(tool.name, encode(arguments).decode())


def _sentence(grammar: Grammar, asked: str) -> str:
    """A text of the grammar: what the message quotes or names, if that is one."""
    named = (way for span in (*quoted(asked), *spans(asked)) for way in span.ways)
    found = next((text for text in named if grammar.accepts(text)), None)
    return found if found is not None else drawn(grammar)
