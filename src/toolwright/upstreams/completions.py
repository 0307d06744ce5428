"""Raw completion endpoints: a prompt with control tokens in, the model's text with its control tokens out.

What must be said so that control tokens survive differs from server to server. Sources: the request schemas of vLLM
0.33, SGLang 0.5.23 and llama.cpp b11549.
"""

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing
from typing import Any, Literal, TypeAlias

from toolwright.events import Usage
from toolwright.prompt import Prompt
from toolwright.upstreams.base import Delta, Generation, Stopped, TextDelta
from toolwright.upstreams.chat import read_usage
from toolwright.upstreams.http import HttpUpstream, Timeouts

__all__ = ["CompletionsUpstream", "Flavour"]

Flavour: TypeAlias = Literal["openai", "vllm", "sglang", "llamacpp"]

# Fields of a chat request that a completion endpoint does not know, or knows with another meaning.
_CHAT_ONLY = frozenset(
    {
        *("logprobs", "top_logprobs", "reasoning_effort", "verbosity", "chat_template_kwargs", "max_completion_tokens"),
        *("metadata", "store", "service_tier", "prediction", "moderation", "safety_identifier"),
        *("prompt_cache_key", "prompt_cache_options", "prompt_cache_retention"),
    }
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
        self._path, self._body, self._read = _FLAVOURS[flavour]
        super().__init__(url.rstrip("/").removesuffix("/v1") if flavour == "llamacpp" else url, headers, timeouts)

    async def stream(self, generation: Generation) -> AsyncGenerator[Delta, None]:
        """See `Upstream`."""
        stopped = False
        async with aclosing(self.events(self._path, self._body(generation))) as events:
            async for event in events:
                for delta in self._read(event):
                    stopped = stopped or isinstance(delta, Stopped)
                    yield delta
        if not stopped:
            raise self.cut()


def _fields(generation: Generation) -> dict[str, Any]:
    """The request's fields that a completion endpoint takes, the stops joined with the dialect's."""
    fields = {key: value for key, value in generation.fields.items() if key not in _CHAT_ONLY}
    limit = generation.fields.get("max_completion_tokens")
    if limit is not None:
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


def _vllm_body(generation: Generation) -> dict[str, Any]:
    body = _openai_body(generation) | {
        "skip_special_tokens": False,
        "spaces_between_special_tokens": False,
        "add_special_tokens": False,
        "include_stop_str_in_output": True,
    }
    if generation.stop_token_ids:
        body["stop_token_ids"] = list(generation.stop_token_ids)
    return body


def _sglang_body(generation: Generation) -> dict[str, Any]:
    body = _openai_body(generation) | {"skip_special_tokens": False, "no_stop_trim": True}
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


def _read_openai(event: Any) -> Iterator[Delta]:
    if not isinstance(event, dict):
        return
    for choice in event.get("choices") or ():
        if text := choice.get("text"):
            yield TextDelta(text)
        if reason := choice.get("finish_reason"):
            yield Stopped("length" if reason == "length" else "stop")
    if usage := event.get("usage"):
        yield read_usage(usage)


def _read_llamacpp(event: Any) -> Iterator[Delta]:
    if not isinstance(event, dict):
        return
    if text := event.get("content"):
        yield TextDelta(text)
    if event.get("stop"):
        prompt, completion = event.get("tokens_evaluated") or 0, event.get("tokens_predicted") or 0
        yield Usage(prompt, completion, cached_tokens=event.get("tokens_cached") or 0)
        yield Stopped("length" if event.get("stop_type") == "limit" else "stop")


_FLAVOURS: Mapping[Flavour, tuple[str, Callable[[Generation], dict[str, Any]], Callable[[Any], Iterator[Delta]]]] = {
    "openai": ("/completions", _openai_body, _read_openai),
    "vllm": ("/completions", _vllm_body, _read_openai),
    "sglang": ("/completions", _sglang_body, _read_openai),
    "llamacpp": ("/completion", _llamacpp_body, _read_llamacpp),
}
