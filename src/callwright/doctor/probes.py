"""The probes: each tests one feature of a server and returns the result.

Their prompts make the right answer unlikely by chance: constraints ask for another text than the prompt, a named tool
is the one that the prompt does not speak of.

A weak model does not call, whatever its server can do. So if there is no call, two things are found out: whether the
server shows the tools to the model, by the tokens of the prompt, and whether it parses a call that the model repeats.
"""

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, Final, TypeAlias

from msgspec import Struct

from callwright.conversation import AssistantTurn, Call, Conversation, FunctionTool, Message, TextPart
from callwright.dialects.base import get_dialect
from callwright.doctor.client import Asker, Reply, clipped, dig
from callwright.doctor.fields import ENDPOINTS, RequestField, judge
from callwright.doctor.findings import Group, ProbeResult, Status
from callwright.errors import CallwrightError, RequestError, is_unmet
from callwright.events import ArgumentsDelta, CallStarted, Event, Usage
from callwright.openai_format.messages import write_messages
from callwright.tolerant_json.codec import NotJsonError, decode
from callwright.turn.model import Model
from callwright.turn.run import run_turn
from callwright.turn.streams import each
from callwright.upstreams.base import Deltas, GenerationRequest, TextDelta, ToolCallDelta
from callwright.upstreams.chat import ChatUpstream
from callwright.upstreams.completions import CompletionsUpstream, ServerKind
from callwright.upstreams.http import Timeouts

CHAT: Final = "chat"
COMPLETIONS: Final = "completions"
RAW_CALL: Final = "a call in mode raw"
CONTROLS: Final = "control tokens"
TOOLS: Final = "tools"
TOOLS_STREAMED: Final = "tools, streamed"
# Of these probes, the results that a chat endpoint has that answers.
CHATS: Final[tuple[Status, ...]] = ("works", "ignored", "no call")

# A call takes some 30 tokens. A weak model may write on for as long as it is let.
_LIMIT: Final = 128
_SHORT_LIMIT: Final = 64
# For models that think first.
_LONG_LIMIT: Final = 1_024
_WEATHER: Final = "What is the weather in Oslo now? Use a tool."
_REPEAT: Final = "Repeat this exactly, and write nothing else:"
_CALLING: Final = "get_weather"
_OTHER: Final = "get_time"
_CITIES: Final = ("Oslo", "Bergen")
_CODE: Final = "ok-7f3"
# A call in a text, in whichever format: not prose that names the tool.
_PRINTED: Final = re.compile(rf"""{_CALLING}.{{0,80}}?\bcity\b.{{0,24}}?["'=:>].{{0,12}}?(?:Oslo|Bergen)""", re.DOTALL)
_THINKS: Final = re.compile(r"<think>|<\|channel\|>analysis|\[THINK\]|<seed:think>")
_DAY: Final = "2026-01-15"


def _function(name: str, description: str, key: str, values: tuple[str, ...]) -> FunctionTool:
    schema = {
        "type": "object",
        "properties": {key: {"type": "string", "enum": list(values)}},
        "required": [key],
        "additionalProperties": False,
    }
    return FunctionTool(name, description, schema)


_TWO: Final = (
    _function(_CALLING, "The weather in a city now.", "city", _CITIES),
    _function(_OTHER, "The time in a city now.", "city", _CITIES),
)
_STRICT: Final = FunctionTool(
    "keep_code", "Keep a code.", dict(_function("keep_code", "", "code", (_CODE,)).parameters or {}), strict=True
)


class Target(Struct, frozen=True):
    """The server and model to probe. `base`: base URL; `root`: the server's URL; `dialect`: the model's, if known;
    `thinks`: the model reasons first.
    """

    asker: Asker
    base: str
    root: str
    model: str
    dialect: str | None = None
    thinks: bool = False

    def url(self, path: str, *, in_v1: bool) -> str:
        """The address of a path."""
        return (self.base if in_v1 else self.root) + path

    def limit(self, tokens: int) -> int:
        """The maximum number of tokens of an answer."""
        return _LONG_LIMIT if self.thinks else tokens

    @property
    def timeouts(self) -> Timeouts:
        """For connections of an upstream's own."""
        left_s = max(0.01, self.asker.left_s)
        return Timeouts(left_s, left_s)


# --- the endpoints ---


async def chat(target: Target) -> tuple[ProbeResult, str | None]:
    """Whether there is a chat endpoint, and the field that has the reasoning."""
    reply = await _chat(target, [{"role": "user", "content": "Say hello."}], _LIMIT)
    if failed := _failed("endpoints", CHAT, reply):
        return failed, None
    message = dig(reply.json, "choices", 0, "message")
    if not isinstance(message, dict):
        return ProbeResult("endpoints", CHAT, "error", f"no chat answer: {clipped(_text(reply))}"), None
    content = _string(message.get("content"))
    field = next((name for name in ("reasoning_content", "reasoning") if _string(message.get(name))), None)
    if field is None and (found := _THINKS.search(content)):
        field = f"content, behind {found[0]}"
    if field is None and not content:
        return ProbeResult("endpoints", CHAT, "error", f"an answer without a text: {clipped(_text(reply))}"), None
    return ProbeResult(
        "endpoints", CHAT, "works", f"it says: {clipped(content, 80)}" if content else "it reasons"
    ), field


async def completions(target: Target) -> ProbeResult:
    """Whether there is a raw completion endpoint."""
    body = {"model": target.model, "prompt": "One, two, three,", "max_tokens": 8, "temperature": 0}
    reply = await target.asker.post(target.url("/completions", in_v1=True), body)
    if failed := _failed("endpoints", COMPLETIONS, reply):
        return failed
    text = dig(reply.json, "choices", 0, "text")
    if not isinstance(text, str):
        return ProbeResult("endpoints", COMPLETIONS, "error", f"no completion: {clipped(_text(reply))}")
    return ProbeResult("endpoints", COMPLETIONS, "works", f"it continues: {clipped(text, 80)}")


async def raw_call(target: Target, dialect: str, flavour: ServerKind, *, constrain: bool = True) -> list[ProbeResult]:
    """Whether the answer to a prompt rendered here parses as a call, and whether control tokens survive on the way."""
    upstream = CompletionsUpstream(target.base, target.asker.headers, target.timeouts, flavour=flavour)
    heard = _Overheard(upstream)
    model = Model(target.model, heard, target.model, mode="raw", dialect=dialect, retries=0, constrain=constrain)
    fields = {"max_tokens": target.limit(_LIMIT), "temperature": 0}
    conversation = _asking(_WEATHER, tool_choice="required")
    failure: CallwrightError | TimeoutError | None = None
    calls: list[str] = []
    arguments: list[str] = []
    try:
        async with target.asker.turn(), aclosing(each(run_turn(model, conversation, fields, today=_DAY))) as events:
            async for event in events:
                _note(event, calls, arguments)
    except (CallwrightError, TimeoutError) as error:
        failure = error
    finally:
        await upstream.close()
    text = "".join(heard.texts)
    if calls:
        called = f"{calls[0]}({clipped(''.join(arguments), 60)})"
        found = ProbeResult("endpoints", RAW_CALL, "works", f"{called} in dialect {dialect}")
    elif failure is not None and not is_unmet(failure):
        return [_failure("endpoints", RAW_CALL, failure)]
    else:
        found = ProbeResult("endpoints", RAW_CALL, "unclear", f"no call in dialect {dialect}: {clipped(text)}")
    return [_survival(heard.controls, written_call(dialect), found, text), found]


def _survival(controls: tuple[str, ...], written: str, call: ProbeResult, text: str) -> ProbeResult:
    """Whether control tokens survive. A call can be parsed without them if the prompt has forced its start."""
    if seen := next((control for control in controls if control in text), None):
        return ProbeResult("endpoints", CONTROLS, "works", f"{seen} comes through")
    if not controls:
        return ProbeResult("endpoints", CONTROLS, "works", "the dialect has none")
    if not any(control in written for control in controls):
        return ProbeResult("endpoints", CONTROLS, "unclear", "none in the text: calls in this dialect have none")
    if call.status == "works" or _CALLING in text:
        return ProbeResult("endpoints", CONTROLS, "ignored", f"they are lost: {clipped(text)}")
    return ProbeResult("endpoints", CONTROLS, "unclear", f"none in the text: {clipped(text)}")


class _Overheard:
    """An upstream that records the text it forwards, and the control tokens of the prompt."""

    def __init__(self, upstream: CompletionsUpstream) -> None:
        self._upstream = upstream
        self.name = upstream.name
        self.texts: list[str] = []
        self.controls: tuple[str, ...] = ()
        self.open, self.models, self.close = upstream.open, upstream.models, upstream.close
        self.window, self.hand_on = upstream.window, upstream.hand_on

    async def stream(self, generation: GenerationRequest) -> Deltas:
        if generation.prompt is not None:
            self.controls = generation.prompt.marks
        async with aclosing(self._upstream.stream(generation)) as deltas:
            async for batch in deltas:
                self.texts += [delta.text for delta in batch if isinstance(delta, TextDelta)]
                yield batch


# --- tools ---


class _Heard(Struct, frozen=True):
    """An answer: its calls, as names and arguments, and its text; or the result if it failed. `pieces`: the number in
    which arguments arrived.
    """

    calls: list[tuple[str, str]] = []
    said: str = ""
    pieces: int = 0
    failure: ProbeResult | None = None


_Listener: TypeAlias = Callable[[Target, str], Awaitable[_Heard]]


async def _tools(target: Target) -> ProbeResult:
    """Whether the server parses calls from its model's output."""
    return await _parsing(TOOLS, target, _hear)


async def tools_streamed(target: Target) -> ProbeResult:
    """Whether the server parses calls from its model's output, in a stream."""
    return await _parsing(TOOLS_STREAMED, target, _hear_streamed)


async def _hear(target: Target, asked: str) -> _Heard:
    reply = await _chat(target, asked, _LIMIT, tools=_TWO)
    return _Heard(_calls(reply), _content(reply), failure=_failed("tools", TOOLS, reply))


async def _hear_streamed(target: Target, asked: str) -> _Heard:
    conversation = _asking(asked)
    upstream = ChatUpstream(target.base, target.asker.headers, target.timeouts)
    generation = GenerationRequest(
        target.model,
        conversation,
        {"max_tokens": target.limit(_LIMIT), "temperature": 0},
        messages=write_messages(conversation),
        tools=[tool.as_openai() for tool in conversation.tools],
    )
    names: list[str] = []
    pieces: list[str] = []
    said: list[str] = []
    try:
        async with target.asker.turn(), aclosing(each(upstream.stream(generation))) as deltas:
            async for delta in deltas:
                match delta:
                    case ToolCallDelta(_, _, name, arguments):
                        names += [name] if name else []
                        pieces += [arguments] if arguments and len(names) < 2 else []
                    case TextDelta(text):
                        said.append(text)
    except (CallwrightError, TimeoutError) as error:
        return _Heard(failure=_failure("tools", TOOLS_STREAMED, error))
    finally:
        await upstream.close()
    calls = [(names[0], "".join(pieces))] if names else []
    return _Heard(calls, "".join(said), len(pieces))


async def _parsing(probe: str, target: Target, listen: _Listener) -> ProbeResult:
    """Whether calls are parsed. If the model makes none: why, and whether one is that it has to repeat."""
    heard = await listen(target, _WEATHER)
    if found := heard.failure or _judge_call(probe, heard):
        return found
    is_shown, told = await _probe_shown_tools(target)
    wrote = f"{told}, no call: {clipped(heard.said)}"
    if not is_shown:
        return ProbeResult("tools", probe, "unclear" if is_shown is None else "ignored", wrote)
    if target.dialect is not None:
        repeated = await listen(target, f"{_REPEAT}\n{written_call(target.dialect)}")
        found = None if repeated.failure else _judge_call(probe, repeated)
        if found is not None and found.status in ("works", "ignored"):
            return ProbeResult("tools", probe, found.status, f"{found.evidence}, when asked to repeat it; else no call")
    return ProbeResult("tools", probe, "no call", wrote)


async def _probe_shown_tools(target: Target) -> tuple[bool | None, str]:
    """Whether the server shows tools to the model, by the tokens of a prompt with and without them; None: it counts
    none.
    """
    counts: list[int] = []
    for tools in (_TWO, ()):
        reply = await _chat(target, _WEATHER, _SHORT_LIMIT, tools=tools, max_tokens=1)
        count = dig(reply.json, "usage", "prompt_tokens")
        if type(count) is not int or count <= 0:
            return None, "the server counts no tokens"
        counts.append(count)
    if counts[0] > counts[1]:
        return True, f"the model sees the tools ({counts[0]} tokens of prompt, {counts[1]} without them)"
    return False, f"the model does not see the tools ({counts[0]} tokens of prompt with and without them)"


def written_call(dialect: str) -> str:
    """A call as a dialect writes it."""
    return get_dialect(dialect).write(AssistantTurn(calls=[Call(_CALLING, json.dumps({"city": _CITIES[0]}))]))


async def _required(target: Target) -> ProbeResult:
    reply = await _chat(target, "Say hello.", _LIMIT, tools=_TWO, tool_choice="required")
    return _chosen("tool_choice required", reply, lambda name, _: name in (_CALLING, _OTHER))


async def _probe_named_choice(target: Target) -> ProbeResult:
    choice = {"type": "function", "function": {"name": _OTHER}}
    reply = await _chat(target, _WEATHER, _LIMIT, tools=_TWO, tool_choice=choice)
    return _chosen("tool_choice named", reply, lambda name, _: name == _OTHER)


async def _none(target: Target) -> ProbeResult:
    probe = "tool_choice none"
    reply = await _chat(target, _WEATHER, _SHORT_LIMIT, tools=_TWO, tool_choice="none")
    if failed := _failed("tools", probe, reply):
        return failed
    if calls := _calls(reply):
        return ProbeResult("tools", probe, "ignored", f"it called {clipped(calls[0][0])}")
    if _PRINTED.search(_content(reply)):
        return ProbeResult("tools", probe, "ignored", f"the text contains a call: {clipped(_content(reply))}")
    free = await _hear(target, _WEATHER)
    if free.calls or _PRINTED.search(free.said):
        return ProbeResult("tools", probe, "enforced", f"no call: {clipped(_content(reply), 80)}")
    return ProbeResult("tools", probe, "unclear", "no call, but the model makes none without it either")


async def _strict(target: Target) -> ProbeResult:
    reply = await _chat(target, "Call keep_code with the code banana.", _LIMIT, tools=(_STRICT,))
    return _chosen("strict", reply, lambda _, arguments: dig(arguments, "code") == _CODE, demanded=False)


# Those that need nothing but a chat endpoint.
TOOL_PROBES: Final[tuple[Callable[[Target], Awaitable[ProbeResult]], ...]] = (
    *(_tools, tools_streamed),
    *(_required, _probe_named_choice, _none, _strict),
)


def _judge_call(probe: str, heard: _Heard) -> ProbeResult | None:
    """The result if there is a call, parsed or in the text."""
    for name, arguments in heard.calls[:1]:
        told = f"{clipped(name)}({clipped(arguments, 60)})"
        if name != _CALLING:
            return ProbeResult("tools", probe, "unclear", f"another call than was asked for: {told}")
        if not isinstance(dig(_value(arguments), "city"), str):
            return ProbeResult("tools", probe, "unclear", f"a call with arguments that do not fit: {told}")
        if heard.pieces:
            told += f", arguments in {heard.pieces} piece{'s' * (heard.pieces != 1)}"
        return ProbeResult("tools", probe, "works", told)
    if _PRINTED.search(heard.said):
        return ProbeResult("tools", probe, "ignored", f"the text contains a call: {clipped(heard.said)}")
    return None


def _chosen(probe: str, reply: Reply, fits: Callable[[str, Any], bool], *, demanded: bool = True) -> ProbeResult:
    """The result of a probe that allows certain calls only. An answer that the limit of tokens cut proves nothing."""
    if failed := _failed("tools", probe, reply):
        return failed
    calls = _calls(reply)
    is_cut = dig(reply.json, "choices", 0, "finish_reason") == "length"
    if not calls:
        told = f"no call before the limit of tokens: {clipped(_content(reply))}"
        if is_cut:
            return ProbeResult("tools", probe, "unclear", told)
        told = f"no call: {clipped(_content(reply))}"
        return ProbeResult("tools", probe, "ignored" if demanded else "unclear", told)
    told = f"{clipped(calls[0][0])}({clipped(calls[0][1], 60)})"
    if is_cut and _value(calls[-1][1]) is None:
        return ProbeResult("tools", probe, "unclear", f"{told}, cut by the limit of tokens")
    held = all(fits(name, _value(arguments)) for name, arguments in calls)
    return ProbeResult("tools", probe, "enforced" if held else "ignored", told)


# --- constraints ---


async def constraint(target: Target, field: RequestField) -> ProbeResult:
    """Whether a constraint in one field is enforced."""
    endpoint = ENDPOINTS[field.endpoint]
    body = endpoint.body(target.model, target.limit(_SHORT_LIMIT), field.fields)
    reply = await target.asker.post(target.url(endpoint.path, in_v1=endpoint.in_v1), body)
    if failed := _failed("constraints", field.probe, reply):
        return failed
    text = _string(dig(reply.json, *endpoint.text))
    status = judge(text)
    if status == "enforced":
        return ProbeResult("constraints", field.probe, status, clipped(text))
    if not text and any(_string(dig(reply.json, *place)) for place in endpoint.reasoning):
        return ProbeResult("constraints", field.probe, "unclear", "it was still reasoning at the limit of tokens")
    return ProbeResult("constraints", field.probe, status, f"it wrote: {clipped(text)}")


# --- asking and reading ---


def _asking(text: str, **choice: Any) -> Conversation:
    return Conversation((Message("user", (TextPart(text),)),), _TWO, **choice)


async def _chat(
    target: Target,
    asked: str | list[dict[str, str]],
    limit: int,
    tools: tuple[FunctionTool, ...] = (),
    **fields: Any,
) -> Reply:
    messages = [{"role": "user", "content": asked}] if isinstance(asked, str) else asked
    body: dict[str, Any] = {"model": target.model, "messages": messages, "max_tokens": target.limit(limit)}
    if tools:
        body["tools"] = [tool.as_openai() for tool in tools]
    return await target.asker.post(target.url("/chat/completions", in_v1=True), {**body, "temperature": 0, **fields})


def _failed(group: Group, probe: str, reply: Reply) -> ProbeResult | None:
    """The result if there is no answer to read, else None."""
    if reply.fault:
        return ProbeResult(group, probe, "error", reply.fault)
    if reply.status >= 500 or reply.status in (401, 403, 429):
        return ProbeResult(group, probe, "error", reply.summary)
    if reply.status >= 300:
        return ProbeResult(group, probe, "refused", reply.summary)
    if not isinstance(reply.json, dict):
        return ProbeResult(group, probe, "error", f"no JSON object: {clipped(_text(reply))}")
    if dig(reply.json, "error") and dig(reply.json, "choices") is None:
        return ProbeResult(group, probe, "error", reply.summary)
    return None


def _failure(group: Group, probe: str, error: CallwrightError | TimeoutError) -> ProbeResult:
    """The result of a probe whose upstream has failed."""
    status: Status = "refused" if isinstance(error, RequestError) else "error"
    return ProbeResult(group, probe, status, clipped(str(error), 200) or "silent for too long")


def _note(event: Event | Usage, calls: list[str], arguments: list[str]) -> None:
    """Collect the names of calls, and the arguments of the first."""
    match event:
        case CallStarted(_, name):
            calls.append(name)
        case ArgumentsDelta(_, text) if len(calls) == 1:
            arguments.append(text)


def _calls(reply: Reply) -> list[tuple[str, str]]:
    found = dig(reply.json, "choices", 0, "message", "tool_calls")
    return [
        (_string(dig(call, "function", "name")), _string(dig(call, "function", "arguments")))
        for call in (found if isinstance(found, list) else ())
    ]


def _content(reply: Reply) -> str:
    return _string(dig(reply.json, "choices", 0, "message", "content"))


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _text(reply: Reply) -> str:
    return reply.body[:1_000].decode(errors="replace") or "(nothing)"


def _value(arguments: str) -> Mapping[str, Any] | None:
    try:
        value = decode(arguments)
    except NotJsonError:
        return None
    return value if isinstance(value, dict) else None
