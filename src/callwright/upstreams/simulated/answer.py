"""The answers of the simulated model: calls as long as the request asks for any, then a text from their outputs.

A request may ask for several things (`Add 3 and 4, then multiply 5 by 6`). Each part of it that a tool can do is a
task. The calls since the request count as done, so that a server that takes one call at a time gets them one after
the other.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import msgspec

from callwright.calls.custom_tools import input_arguments
from callwright.constraints.compile import callable_tools
from callwright.conversation import AssistantTurn, Call, Conversation, FunctionTool, Message, NamedTool, TextPart
from callwright.schema.keywords import properties, required
from callwright.tolerant_json.codec import decode, encode
from callwright.upstreams.simulated.filling import arguments_of, is_all_named, value_of
from callwright.upstreams.simulated.sampled import draw_text
from callwright.upstreams.simulated.session import Output, asks_for_summary, forbids_calls, session_of, summary_of
from callwright.upstreams.simulated.spans import QUOTED, spans
from callwright.upstreams.simulated.words import meaning, meanings, name_words, words

_MAX_READ: Final = 1_000  # characters that are read of the start of a request, and of its end
_ENOUGH: Final = 2  # a word of the tool's name, or two of its description
_NAME_WORTH: Final = 3
# Nothing is cut between quotation marks.
_CUT = re.compile(
    QUOTED.pattern + r"|(?P<cut>[.;!?]\s+|,?\s+and\s+then\s+|,?\s+then\s+|,?\s+and\s+(?:also\s+)?|,\s+)", re.IGNORECASE
)
_PATH = re.compile(r"(?!\S*://)[^\s@]*(?:[\w-]\.[A-Za-z]\w{0,4}|/[^\s@]*)")
_FILE: Final = meaning("file")
# A description's first sentence: long descriptions continue with advice, which would suit any request.
_AFTER_SENTENCE = re.compile(r"(?<=[.!?])\s|\n\s*\n")
_DEMAND = re.compile(r"\b(?:must|need to|have to|required?|always)\b[^.;!?\n]*\b(?:before|first)\b", re.IGNORECASE)


def answer(conversation: Conversation) -> AssistantTurn:
    """The text or the calls of the model."""
    said, outputs = session_of(conversation)
    asked = said if len(said) <= 2 * _MAX_READ else f"{said[:_MAX_READ]}\n{said[-_MAX_READ:]}"
    free = conversation.tool_choice == "auto" and (forbids_calls(said) or not conversation.tools)
    calls = _choose_calls(conversation, asked, outputs)
    if free and asks_for_summary(said):
        reply, reasoning = summary_of(conversation, said), "The user asks for a summary."
    elif calls:
        return AssistantTurn(f"The user asks for something that {calls[0].name} can do.", calls=calls)
    elif outputs:
        reply, reasoning = " ".join(output.sentence() for output in outputs), "The results are in, so I can answer."
    else:
        reply = f"You said: {said}" if said else "Hello! How can I help?"
        reasoning = "No tool is needed here." if conversation.tools else ""
    if conversation.response_format is not None:
        reply = encode(value_of(conversation.response_format.schema or {"type": "object"}, asked)).decode()
    return AssistantTurn(reasoning or None, Message("assistant", (TextPart(reply),)))


def chosen_word(choices: Sequence[str], conversation: Conversation) -> AssistantTurn:
    """The reply to the question whether the answer before was meant as a call: the first of the choices if the model
    did mean one, else the last.
    """
    before = msgspec.structs.replace(conversation, items=conversation.items[:-2], tool_choice="auto")
    return AssistantTurn(None, Message("assistant", (TextPart(choices[0 if answer(before).calls else -1]),)))


def _choose_calls(conversation: Conversation, asked: str, outputs: Sequence[Output]) -> list[Call]:
    """The calls that are still to be made now."""
    choice, tools = conversation.tool_choice, callable_tools(conversation)
    failed = any(output.failed and not output.refused for output in outputs)
    if not tools or (choice == "auto" and (failed or forbids_calls(asked))):
        return []
    made = Counter(output.name for output in outputs if not output.refused)
    left = made.copy()
    calls: list[Call] = []
    for call in _planned(tools, [(tools[0], asked)] if isinstance(choice, NamedTool) else _tasks(tools, asked)):
        left[call.name] -= 1
        if left[call.name] < 0:
            calls.append(call)
    names = {tool.name for tool in conversation.tools}
    calls = calls[sum(number for name, number in made.items() if name not in names) :]  # made through other tools
    if not calls and choice != "auto":
        # All is done, but a call is demanded: of the tool with the fewest calls, then of the most suitable one.
        tool = min(tools, key=lambda tool: (made[tool.name], -_worth(tool, asked)))
        calls = _calls(tool, asked)[:1]
    return _ready(calls) if conversation.parallel_tool_calls else calls[:1]


def _ready(calls: Sequence[Call]) -> list[Call]:
    """The calls up to the first that waits for another which names the same file."""
    for number, call in enumerate(calls):
        if any(path in call.arguments for before in calls[:number] for path in _paths(before)):
            return list(calls[:number])
    return list(calls)


# --- the tasks of a request ---


def _tasks(tools: Sequence[FunctionTool], asked: str) -> list[tuple[FunctionTool, str]]:
    """The parts of a request with the tool for each. A part for no other tool belongs to the part before it; a part
    after `then` is one of its own.
    """
    found: list[tuple[FunctionTool, int]] = []
    begin, is_new = 0, True
    for cut in (*(match for match in _CUT.finditer(asked) if match["cut"]), None):
        tool = _best(tools, asked[begin : cut.start() if cut else None])
        if tool is not None and (is_new or not found or tool is not found[-1][0]):
            found.append((tool, begin if found else 0))
        if cut:
            begin, is_new = cut.end(), "then" in cut[0].lower()
    if len(found) < 2:  # the whole has more words than its parts
        return [(tool, asked) for tool in (_best(tools, asked) or _all_named(tools, asked),) if tool is not None]
    parts: list[tuple[FunctionTool, str]] = []
    file = ""
    for (tool, start), (_, end) in pairwise([*found, (found[0][0], len(asked))]):
        part = asked[start:end]
        files = [span.forms[0] for span in spans(part) if span.kind == "path"]
        if file and not files and _wants_file(tool):
            part = f"{part} in {file}"  # the file of the part before
        file = files[-1] if files else file
        parts.append((tool, part))
    return parts


def _all_named(tools: Sequence[FunctionTool], asked: str) -> FunctionTool | None:
    named = (tool for tool in tools if tool.parameters is not None and is_all_named(tool.parameters, asked))
    return next(named, None)


def _wants_file(tool: FunctionTool) -> bool:
    return any(_FILE in meanings(name_words(key)) for key in required(tool.parameters))


def _best(tools: Sequence[FunctionTool], asked: str) -> FunctionTool | None:
    """The tool whose names and description share most words with a text; None if none shares enough."""
    tool = max(tools, key=lambda tool: _worth(tool, asked))
    return tool if _worth(tool, asked) >= _ENOUGH else None


def _worth(tool: FunctionTool, asked: str) -> int:
    """How well a tool suits a text. Quoted texts are values: they count only as the name of the tool."""
    said = words(QUOTED.sub(" ", asked))
    meant = meanings(said, with_topics=True)
    name = meanings(name_words(tool.name))
    about = words(_about(tool))
    described = meanings(about) - name
    parts = [part for part in properties(tool.parameters).values() if isinstance(part, dict)]
    members = [str(member) for part in parts for member in part.get("enum") or ()]
    values = meanings(word for member in members for word in name_words(member) or [member]) - name
    worth = _NAME_WORTH * len(name & meant) + 2 * len(values & meant)
    worth += len(described & meant) * (2 if len(described) <= 3 else 1)
    worth += 2 * bool(said and about and meaning(said[0]) == meaning(about[0]) and meaning(said[0]) in described)
    return worth + _NAME_WORTH * any(tool.name in match.groups() for match in QUOTED.finditer(asked))


def _about(tool: FunctionTool) -> str:
    return _AFTER_SENTENCE.split(tool.description or "", maxsplit=1)[0][:_MAX_READ]


# --- their calls ---


def _planned(tools: Sequence[FunctionTool], parts: Sequence[tuple[FunctionTool, str]]) -> list[Call]:
    """All calls for a request in order, each after the call that its tool demands: `You must Read the file before`."""
    planned: list[Call] = []
    for tool, part in parts:
        demands = " ".join(match[0] for match in _DEMAND.finditer(tool.description or "")).lower()
        named = {*re.findall(r"\w+", demands)}
        first = next((other for other in tools if other is not tool and other.name.lower() in named), None)
        for call in _calls(tool, part):
            for before, path in ((_calls(first, path)[0], path) for path in _paths(call)) if first else ():
                if path in _paths(before) and before not in planned:
                    planned.append(before)
            planned.append(call)
    return planned


def _paths(call: Call) -> list[str]:
    """The values of a call that look like files."""
    return [value for value in decode(call.arguments).values() if isinstance(value, str) and _PATH.fullmatch(value)]


def _calls(tool: FunctionTool, asked: str) -> list[Call]:
    if tool.custom is not None and tool.custom.grammar is not None:
        grammar = tool.custom.grammar
        named = (form for span in spans(asked) for form in span.forms if grammar.accepts(form))
        text = next(named, None)
        return [Call(tool.name, input_arguments(draw_text(grammar) if text is None else text))]
    known = meanings([*name_words(tool.name), *words(_about(tool))])
    found = arguments_of(tool.parameters or {}, asked, known)
    return [Call(tool.name, encode(arguments).decode()) for arguments in found]
