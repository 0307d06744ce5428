"""Model servers that pose as the real ones: what each answers on its paths, and what it does with a request's fields,
as data. No model is behind them: what is enforced is done, what is not asked for is chatted away.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final, Literal

from aiohttp import web
from msgspec import Struct

from callwright.conversation import AssistantTurn, Call
from callwright.dialects.base import get_dialect
from tests.support.servers import Answer, Asked, ModelServer, call_deltas, chat, completion, said, whole

CHATTER: Final = "Sure! Banana banana banana."
CITY: Final = '{"city":"Oslo"}'


class Pose(Struct, frozen=True):
    """What a server is like.

    `pages` answer GET by path. `holds` are the constraint fields that are enforced, `refuses` those that get a 400, by
    `path field`; every other is ignored. `calls`: what becomes of the calls that the model writes; `choices`: whether
    `tool_choice` counts. `raw`: whether control tokens survive in raw completions, if there are any; a field that must
    be false for it is named by `raw_needs`. `dialect` is the model's. `always` answers every POST.

    `skill`: what the model writes if no call is demanded: calls, only what it has to repeat, or none. `counts`: the
    tokens of a prompt, without and with tools, if the server counts them.
    """

    model: str
    pages: Mapping[str, Answer]
    dialect: str = "hermes"
    holds: frozenset[str] = frozenset()
    refuses: Mapping[str, str] = {}
    calls: Literal["made", "printed", "whole only", "fails"] = "made"
    choices: Literal["held", "ignored", "strings"] = "held"
    strict: bool = False
    raw: Literal["keeps", "loses", "none"] = "none"
    raw_needs: str | None = None
    reasoning: str | None = None
    shows: Mapping[str, Any] | None = None
    always: Answer | None = None
    skill: Literal["calls", "repeats", "none"] = "calls"
    counts: tuple[int, int] | None = None


def models_of(*names: str, **fields: Any) -> Answer:
    """A list of models; the fields are the first one's."""
    first, *others = ({"id": name, "object": "model"} for name in names)
    return whole({"object": "list", "data": [{**first, **fields}, *others]})


def _models(model: str, **fields: Any) -> Answer:
    return models_of(model, "another", **fields)


def _page(text: str, kind: str = "text/plain") -> Answer:
    return whole(text, kind=kind)


_QWEN: Final = "Qwen/Qwen3-8B"
_CHAT: Final = "/v1/chat/completions"
_RAW: Final = "/v1/completions"
_STRUCTURED: Final = tuple(
    f"structured_outputs.{kind}" for kind in ("regex", "json", "choice", "grammar", "structural_tag")
)


def _on(*paths: str, fields: tuple[str, ...]) -> frozenset[str]:
    return frozenset(f"{path} {field}" for path in paths for field in fields)


_VLLM: Final = (*_STRUCTURED, "response_format.json_schema")
_SGLANG: Final = ("regex", "ebnf", "response_format.json_schema", "response_format.structural_tag")
_SGLANG_OWN: Final = ("regex", "ebnf", "json_schema", "structural_tag")
_SGLANG_PAGES: Final = {
    "/get_server_info": whole({"version": "0.5.23", "model_path": "m", "context_length": 40960}),
    "/api/tags": whole({"models": []}),
    "/": _page("SGLang is running"),
}
_LM_STUDIO: Final = {
    path: whole({"error": f"Unexpected endpoint or method. (GET {path})"})
    for path in ("/", "/version", "/api/version", "/info", "/get_server_info", "/props")
}

TRANSFORMERS_API: Final = whole({"openapi": "3.1.0", "paths": {"/v1/models": {"get": {}}, "/load_model": {"post": {}}}})

POSES: Final[Mapping[str, Pose]] = {
    "vllm": Pose(
        "openai/gpt-oss-120b",
        {"/v1/models": _models("openai/gpt-oss-120b", owned_by="vllm", max_model_len=131072)}
        | {"/version": whole({"version": "0.33.0"})},
        dialect="harmony",
        holds=_on(_CHAT, _RAW, fields=_VLLM),
        raw="keeps",
        raw_needs="skip_special_tokens",
        reasoning="reasoning_content",
        strict=True,
    ),
    "vllm, reasoning parser": Pose(
        "Qwen/Qwen3-32B",
        {"/v1/models": _models("Qwen/Qwen3-32B", owned_by="vllm", max_model_len=40960)}
        | {"/version": whole({"version": "0.33.0"})},
        holds=_on(_CHAT, fields=_VLLM),
        raw="keeps",
        raw_needs="skip_special_tokens",
        reasoning="reasoning",
    ),
    "vllm behind a proxy": Pose(
        "served",
        {"/v1/models": _models("served", owned_by="someone", max_model_len=4096)}
        | {"/version": whole({"version": "1"})},
        holds=_on(_CHAT, _RAW, fields=_VLLM),
        raw="keeps",
        raw_needs="skip_special_tokens",
    ),
    "sglang": Pose(
        "Qwen/Qwen3-8B",
        {"/v1/models": _models("Qwen/Qwen3-8B", owned_by="sglang", max_model_len=40960), **_SGLANG_PAGES},
        holds=_on(_CHAT, _RAW, fields=_SGLANG) | _on("/generate", fields=_SGLANG_OWN),
        raw="keeps",
        raw_needs="skip_special_tokens",
        strict=True,
    ),
    "sglang behind a proxy": Pose(
        "Qwen/Qwen3-8B",
        {"/v1/models": _models("Qwen/Qwen3-8B", owned_by="someone"), **_SGLANG_PAGES}
        | {"/api/version": whole({"version": "0.0.0"})},
        raw="keeps",
        raw_needs="skip_special_tokens",
    ),
    "ollama": Pose(
        "qwen3:8b",
        {"/v1/models": _models("qwen3:8b", owned_by="library"), "/": _page("Ollama is running")}
        | {"/api/version": whole({"version": "0.33.0"})},
        holds=_on("/api/chat", fields=("format",)) | _on(_CHAT, fields=("response_format.json_schema",)),
        choices="ignored",
        raw="none",
        reasoning="reasoning",
        shows={"template": "{{ .Prompt }}", "model_info": {"qwen3.context_length": 40960}, "capabilities": ["tools"]},
    ),
    "ollama, no tools": Pose(
        "tinydolphin",
        {"/v1/models": _models("tinydolphin", owned_by="library"), "/": _page("Ollama is running")}
        | {"/api/version": whole({"version": "0.33.0"})},
        holds=_on("/api/chat", fields=("format",)),
        refuses={f"{_CHAT} tools": "registry.ollama.ai/library/tinydolphin:latest does not support tools"},
        shows={"template": "{{ .Prompt }}", "model_info": {"llama.context_length": 4096}},
    ),
    "lm studio": Pose(
        "qwen/qwen3-4b",
        {"/v1/models": _models("qwen/qwen3-4b", owned_by="organization_owner"), **_LM_STUDIO},
        holds=_on(_CHAT, fields=("response_format.json_schema",)),
        refuses={
            f"{_CHAT} response_format.{kind}": "'response_format.type' must be 'json_schema' or 'text'"
            for kind in ("json", "regex", "ebnf", "structural_tag")
        },
        choices="strings",
        raw="loses",
    ),
    "transformers": Pose(
        "acme/tiny",
        {"/v1/models": _models("acme/tiny", owned_by="acme"), "/health": whole({"status": "ok"})}
        | {"/openapi.json": TRANSFORMERS_API},
        calls="printed",
        choices="ignored",
    ),
    "calls are printed": Pose("served", {"/v1/models": _models("served")}, calls="printed", choices="ignored"),
    "its parser fails": Pose("served", {"/v1/models": _models("served")}, calls="fails"),
    "no calls in a stream": Pose("served", {"/v1/models": _models("served")}, calls="whole only"),
    "weak, its call is made": Pose(_QWEN, {"/v1/models": _models(_QWEN)}, skill="repeats", counts=(21, 213)),
    "weak, its call is printed": Pose(
        _QWEN,
        {"/v1/models": _models(_QWEN)},
        calls="printed",
        choices="ignored",
        skill="repeats",
        counts=(21, 213),
    ),
    "weaker, sees the tools": Pose(_QWEN, {"/v1/models": _models(_QWEN)}, skill="none", counts=(21, 213)),
    "weaker, of no known dialect": Pose("served", {"/v1/models": _models("served")}, skill="repeats", counts=(21, 213)),
    "it drops the tools": Pose(
        _QWEN, {"/v1/models": _models(_QWEN)}, calls="printed", choices="ignored", skill="none", counts=(42, 42)
    ),
    "weaker, nothing is counted": Pose(_QWEN, {"/v1/models": _models(_QWEN)}, skill="none"),
}


class PosingServer(ModelServer):
    """A server that poses as one of them."""

    def __init__(self, pose: str = "vllm", port: int = 0) -> None:
        self.pose = POSES[pose]
        super().__init__(port)

    @property
    def root(self) -> str:
        """The address without its `/v1`."""
        return self.url.removesuffix("/v1")

    def _route(self, router: web.UrlDispatcher) -> None:
        router.add_route("*", "/{path:.*}", self._posed)

    async def _posed(self, request: web.Request) -> web.StreamResponse:
        body = await request.json() if request.method == "POST" else None
        self.asked.append(Asked(request.path, dict(request.headers), body))
        if body is None:
            answer = self.pose.pages.get(request.path, _NOT_FOUND)
        else:
            answer = answer_of(self.pose, request.path, body)
        return await self._answered(answer, request)


_NOT_FOUND: Final = whole({"error": {"message": "Not Found", "code": 404}}, 404)


def answer_of(pose: Pose, path: str, body: Mapping[str, Any]) -> Answer:
    """What the server does with a request."""
    if pose.always is not None:
        return pose.always
    for field, value in _constraints(body.get("sampling_params", body)):
        if told := pose.refuses.get(f"{path} {field}"):
            return whole({"error": {"message": told}}, 400)
        if f"{path} {field}" in pose.holds and not _has_tools(body):
            return _wrote(path, _left(value))
    if path == _CHAT and pose.counts is not None and body.get("max_tokens") == 1:
        return _counted(pose.counts[bool(body.get("tools"))])
    if path == _CHAT:
        return _chatted(pose, body)
    if path == _RAW and pose.raw != "none":
        return _completed(pose, body)
    if path == "/api/show" and pose.shows is not None:
        return whole(pose.shows)
    known = {one.partition(" ")[0] for one in pose.holds}
    return _wrote(path, CHATTER) if path in known else _NOT_FOUND


def _has_tools(body: Mapping[str, Any]) -> bool:
    """Whether there are tools, also in a prompt: their constraints are beyond this server."""
    return "tools" in body or "get_weather" in str(body.get("prompt", ""))


def _constraints(body: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The constraint fields of a request, with their values."""
    plain = ("regex", "ebnf", "grammar", "json_schema", "structural_tag", "format")
    found = [(field, body[field]) for field in plain if field in body]
    found += [(f"structured_outputs.{kind}", value) for kind, value in body.get("structured_outputs", {}).items()]
    if "response_format" in body:
        found.append((f"response_format.{body['response_format']['type']}", body["response_format"]))
    return found


def _left(constraint: Any) -> str:
    """The one text that a constraint leaves, read out of it."""
    shown = constraint if isinstance(constraint, str) else json.dumps(constraint)
    if enum := re.search(r'"enum": ?\["(.+?)"\]', shown):
        (key,) = re.findall(r'"properties": ?\{"(\w+)"', shown)
        return json.dumps({key: enum[1]})
    quoted = re.search(r'"value": ?"(.+?)"|::= "(.+?)"|"regex": ?"(.+?)"|"ebnf": ?".*\\"(.+?)\\"|^\["(.+?)"\]$', shown)
    return next(filter(None, quoted.groups())) if quoted else shown


def _wrote(path: str, text: str) -> Answer:
    places: dict[str, Any] = {
        _CHAT: {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]},
        _RAW: {"choices": [{"text": text, "finish_reason": "stop"}]},
        "/generate": {"text": text},
        "/api/chat": {"message": {"role": "assistant", "content": text}},
    }
    return whole(places[path])


def _counted(tokens: int) -> Answer:
    message = {"role": "assistant", "content": "The"}
    usage = {"prompt_tokens": tokens, "completion_tokens": 1, "total_tokens": tokens + 1}
    return whole({"choices": [{"message": message, "finish_reason": "length"}], "usage": usage})


def _chatted(pose: Pose, body: Mapping[str, Any]) -> Answer:
    streams = bool(body.get("stream"))
    if not body.get("tools"):
        if "get_weather" in json.dumps(body["messages"]):  # the tools stand in the messages
            return said(_written("json", "get_weather", CITY))
        message = {"role": "assistant", "content": "Hello.", **({pose.reasoning: "Hm."} if pose.reasoning else {})}
        return said("Hello.") if streams else whole({"choices": [{"message": message, "finish_reason": "stop"}]})
    if told := pose.refuses.get(f"{_CHAT} tools"):
        return whole({"error": {"message": told}}, 400)
    choice = body.get("tool_choice", "auto")
    if pose.choices == "strings" and not isinstance(choice, str):
        told = "Invalid tool_choice type: 'object'. Supported string values: none, auto, required"
        return whole({"error": told}, 400)
    choice = "auto" if pose.choices == "ignored" else choice
    name, arguments = _call(pose, body, choice)
    if pose.calls == "fails":
        told = "The model produced output that does not match the expected peg-native format"
        return whole({"error": {"code": 500, "message": told, "type": "server_error"}}, 500)
    if name is None or pose.calls == "printed" or (pose.calls == "whole only" and streams):
        text = CHATTER if name is None else _written("hermes", name, arguments)
        return said(text) if streams else _wrote(_CHAT, text)
    if streams:
        return chat(*call_deltas(name, arguments[:4], arguments[4:]), finish="tool_calls")
    call = {"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}}
    called = {"role": "assistant", "content": None, "tool_calls": [call]}
    return whole({"choices": [{"message": called, "finish_reason": "tool_calls"}]})


def _call(pose: Pose, body: Mapping[str, Any], choice: Any) -> tuple[str | None, str]:
    """The call that the model makes of a request, if it makes one."""
    tools = {tool["function"]["name"]: tool["function"] for tool in body["tools"]}
    if "keep_code" in tools and pose.skill == "calls":
        return "keep_code", '{"code":"ok-7f3"}' if pose.strict else '{"code":"banana"}'
    said_last = body["messages"][-1]["content"]
    asks = "weather" in said_last and (
        pose.skill == "calls" or (pose.skill == "repeats" and said_last.startswith("Repeat"))
    )
    if choice == "none" or not (asks or choice == "required" or isinstance(choice, dict)):
        return None, ""
    return (choice["function"]["name"] if isinstance(choice, dict) else "get_weather"), CITY


def _completed(pose: Pose, body: Mapping[str, Any]) -> Answer:
    """A raw completion: of a prompt with tools it is a call, in the model's own words."""
    if not _has_tools(body):
        return _wrote(_RAW, CHATTER)
    prompt: str = body["prompt"]
    text = _written(pose.dialect, "get_weather", CITY)
    begun = next((size for size in range(len(text), 0, -1) if prompt.endswith(text[:size])), 0)
    text = text[begun:]
    if pose.raw == "loses" or (pose.raw_needs and body.get(pose.raw_needs) is not False):
        text = re.sub(r"<\|\w+\|>|</?tool_call>", "", text)
    return completion(text)


def _written(dialect: str, name: str, arguments: str) -> str:
    return get_dialect(dialect).write(AssistantTurn(calls=[Call(name, arguments)]))
