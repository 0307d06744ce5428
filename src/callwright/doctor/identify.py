"""Identifies a server by its answers on paths that only this kind of server has.

A sign identifies the server, not its features: these are for the probes. SGLang answers Ollama's paths, so only
Ollama's own words count for it. The server of transformers does not name itself; its list of paths identifies it. LM
Studio and TensorRT-LLM have no sign.
"""

from collections.abc import Mapping
from typing import Any, Final

from callwright.chat_template.sources import ChatTemplate
from callwright.doctor.client import Reply, clipped, dig
from callwright.doctor.findings import NAMES, Identity, ServerName

# Below the base URL; the others are below the server's root.
MODELS: Final = "/models"
# Paths to ask if the list of models has identified the server.
OWN_PATHS: Final[Mapping[ServerName, tuple[str, ...]]] = {
    "llamacpp": ("/props",),
    "vllm": ("/version",),
    "sglang": ("/get_server_info",),
    "callwright": ("/healthz",),
}
# Paths to ask if it has not.
PATHS: Final = ("/", "/version", "/get_server_info", "/api/version", "/info")
# The description of its API, a large page: asked for if none of those has identified it.
API: Final = "/openapi.json"
# A path that only the server of transformers has.
_LOADS: Final = "/load_model"

_OWNERS: Final[Mapping[str, ServerName]] = {
    "llamacpp": "llamacpp",
    "vllm": "vllm",
    "sglang": "sglang",
    "callwright": "callwright",
}
_GREETINGS: Final[Mapping[str, ServerName]] = {"SGLang is running": "sglang", "Ollama is running": "ollama"}
_VERSIONS: Final[Mapping[ServerName, tuple[str, str]]] = {
    "llamacpp": ("/props", "build_info"),
    "vllm": ("/version", "version"),
    "sglang": ("/get_server_info", "version"),
    "ollama": ("/api/version", "version"),
    "tgi": ("/info", "version"),
    "callwright": ("/healthz", "version"),
}
# Sources of the context length, in tokens: the path, and the place in its answer.
_CONTEXTS: Final[tuple[tuple[str, tuple[str | int, ...]], ...]] = (
    ("/props", ("default_generation_settings", "n_ctx")),
    ("/get_server_info", ("context_length",)),
    ("/info", ("max_total_tokens",)),
)


def identify(replies: Mapping[str, Reply]) -> Identity:
    """The server, from its answers by path. Headers and owners come first: they are the server's own words."""
    server, sign = _signed(replies)
    path, field = _VERSIONS.get(server, ("", ""))
    version = dig(replies[path].json, field) if path in replies else None
    return Identity(server, clipped(version, 40) if isinstance(version, str) else None, sign)


def _signed(replies: Mapping[str, Reply]) -> tuple[ServerName, str]:
    for path, reply in replies.items():
        if reply.headers.get("server") == "llama.cpp":
            return "llamacpp", f"GET {path} has the header 'Server: llama.cpp'"
    models = replies.get(MODELS, Reply()).json
    owner = dig(models, "data", 0, "owned_by")
    if isinstance(owner, str) and owner in _OWNERS:
        return _OWNERS[owner], f"its models are owned by {owner!r}"
    greeting = replies.get("/", Reply()).body.decode(errors="replace")
    for words, server in _GREETINGS.items():
        if words in greeting:
            return server, f"GET / answers {words!r}"
    for path, server, fields in (
        ("/get_server_info", "sglang", ("version", "model_path")),
        ("/info", "tgi", ("version", "model_id")),
        ("/api/version", "ollama", ("version",)),
    ):
        answer = replies.get(path, Reply())
        if answer.status == 200 and all(isinstance(dig(answer.json, field), str) for field in fields):
            return _server_named(server), f"GET {path} answers {' and '.join(fields)}"
    if isinstance(dig(replies.get(API, Reply()).json, "paths", _LOADS), dict):
        return "transformers", f"GET {API} describes {_LOADS}"
    has_length = isinstance(dig(models, "data", 0, "max_model_len"), int)
    if has_length and isinstance(dig(replies.get("/version", Reply()).json, "version"), str):
        return "vllm", "GET /version answers a version, and its models have max_model_len"
    return "unknown", "no sign of a server that is known here (LM Studio and TensorRT-LLM have none)"


def _server_named(name: str) -> ServerName:
    return next(server for server in NAMES if server == name)


def model_names(models: Any) -> tuple[str, ...] | None:
    """The names in an answer to `GET /models`, or None if it is no such answer."""
    data = dig(models, "data")
    if not isinstance(data, list):
        return None
    names = [dig(entry, "id") for entry in data]
    return tuple(name for name in names if name and isinstance(name, str) and name.isprintable())


def context_of(replies: Mapping[str, Reply], model: str | None) -> int | None:
    """The context length in tokens, or None if the server does not report it."""
    for path, place in _CONTEXTS:
        if isinstance(found := dig(replies.get(path, Reply()).json, *place), int):
            return found
    entries = dig(replies.get(MODELS, Reply()).json, "data")
    for entry in entries if isinstance(entries, list) else ():
        if dig(entry, "id") == model:
            for place in (("max_model_len",), ("meta", "n_ctx"), ("context_length",)):
                if isinstance(found := dig(entry, *place), int):
                    return found
    return None


def template_of(replies: Mapping[str, Reply]) -> ChatTemplate | None:
    """The model's chat template, or None if the server does not show it."""
    told = replies.get("/props", Reply()).json
    template = dig(told, "chat_template")
    if not isinstance(template, str) or not template:
        return None
    begin, end = (word if isinstance(word, str) else "" for word in (dig(told, "bos_token"), dig(told, "eos_token")))
    return ChatTemplate(template, begin, end)
