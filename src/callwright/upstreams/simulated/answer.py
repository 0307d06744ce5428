"""What the simulated model answers: calls, as long as the request asks for any, then what came of them.

A request may ask for several things (`Add 3 and 4, then multiply 5 by 6`). Each part of it that a tool can do is a
task. What was called since the request counts as done, so that a server that takes one call at a time gets them one
after the other.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from callwright.calls.custom_tools import INPUT
from callwright.conversation import (
    AssistantTurn,
    Call,
    CallOutput,
    Conversation,
    FunctionTool,
    Item,
    Message,
    NamedTool,
    TextPart,
)
from callwright.grammar.grammar import Grammar
from callwright.tolerant_json.codec import encode
from callwright.upstreams.simulated.arguments import arguments_of, is_all_named, value_of
from callwright.upstreams.simulated.spans import quoted, spans
from callwright.upstreams.simulated.words import meanings, name_words, words

__all__ = ["answer"]

_REFUSED: Final = ("Error: this call was not run.", "Error: no call was run.")  # then the model tries again
# What a client or a server adds to the user's words: nothing that the user asks for.
_ASIDE: Final = re.compile(r"<(system|system-reminder)>.*?</\1>\s*", re.DOTALL)
_MAX_READ: Final = 1_000  # so much is read of the begin of a request, and of its end
_ENOUGH: Final = 2  # a word of the tool's name, or two of its description
_NAME_WORTH: Final = 3
_VERB_WORTH: Final = 2
_MEMBER_WORTH: Final = 2
_SHORT: Final = 3  # each word of so short a description counts
_SHORT_WORTH: Final = 2
_VERBS: Final = meanings("create make new delete update edit search list send run execute read write open add".split())
_CONJUNCTION = re.compile(r"(?:[.;!?]\s+|,?\s+and\s+then\s+|,?\s+then\s+|,?\s+and\s+(?:also\s+)?|,\s+)", re.IGNORECASE)


def answer(conversation: Conversation) -> AssistantTurn:
    """What the model means to say or call."""
    begin, said = _request(conversation)
    asked = said if len(said) <= 2 * _MAX_READ else f"{said[:_MAX_READ]}\n{said[-_MAX_READ:]}"
    outputs = _outputs(conversation, begin)
    made = Counter(name for name, output in outputs if not output.text.startswith(_REFUSED))
    tool, calls = _wanted(conversation, asked, made)
    if tool is not None:
        reasoning = f"The user asks for something that {tool.name} can do."
        return AssistantTurn(reasoning=reasoning, calls=calls)
    if outputs:
        told = " ".join(f"{name or 'The tool'} says: {output.text}." for name, output in outputs)
        return _said(_formed(told.replace("..", "."), conversation, asked), "The results are in, so I can answer.")
    reply = f"You said: {said}" if said else "Hello! How can I help?"
    return _said(_formed(reply, conversation, asked), "No tool is needed here." if conversation.tools else None)


def _formed(reply: str, conversation: Conversation, asked: str) -> str:
    """An answer in the form that is asked for."""
    if conversation.response_format is None:
        return reply
    return encode(value_of(conversation.response_format.schema or {"type": "object"}, asked)).decode()


def _request(conversation: Conversation) -> tuple[int, str]:
    """The last thing that the user asked for, and where the items behind it begin."""
    for number, item in reversed([*enumerate(conversation.items)]):
        if isinstance(item, Message) and item.role == "user" and not item.text.startswith(_REFUSED):
            said = _ASIDE.sub("", item.text)
            if said == item.text or said.strip():
                return number + 1, said
    return 0, ""


def _outputs(conversation: Conversation, begin: int) -> list[tuple[str, CallOutput]]:
    names = conversation.named_outputs()
    items: Sequence[Item] = conversation.items
    return [(names[n], item) for n, item in enumerate(items) if n >= begin and isinstance(item, CallOutput)]


def _said(text: str, reasoning: str | None) -> AssistantTurn:
    return AssistantTurn(reasoning, Message("assistant", (TextPart(text),)))


# --- what it calls ---


def _wanted(conversation: Conversation, asked: str, made: Counter[str]) -> tuple[FunctionTool | None, list[Call]]:
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
    demanded = conversation.tool_choice != "auto"
    named = isinstance(conversation.tool_choice, NamedTool)
    tasks = [(tools[0], asked)] if named else _tasks(tools, asked)
    left = made.copy()
    calls: list[tuple[FunctionTool, Call]] = []
    for tool, part in tasks:
        for call in _calls(tool, part):
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
        said = _meant(asked)
        tool = min(tools, key=lambda tool: (made[tool.name], -_score(tool, said)))
        calls = [(tool, _calls(tool, asked)[0])]
    if not calls:
        return None, []
    several = calls if conversation.parallel_tool_calls else calls[:1]
    return calls[0][0], [call for _, call in several]


def _tasks(tools: Sequence[FunctionTool], asked: str) -> list[tuple[FunctionTool, str]]:
    """The parts of a request with the tool for each. What is for no other tool belongs to the part before it."""
    found: list[tuple[FunctionTool, int]] = []
    texts = quoted(asked)
    cuts = [cut for cut in _CONJUNCTION.finditer(asked) if not any(s.start <= cut.start() < s.end for s in texts)]
    for begin, end in zip([0, *(cut.end() for cut in cuts)], [*(cut.start() for cut in cuts), len(asked)], strict=True):
        tool = _best(tools, asked[begin:end])
        if tool is not None and (not found or tool is not found[-1][0]):
            found.append((tool, begin if found else 0))
    if len(found) < 2:  # the whole says more than its parts
        whole = _best(tools, asked) or next((tool for tool in tools if _takes(tool, asked)), None)
        return [(whole, asked)] if whole is not None else []
    ends = [*(begin for _, begin in found[1:]), len(asked)]
    return [(tool, asked[begin:end]) for (tool, begin), end in zip(found, ends, strict=True)]


def _best(tools: Sequence[FunctionTool], asked: str) -> FunctionTool | None:
    """The tool whose names and description share most words with a text; None where none shares enough."""
    said = _meant(asked)
    tool = max(tools, key=lambda tool: _score(tool, said))
    return tool if _score(tool, said) >= _ENOUGH else None


def _takes(tool: FunctionTool, asked: str) -> bool:
    """Whether a text has all that a tool needs, though it says nothing of the tool itself."""
    return tool.parameters is not None and is_all_named(tool.parameters, asked)


def _meant(asked: str) -> frozenset[str]:
    return meanings(words(asked), about=True)


def _score(tool: FunctionTool, said: frozenset[str]) -> int:
    name = meanings(name_words(tool.name))
    worth = sum(_VERB_WORTH if word in _VERBS and len(name) > 1 else _NAME_WORTH for word in name & said)
    parameters, members = _parameter_words(tool)
    told = meanings(words(tool.description or "")) - name
    worth += len(told & said) * (_SHORT_WORTH if len(told) <= _SHORT else 1)
    return worth + len((parameters - told - name) & said) + _MEMBER_WORTH * len((members - name) & said)


def _parameter_words(tool: FunctionTool) -> tuple[frozenset[str], frozenset[str]]:
    """What the names of the parameters mean, and what the values mean that they may have."""
    properties = (tool.parameters or {}).get("properties")
    if not isinstance(properties, dict):
        return frozenset(), frozenset()
    members = [str(m) for part in properties.values() if isinstance(part, dict) for m in part.get("enum") or ()]
    return (
        meanings(word for key in properties for word in name_words(key)),
        meanings(word for member in members for word in name_words(member) or [member]),
    )


def _calls(tool: FunctionTool, asked: str) -> list[Call]:
    if tool.custom is not None and tool.custom.grammar is not None:
        return [_call(tool, {INPUT: _sentence(tool.custom.grammar, asked)})]
    known = meanings([*name_words(tool.name), *words(tool.description or "")])
    return [_call(tool, arguments) for arguments in arguments_of(tool.parameters or {}, asked, known)]


def _call(tool: FunctionTool, arguments: dict[str, Any]) -> Call:
    return Call(tool.name, encode(arguments).decode())


def _sentence(grammar: Grammar, asked: str) -> str:
    """A text of the grammar: what the message quotes or names, if that is one."""
    named = (way for span in (*quoted(asked), *spans(asked)) for way in span.ways)
    found = next((text for text in named if grammar.accepts(text)), None)
    return found if found is not None else grammar.sample() or ""
