"""Raw completion endpoints: a prompt with control tokens in, the model's text with its control tokens out.

What must be said so that control tokens survive differs from server to server, and so does how a grammar is sent. A
server that refuses one is asked again without it: the answer is checked all the same. Sources: the request schemas of
vLLM 0.33, SGLang 0.5.23 and llama.cpp b11549.
"""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from toolwright.constraint.compile import Compiled, compiled, key_of, ready
from toolwright.constraint.project import Engine
from toolwright.constraint.shape import Constraint
from toolwright.errors import RequestError, UpstreamError
from toolwright.events import Usage
from toolwright.prompt import Prompt
from toolwright.upstreams.base import Delta, Generation, Stopped, TextDelta
from toolwright.upstreams.chat import CountedTokens
from toolwright.upstreams.http import HttpUpstream, Timeouts

__all__ = ["CHAT_ONLY", "CompletionsUpstream", "Flavour"]

log = logging.getLogger("toolwright.upstreams")

Flavour: TypeAlias = Literal["openai", "vllm", "sglang", "llamacpp"]

# Fields of a chat request that a completion endpoint does not know, or knows with another meaning.
CHAT_ONLY = frozenset(
    {
        *("logprobs", "top_logprobs", "reasoning_effort", "verbosity", "chat_template_kwargs"),
        *("metadata", "store", "service_tier", "prediction", "moderation", "safety_identifier"),
        *("prompt_cache_key", "prompt_cache_options", "prompt_cache_retention"),
    }
)

# Fields with which a client constrains the answer itself. Then nothing is added: servers take one constraint.
_CONSTRAINING = frozenset(
    {
        *("structured_outputs", "response_format", "grammar", "json_schema", "regex", "ebnf", "structural_tag"),
        *("guided_json", "guided_regex", "guided_choice", "guided_grammar"),
    }
)
# How servers speak of a constraint that they do not take.
_REFUSAL = re.compile(
    r"grammar|structur(?:ed|al)|response_format|ebnf|guid(?:ed|ance)|constrain|schema|extra (?:inputs|fields)"
    r"|unknown field|unrecogni[sz]ed",
    re.IGNORECASE,
)


class CompletionsUpstream(HttpUpstream):
    """A completion endpoint, for mode raw. `flavour` says which server's fields and paths are used."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str] | None = None,
        timeouts: Timeouts | None = None,
        *,
        flavour: Flavour = "openai",
    ) -> None:
        self._way = _WAYS[flavour]
        self._unwilling: set[bytes] = set()  # the keys of constraints that the server has refused
        super().__init__(url.rstrip("/").removesuffix("/v1") if flavour == "llamacpp" else url, headers, timeouts)

    async def stream(self, generation: Generation) -> AsyncGenerator[Delta, None]:
        """See `Upstream`."""
        constraint = generation.constraint
        key, begun = b"", False
        fields: dict[str, Any] = {}
        if constraint is not None and self._way.engine is not None and not _CONSTRAINING & generation.fields.keys():
            key = key_of(constraint)
            fields = await self._constraining(constraint, self._way.engine, key)
        if fields:
            try:
                async with aclosing(self._deltas(generation, fields)) as deltas:
                    async for delta in deltas:
                        begun = True
                        yield delta
                return
            except (RequestError, UpstreamError) as error:
                if begun or not _refuses(error):
                    raise
                self._unwilling.add(key)
                log.warning(
                    "%s refuses the grammar of a request and is asked without it: %.500r", self.name, str(error)
                )
        async with aclosing(self._deltas(generation, {})) as deltas:
            async for delta in deltas:
                yield delta

    async def _deltas(self, generation: Generation, fields: Mapping[str, Any]) -> AsyncGenerator[Delta, None]:
        stopped = False
        way = self._way
        async with aclosing(self.events(way.path, {**way.body(generation), **fields}, way.chunk)) as events:
            async for event in events:
                for delta in way.read(event):
                    stopped = stopped or isinstance(delta, Stopped)
                    yield delta
        if not stopped:
            raise self.cut()

    async def _constraining(self, constraint: Constraint, engine: Engine, key: bytes) -> dict[str, Any]:
        """The fields that hold the model to a constraint; none where that cannot be said, or was refused before."""
        if key in self._unwilling:
            return {}
        if ready(key, engine):
            found = compiled(constraint, engine, key)
        else:
            found = await asyncio.to_thread(compiled, constraint, engine, key)
        return self._way.constraining(found) if found is not None else {}


def _refuses(error: RequestError | UpstreamError) -> bool:
    """Whether a server's error speaks of the constraint. A server that is down, or slow, is not asked again."""
    if isinstance(error, UpstreamError) and error.fault != "status":
        return False
    return _REFUSAL.search(str(error)) is not None


def _fields(generation: Generation) -> dict[str, Any]:
    """The request's fields that a completion endpoint takes, the stops joined with the dialect's."""
    fields = {key: value for key, value in generation.fields.items() if key not in CHAT_ONLY}
    if (limit := fields.pop("max_completion_tokens", None)) is not None:
        fields["max_tokens"] = limit
    given = fields.get("stop") or ()
    stops = [given] if isinstance(given, str) else list(given)
    stops += [stop for stop in generation.stops if stop not in stops]
    if stops:
        fields["stop"] = stops
    return fields


def _prompt(generation: Generation) -> Prompt:
    assert generation.prompt is not None, "a completion endpoint needs a rendered prompt"
    return generation.prompt


def _openai_body(generation: Generation) -> dict[str, Any]:
    return {
        **_fields(generation),
        "model": generation.model,
        "prompt": _prompt(generation).wire_text,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def _shows_stops(generation: Generation) -> bool:
    """The stop token helps to read an output; but a stop of the client's own must not show in its answer."""
    return not generation.fields.get("stop")


def _vllm_body(generation: Generation) -> dict[str, Any]:
    body = _openai_body(generation) | {
        "skip_special_tokens": False,
        "spaces_between_special_tokens": False,
        "add_special_tokens": False,
        "include_stop_str_in_output": _shows_stops(generation),
    }
    if generation.stop_token_ids:
        body["stop_token_ids"] = list(generation.stop_token_ids)
    return body


def _sglang_body(generation: Generation) -> dict[str, Any]:
    body = _openai_body(generation) | {"skip_special_tokens": False, "no_stop_trim": _shows_stops(generation)}
    if generation.stop_token_ids:
        body["stop_token_ids"] = list(generation.stop_token_ids)
    return body


def _llamacpp_body(generation: Generation) -> dict[str, Any]:
    fields = _fields(generation)
    if (limit := fields.pop("max_tokens", None)) is not None:
        fields["n_predict"] = limit
    prompt = _prompt(generation)
    # Control tokens vanish from the text, and stops for them do nothing, unless they are named here.
    return {**fields, "prompt": prompt.wire_text, "stream": True, "preserved_tokens": list(prompt.controls)}


def _constrained_vllm(found: Compiled) -> dict[str, Any]:
    return {"structured_outputs": {"structural_tag": found.text}}


def _constrained_sglang(found: Compiled) -> dict[str, Any]:
    return {"response_format": msgspec.Raw(found.text.encode())}


def _constrained_llamacpp(found: Compiled) -> dict[str, Any]:
    if not found.trigger:
        return {"grammar": found.text}
    trigger = {"type": 1, "value": found.trigger}  # a word
    return {"grammar": found.text, "grammar_lazy": True, "grammar_triggers": [trigger]}


def _unconstrained(found: Compiled) -> dict[str, Any]:
    return {}


class _Choice(Struct):
    text: str | None = None
    finish_reason: str | None = None


class _Chunk(Struct):
    choices: list[_Choice] | None = None
    usage: CountedTokens | None = None


def _read_openai(chunk: _Chunk) -> Iterator[Delta]:
    for choice in chunk.choices or ():
        if choice.text:
            yield TextDelta(choice.text)
        if choice.finish_reason:
            yield Stopped("length" if choice.finish_reason == "length" else "stop")
    if chunk.usage:
        yield chunk.usage.usage()


class _LlamaTimings(Struct):
    cache_n: int | None = None


class _LlamaChunk(Struct):
    content: str | None = None
    stop: bool = False
    stop_type: str | None = None
    tokens_evaluated: int | None = None
    tokens_predicted: int | None = None
    timings: _LlamaTimings | None = None


def _read_llamacpp(chunk: _LlamaChunk) -> Iterator[Delta]:
    if chunk.content:
        yield TextDelta(chunk.content)
    if chunk.stop:
        cached = (chunk.timings and chunk.timings.cache_n) or 0
        yield Usage(chunk.tokens_evaluated or 0, chunk.tokens_predicted or 0, cached_tokens=cached)
        yield Stopped("length" if chunk.stop_type == "limit" else "stop")


class _Way(Struct, frozen=True):
    """How one server is asked and read."""

    path: str
    body: Callable[[Generation], dict[str, Any]]
    chunk: type[Any]
    read: Callable[[Any], Iterator[Delta]]
    engine: Engine | None = None
    constraining: Callable[[Compiled], dict[str, Any]] = _unconstrained


_WAYS: Mapping[Flavour, _Way] = {
    "openai": _Way("/completions", _openai_body, _Chunk, _read_openai),
    "vllm": _Way("/completions", _vllm_body, _Chunk, _read_openai, "xgrammar", _constrained_vllm),
    "sglang": _Way("/completions", _sglang_body, _Chunk, _read_openai, "xgrammar", _constrained_sglang),
    "llamacpp": _Way("/completion", _llamacpp_body, _LlamaChunk, _read_llamacpp, "llamacpp", _constrained_llamacpp),
}
