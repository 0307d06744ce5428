"""Examines a server: identifies it, then probes its features, in parallel if that is harmless.

Nothing that a server does raises: a closed port, a web page or nonsense are findings with a plain message.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from callwright.chat_template.detect import detect
from callwright.dialects.detect import Detected
from callwright.doctor.chat_models import can_chat
from callwright.doctor.client import Asker, Reply, clipped, dig
from callwright.doctor.fields import FIELDS, LLGUIDANCE, RequestField
from callwright.doctor.findings import Findings, Identity, ProbeResult, key_hint
from callwright.doctor.identify import API, MODELS, OWN_PATHS, PATHS, context_of, identify, model_names, template_of
from callwright.doctor.probes import (
    CHAT,
    CHATS,
    COMPLETIONS,
    TOOL_PROBES,
    Target,
    chat,
    completions,
    constraint,
    raw_call,
    tools_streamed,
)
from callwright.doctor.recommend import constraining, raw_works, server_kind_of, server_of
from callwright.errors import ConfigError
from callwright.turn.model import Mode
from callwright.upstreams.base import Server
from callwright.upstreams.base_urls import possible_base_urls, without_credentials

# `all` is for people who want a full report; `mode` runs only the probes needed to choose a mode; `server` finds out
# which server it is and which models it has, and asks none of them; `models` asks for its list of models alone.
Depth: TypeAlias = Literal["all", "mode", "server", "models"]
# Timeout of one request, or half of the total time if that is more.
_REQUEST_S: Final = 30.0
# Timeout for a list of models or a page about the server, which take no inference.
_PAGE_S: Final = 5.0
_SHOW: Final = "/api/show"
_NO_ACCESS: Final = (401, 403)
_NO_CACHE: Final = (
    "The server of transformers lists the models in the cache of Hugging Face, which is missing (HTTP 500). Name "
    "the model that it was started with: --model NAME."
)


class _Place(Struct, frozen=True):
    """The base URL at which the server answered, and its replies by path."""

    base: str
    root: str
    pages: Mapping[str, Reply]
    identity: Identity
    names: tuple[str, ...] | None
    message: str = ""
    evidence: str = ""


# Called with each result as it is found.
Watch: TypeAlias = Callable[[ProbeResult], None]


async def probe(
    url: str,
    *,
    model: str | None = None,
    api_key: str | None = None,
    headers: Mapping[str, str] | None = None,
    dialect: str | None = None,
    server: Server | None = None,
    timeout_s: float = 60.0,
    depth: Depth = "all",
    watch: Watch = lambda _: None,
) -> Findings:
    """Examine the server at a base URL, with or without its `/v1`, in at most `timeout_s` seconds.

    `model` defaults to the first listed one that can chat. `dialect` and `server` are detected if they are not given.
    `watch` is called with each result as it is found.
    """
    began = time.monotonic()
    given = dict(headers or {}) | ({"authorization": f"Bearer {api_key}"} if api_key else {})
    async with Asker(url, given, request_s=min(max(_REQUEST_S, timeout_s / 2), timeout_s), total_s=timeout_s) as asker:
        place = await _place(asker, url, model, only_list=depth == "models")
        found = await _examined(asker, place, model, dialect, server, depth, watch)
        asked_url, seconds = without_credentials(url.rstrip("/")), round(time.monotonic() - began, 2)
        return msgspec.structs.replace(found, asked_url=asked_url, requests=asker.requests, seconds=seconds)


# --- which server it is ---


async def _place(asker: Asker, url: str, model: str | None, *, only_list: bool) -> _Place:
    asked: dict[str, Reply] = {}
    for base in possible_base_urls(url):
        reply = asked[base] = await _page(asker, base + MODELS)
        if reply.fault or reply.status in _NO_ACCESS or model_names(reply.json) is not None:
            break
    lists = [base for base in asked if model_names(asked[base].json) is not None]
    answers = [base for base in asked if asked[base].status not in (0, 404)]
    base = (lists or answers or list(asked))[0]
    listed = asked[base]
    root = base.removesuffix("/v1").rstrip("/")
    pages = {MODELS: listed}
    message, evidence = _unusable(listed, model)
    if message and listed.status < 500:
        return _Place(base, root, pages, identify(pages), None, message, evidence)
    if only_list:
        return _Place(base, root, pages, identify(pages), model_names(listed.json), message, evidence)
    if message:  # a server that cannot list its models may still be one
        pages[API] = await _page(asker, root + API)
        identity = identify(pages)
        if identity.server == "transformers":
            message = _NO_CACHE
        return _Place(base, root, pages, identity, None, message, evidence)
    known = identify(pages).server
    paths = OWN_PATHS.get(known, PATHS)
    pages |= zip(paths, await asyncio.gather(*(_page(asker, root + path) for path in paths)), strict=True)
    identity = identify(pages)
    if identity.server == "unknown":
        pages[API] = await _page(asker, root + API)
        identity = identify(pages)
    names = model_names(listed.json)
    if identity.server == "ollama":
        pages[_SHOW] = await asker.post(root + _SHOW, {"model": model or _first_that_chats(listed, names) or ""})
    return _Place(base, root, pages, identity, names)


def _chat_models(listed: Reply, names: Iterable[str] | None) -> tuple[str, ...]:
    """The listed models that can chat."""
    entries = dig(listed.json, "data")
    declared = {dig(entry, "id"): entry for entry in entries if isinstance(entry, dict)} if names else {}
    return tuple(name for name in names or () if can_chat(name, declared.get(name)))


def _first_that_chats(listed: Reply, names: Iterable[str] | None) -> str | None:
    """The first model that can chat; the first of all if none can."""
    return next(iter((*_chat_models(listed, names), *(names or ()))), None)


async def _page(asker: Asker, url: str) -> Reply:
    try:
        async with asyncio.timeout(_PAGE_S):
            return await asker.get(url)
    except TimeoutError:
        return Reply(fault=f"silent for {_PAGE_S:g} s")


def _unusable(listed: Reply, model: str | None) -> tuple[str, str]:
    """Diagnosis from a failed `/models` request, if conclusive, and its evidence."""
    if listed.fault:
        return f"The server cannot be asked: {listed.fault}.", ""
    if listed.status in _NO_ACCESS:
        way_out = "Is its key right (--key-env, or api_key_env in a file)?"
        return f"The server refuses access (HTTP {listed.status}). {way_out}", listed.summary
    if model_names(listed.json) is not None:
        return "", ""
    if listed.is_page and listed.status < 400:
        return "A web page answers, not a model server. Is its base URL right, with its port and its /v1?", ""
    if model is None:
        way_out = "If its base URL is correct, name a model: --model NAME."
        told = listed.summary if listed.status >= 300 else clipped(listed.body.decode(errors="replace"), 80)
        return f"The server lists no models (HTTP {listed.status}). {way_out}", told
    return "", ""


# --- what works ---


async def _examined(
    asker: Asker,
    place: _Place,
    model: str | None,
    dialect: str | None,
    server: Server | None,
    depth: Depth,
    watch: Watch,
) -> Findings:
    names = place.names or ()
    listed = place.pages.get(MODELS, Reply())
    identity = place.identity
    found = Findings(
        url=without_credentials(place.base),
        message=place.message,
        evidence=place.evidence,
        server=identity.server,
        version=identity.version,
        sign=identity.sign,
        models=names,
        chat_models=_chat_models(listed, names),
        model=model or _first_that_chats(listed, names),
    )
    if place.message or depth in ("server", "models"):
        return found
    if found.model is None:
        return msgspec.structs.replace(found, message="The server lists no models: none is loaded. Load one.")
    spoken = Detected(dialect, "it was given") if dialect else await _dialect(place, found.model)
    found = msgspec.structs.replace(
        found,
        context=context_of(place.pages, found.model) or _context_shown(place.pages),
        dialect=spoken.dialect if spoken else None,
        dialect_reason=spoken.reason if spoken else "",
        dialect_options=spoken.options if spoken else (),
    )
    target = Target(asker, place.base, place.root, found.model or "", found.dialect)
    asked: Server = server or server_of(found)
    results = _quick(target, found, asked) if depth == "mode" else _whole(target, found, asked, watch)
    return await results


async def _quick(target: Target, found: Findings, server: Server) -> Findings:
    """Run only the probes that decide the mode, best first: each success makes the next unnecessary."""
    results: list[ProbeResult] = []
    generous = msgspec.structs.replace(target, thinks=True)  # it may reason: that was not probed
    flavour = server_kind_of(server)
    if found.dialect is not None:
        results += await _constrained(target, constraining("raw", found.dialect, flavour))
        constrain = not results or results[0].status == "enforced"
        results += await raw_call(generous, found.dialect, flavour, constrain=constrain)
    if not raw_works(msgspec.structs.replace(found, results=tuple(results))):
        streamed = await tools_streamed(generous)
        results.append(streamed)
        if streamed.status not in CHATS:
            results.append((await chat(target))[0])
        mode: Mode = "native" if streamed.status == "works" else "prompt"
        results += await _constrained(generous, constraining(mode, found.dialect, server))
    return msgspec.structs.replace(found, results=tuple(results))


async def _constrained(target: Target, probe: str | None) -> list[ProbeResult]:
    """The result of one probe of a constraint, if `probe` names one."""
    field = next((field for field in FIELDS if field.probe == probe), None)
    return [await constraint(target, field)] if field is not None else []


async def _whole(target: Target, found: Findings, server: Server, watch: Watch) -> Findings:
    (told, reasoning), (completed,) = await asyncio.gather(chat(target), _all([partial(completions, target)], watch))
    watch(told)
    results = [told, completed]
    has_chat, has_completions = told.status == "works", completed.status == "works"
    target = msgspec.structs.replace(target, thinks=reasoning is not None)
    flavour = server_kind_of(server)  # llama.cpp's own raw endpoint is another one
    if found.dialect is not None and (has_completions or flavour == "llamacpp"):
        read = await raw_call(target, found.dialect, flavour)
        for result in read:
            watch(result)
        results += read
    if has_chat:
        results += await _all([partial(tool_probe, target) for tool_probe in TOOL_PROBES], watch)
    fields = _fields(found, has_chat=has_chat, has_completions=has_completions)
    held = await _all([partial(constraint, target, field) for field in fields], watch)
    fault = "" if has_chat or has_completions else f"No model answers ({told.probe}: {told.status})."
    lark = next((result.status for result in held if result.probe == LLGUIDANCE), None)
    return msgspec.structs.replace(
        found,
        reasoning=reasoning,
        llguidance=None if lark is None else lark == "enforced",
        results=(*results, *held),
        message=fault and fault + key_hint(told.evidence),
        evidence=fault and told.evidence,
    )


async def _all(probes: Iterable[Callable[[], Awaitable[ProbeResult]]], watch: Watch) -> list[ProbeResult]:
    """The results of probes run concurrently. Coroutines are created only when they run, so that a stopped
    examination leaves none unawaited.
    """

    async def watched(probe: Callable[[], Awaitable[ProbeResult]]) -> ProbeResult:
        result = await probe()
        watch(result)
        return result

    return await asyncio.gather(*map(watched, probes))


def _fields(found: Findings, *, has_chat: bool, has_completions: bool) -> Iterable[RequestField]:
    """The fields that this server could have, at the endpoints that answer."""
    missing = {name for name, there in ((CHAT, has_chat), (COMPLETIONS, has_completions)) if not there}
    return [field for field in FIELDS if field.server == found.server and field.endpoint not in missing]


async def _dialect(place: _Place, model: str) -> Detected | None:
    """The dialect, detected from the template that the server shows and the model's name. Ollama's templates are in
    another language.
    """
    try:
        return await asyncio.to_thread(detect, template_of(place.pages), [model], raw=True)
    except ConfigError:
        return None


def _context_shown(pages: Mapping[str, Reply]) -> int | None:
    """The context length that Ollama reports for a model."""
    told = dig(pages.get(_SHOW, Reply()).json, "model_info")
    lengths = told.items() if isinstance(told, dict) else ()
    return next((it for name, it in lengths if name.endswith(".context_length") and isinstance(it, int)), None)
