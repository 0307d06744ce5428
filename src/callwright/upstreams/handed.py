"""Requests that are forwarded unchanged to a server's other endpoints: embeddings, completions, ranks.

An answer is only known to be JSON, or events of JSON, with optional token counts, and, in a completion, a finish
reason.
"""

from contextlib import aclosing
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from callwright.errors import RequestError, UpstreamError
from callwright.events import Usage
from callwright.tolerant_json.codec import encode
from callwright.upstreams.answers import RawAnswer, RawFields, UnreadableError
from callwright.upstreams.base import GenerationRequest, HandedAnswers
from callwright.upstreams.http import HttpUpstream

# Statuses for a missing endpoint; llama.cpp answers 501 if it was started without it.
_LACKING: Final = (404, 405, 501)
_RANKS: Final = "/rerank"  # the only endpoint with a bare list as its answer
_USAGE: Final = {"stream_options": {"include_usage": True}}


class _Counts(Struct):
    prompt_tokens: Any = None
    completion_tokens: Any = None
    total_tokens: Any = None


class _Choice(Struct):
    finish_reason: Any = None


class _AnswerReader:
    """Passes each object on; an `EventReader`."""

    tell = None

    def __init__(self, *, streamed: bool, ranks: bool) -> None:
        self.kind: Any = RawAnswer
        self._ranks = ranks
        self.has_stopped = not streamed
        self.number = 0
        self.usage: Usage | None = None

    def marked_over(self) -> None:
        """See `EventReader`."""

    def read(self, event: RawAnswer, deltas: list[RawFields]) -> None:
        if isinstance(event, list):
            if not self._ranks:
                raise UnreadableError("sent a list where an object is expected")
            event = _ranked(event)
        self.number += 1
        if usage := read_usage(event):
            self.usage = usage
        if not self.has_stopped:
            choices = _read(event.get("choices"), list[_Choice])
            self.has_stopped = any(choice.finish_reason for choice in choices or ())
        deltas.append(event)


async def handed_on(server: HttpUpstream, generation: GenerationRequest, path: str) -> HandedAnswers:
    """See `Upstream.hand_on`. `path` is below the base URL."""
    streamed = generation.streamed
    body = {**generation.fields, "model": generation.model, **({"stream": True, **_USAGE} if streamed else {})}
    headers = generation.headers if streamed else {"accept": "application/json", **generation.headers}
    if generation.timings is not None:
        generation.timings.sends()
    reader = _AnswerReader(streamed=streamed, ranks=path == _RANKS)
    try:
        async with aclosing(server.events(path, body, reader, headers)) as batches:
            async for batch in batches:
                if reader.number > 1 and not streamed:
                    raise UpstreamError(
                        f"The upstream at {server.name} answered a stream where none was asked for.",
                        fault="protocol",
                        upstream=server.name,
                    )
                yield batch
    except UpstreamError as error:
        if error.status not in _LACKING:
            raise
        raise lacking(f"the server of this model, {server.name},", path, str(error)) from error
    if reader.usage is not None:
        yield [reader.usage]


def lacking(who: str, path: str, why: str = "") -> RequestError:
    """The error for a model that cannot be asked at an endpoint."""
    said = f" ({why.rstrip('.')})" if why else ""
    return RequestError(
        f"This model is not served at this endpoint: {who} has no {path}{said}. Ask a model whose server has it.",
        param="model",
        code="endpoint_not_supported",
        status=404,
    )


def read_usage(answer: RawFields) -> Usage | None:
    """The token counts in an answer. For ranks and embeddings servers send the prompt's, or the total."""
    counts = _read(answer.get("usage"), _Counts)
    if counts is None:
        return None
    total, made = _number(counts.total_tokens), _number(counts.completion_tokens)
    prompt = _number(counts.prompt_tokens) or max(0, total - made)
    return Usage(prompt_tokens=prompt, completion_tokens=made) if prompt or made else None


def _ranked(ranks: list[RawFields]) -> RawFields:
    """SGLang's ranks, which are a bare list with scores of another name, as Cohere, vLLM and llama.cpp write them."""
    results = [
        {"relevance_score" if name == "score" else name: value for name, value in rank.items()} for rank in ranks
    ]
    return {"results": Raw(encode(results))}


def _number(value: object) -> int:
    return value if type(value) is int and value > 0 else 0


def _read(value: Raw | None, kind: type[Any]) -> Any:
    """The decoded value; None if it is not of this type."""
    try:
        return None if value is None else msgspec.json.decode(value, type=kind)
    except (msgspec.DecodeError, RecursionError):
        return None
