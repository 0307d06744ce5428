"""A model's own mistakes, as items of the conversation for a retry.

Its calls are repeated unchanged, with their problems as their outputs: it reads these in place of results.
"""

from collections.abc import Sequence
from typing import Final

from callwright.calls.json_forms import find_json_calls
from callwright.calls.toolset import Toolset
from callwright.conversation import Call, CallOutput, Conversation, Item, Message, NamedTool, TextPart
from callwright.events import Problem
from callwright.tolerant_json.find import json_places
from callwright.turn.attempt import Attempt, details_of

_NOT_RUN: Final = "Error: this call was not run."
_AGAIN_AS_JSON: Final = "Answer again, with the JSON that was asked for and nothing else."


def retry_items(conversation: Conversation, attempt: Attempt, wrong: Sequence[Problem], number: int) -> list[Item]:
    """The attempt, and the problems `wrong` with it. `number` of the attempt makes its ids unique."""
    said = attempt.text
    if wrong[0].kind == "invalid_answer":
        answer: list[Item] = [Message("assistant", (TextPart(said),))] if said else []
        return [*answer, _user(f"Error: {_explained(conversation, wrong)} {_AGAIN_AS_JSON}")]
    items: list[Item] = []
    outputs: list[Item] = []
    doubts = attempt.doubts
    written = said + "".join(problem.text for problem in doubts)
    in_text = _calls_in(conversation, written) if doubts and not attempt.calls else []
    if said and not in_text:
        items.append(Message("assistant", (TextPart(said),)))
    for count, call in enumerate(attempt.calls.values()):
        id_ = f"call_{number}_{count}"
        items.append(Call(call.started.name, call.arguments_text, id_))
        told = "This call is accepted and will be run. Do not repeat it."
        if call in attempt.bad:
            told = f"{_NOT_RUN} {_explained(conversation, call.wrong)} Make it again, corrected."
        outputs.append(CallOutput(id_, (TextPart(told),)))
    about_text = f"{_explained(conversation, doubts)} {_demand(conversation)}"
    for count, (name, arguments) in enumerate(in_text):
        id_ = f"call_{number}_{count}"
        items.append(Call(name, arguments, id_))
        outputs.append(CallOutput(id_, (TextPart(f"{_NOT_RUN} {about_text}"),)))
    if doubts and not in_text:
        outputs.append(_user(f"Error: no call was run. {about_text}"))
    return items + outputs


def _user(text: str) -> Message:
    return Message("user", (TextPart(text),))


def _calls_in(conversation: Conversation, text: str) -> list[tuple[str, str]]:
    """The calls in a text, as name and arguments, as they were written."""
    tools = Toolset(conversation.tools)
    nodes = [node for place in json_places(text, names=tools.names) for node in place.nodes]
    forms = [form for node in nodes for form in find_json_calls(node, tools) or ()]
    return [(form.name, form.arguments.text() if form.arguments else "{}") for form in forms if form.explicit]


def _explained(conversation: Conversation, wrong: Sequence[Problem]) -> str:
    details = details_of(wrong)
    names = ", ".join(tool.name for tool in conversation.tools)
    known = f" The tools are: {names}." if any(problem.kind == "unknown_tool" for problem in wrong) else ""
    return f"{details[:1].upper()}{details[1:]}.{known}"


def _demand(conversation: Conversation) -> str:
    choice = conversation.tool_choice
    if isinstance(choice, NamedTool):
        return f"Call the tool {choice.name} now."
    allowed = conversation.allowed_tools
    one = f"one of the tools {', '.join(allowed)}" if allowed else "one of the tools"
    return f"Call {one} now." if choice == "required" else "Make the call again, corrected."
