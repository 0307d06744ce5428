"""Probes for chat templates: short conversations whose words occur in no template."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from callwright.chat_template.renderer import TemplateFailureError, renderer_of
from callwright.chat_template.repeats import common_start
from callwright.conversation import Call
from callwright.layout.calls import object_of

Message: TypeAlias = dict[str, Any]
# Messages, tools, and whether the answer is to begin; answers the prompt.
RenderMessages: TypeAlias = Callable[[Sequence[Message], Sequence[Mapping[str, Any]] | None, bool], str]

_TODAY: Final = "2026-01-01"
USER: Final = "Qurx"
SAID: Final = "Velm"
THOUGHT: Final = "Dwim"
OUTPUT: Final = "Ozzt"
FIRST: Final = Call("find_quark", '{"zeta": "Brux", "omega": "Klem"}', id="qk4wz7pxa")
SECOND: Final = Call("mix_lepton", '{"kappa": "Fnod"}', id="zr9mt2bvn")
# What templates call the reasoning of a message.
THOUGHTS: Final = ("reasoning_content", "reasoning", "thinking", "tool_plan")
_TYPES: Final = ("string", "string", "integer", "boolean", "array", "object")
TOOLS: Final = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": "Sorts the pieces.",
            "parameters": {
                "type": "object",
                "properties": {
                    key: {"type": kind, "description": "A piece."} for key, kind in zip(keys, _TYPES, strict=False)
                },
                "required": list(keys[:1]),
            },
        },
    }
    for name, keys in (("find_quark", ("zeta", "omega", "sigma", "theta", "rho", "phi")), ("mix_lepton", ("kappa",)))
]


class Telling(Struct, frozen=True):
    """How a template wants messages. `objects`: arguments are objects, not JSON text. `ids`: those of calls as they
    come, or as `functions.NAME:NUMBER`, of which some templates write nothing else. `named`: an output names its tool.
    `parts` are the roles whose texts are lists of parts.
    """

    objects: bool = True
    ids: Literal["plain", "functions"] = "plain"
    named: bool = False
    parts: tuple[str, ...] = ()

    def messages(self, messages: Sequence[Message]) -> list[Message]:
        """Messages in OpenAI's format as the template wants them."""
        ids: dict[str, tuple[str, str]] = {}
        return [self._message(message, ids) for message in messages]

    def _message(self, message: Message, ids: dict[str, tuple[str, str]]) -> Message:
        if message.get("role") in self.parts and isinstance(message.get("content"), str | None):
            message = {**message, "content": [{"type": "text", "text": message.get("content") or ""}]}
        if calls := message.get("tool_calls"):
            return {**message, "tool_calls": [self._call(call, ids) for call in calls]}
        if message.get("role") == "tool":
            id_, name = ids.get(str(message.get("tool_call_id")), (message.get("tool_call_id"), ""))
            return {**message, "tool_call_id": id_, **({"name": name} if self.named and name else {})}
        return message

    def _call(self, call: Message, ids: dict[str, tuple[str, str]]) -> Message:
        function = call["function"]
        name = function["name"]
        id_ = f"functions.{name}:{len(ids)}" if self.ids == "functions" else call["id"]
        ids[str(call["id"])] = (id_, name)
        given = object_of(function["arguments"]) if self.objects else function["arguments"]
        return {**call, "id": id_, "function": {**function, "arguments": given}}


TELLINGS: Final = (
    Telling(),
    Telling(ids="functions"),
    Telling(named=True),
    Telling(objects=False),
    Telling(objects=False, ids="functions"),
)


def render_with(template: str, bos_token: str, eos_token: str) -> RenderMessages:
    """A function that renders messages with a template and these two tokens."""
    renderer = renderer_of(template)
    fixed = {"bos_token": bos_token, "eos_token": eos_token}

    def render(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None, answers: bool) -> str:
        variables = {**fixed, "messages": messages, "tools": tools, "add_generation_prompt": answers}
        return renderer.render(variables, _TODAY)

    return render


class Probes:
    """Renders the probes of one template, with the messages written in one way."""

    def __init__(self, render: RenderMessages, telling: Telling) -> None:
        self._render = render
        self.telling = telling

    def text(self, *messages: Message, tools: bool = True, answers: bool = False) -> str:
        """The prompt of these messages after the user's. Raises `TemplateFailureError`."""
        told = self.telling.messages([{"role": "user", "content": USER}, *messages])
        return self._render(told, TOOLS if tools else None, answers)

    def prompt(self, messages: Sequence[Message]) -> str:
        """The prompt of whole messages. Raises `TemplateFailureError`."""
        return self._render(self.telling.messages(messages), TOOLS, False)

    def answer(self, *calls: Call, said: str = "", thought: str = "") -> str | None:
        """The text after the user message for this assistant answer; None if the template refuses it."""
        try:
            before, whole = self.text(), self.text(assistant(*calls, said=said, thought=thought))
        except TemplateFailureError:
            return None
        return whole[len(common_start(before, whole)) :]

    def shows_calls(self) -> bool:
        """Whether a call is shown with its arguments."""
        answer = self.answer(FIRST)
        return answer is not None and FIRST.name in answer and "Brux" in answer

    def opening(self, *messages: Message) -> str | None:
        """The generation prompt after these messages; None if the template refuses them."""
        try:
            before, whole = self.text(*messages), self.text(*messages, answers=True)
        except TemplateFailureError:
            return None
        return whole[len(common_start(before, whole)) :]


def assistant(*calls: Call, said: str = "", thought: str = "") -> Message:
    """An assistant's message in OpenAI's format, its reasoning by each name that templates know."""
    message: Message = {"role": "assistant", "content": said}
    if thought:
        message |= dict.fromkeys(THOUGHTS, thought)
    if calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in calls
        ]
    return message


def probes_of(render: RenderMessages) -> Probes:
    """The probes of a template, written in the first way in which it shows a call, or else in the first of all."""
    parts = roles_of_parts(render)
    told = [Probes(render, replace(telling, parts=parts)) for telling in TELLINGS]
    return next((probes for probes in told if probes.shows_calls()), told[0])


def roles_of_parts(render: RenderMessages) -> tuple[str, ...]:
    """The roles whose texts a template shows as a list of parts only: of a plain text nothing is left."""
    user, output = {"role": "user", "content": USER}, {"role": "tool", "tool_call_id": FIRST.id, "content": OUTPUT}
    found: tuple[str, ...] = ()
    for role, word, messages in (
        ("user", USER, [user]),
        ("assistant", SAID, [user, assistant(said=SAID)]),
        ("system", OUTPUT, [{"role": "system", "content": OUTPUT}, user]),
        ("tool", OUTPUT, [user, assistant(FIRST), output]),
    ):
        if role == "tool" and "user" not in found:
            continue  # no template is known that shows outputs alone so
        if word.lower() in _try_render(render, messages, found).lower():
            continue
        parts = _try_render(render, messages, (*found, role))
        if word in parts and not re.search(rf"""["']text["']: ["']{word}""", parts):
            found = (*found, role)
    return found


def _try_render(render: RenderMessages, messages: Sequence[Message], parts: tuple[str, ...]) -> str:
    try:
        return Probes(render, Telling(parts=parts)).prompt(messages)
    except TemplateFailureError:
        return ""
