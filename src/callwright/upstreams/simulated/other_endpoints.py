"""The answers of the simulated model at other endpoints than chat: completions, embeddings, ranks and scores.

A vector counts the words of its text, each at an index that a hash gives it: texts that share words are near each
other. Ranks and scores are the share of the question's words that a document has.
"""

import hashlib
import math
import re
import struct
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from msgspec import Raw

from callwright.events import Usage
from callwright.tolerant_json.codec import encode
from callwright.upstreams.base import GenerationRequest
from callwright.upstreams.handed import lacking

_Answer: TypeAlias = tuple[list[dict[str, Any]], list[str], int]  # the answer or its events; the input; tokens made
_TOKEN: Final = 4  # characters
_DIMENSIONS: Final = 64
_MOST_DIMENSIONS: Final = 4_096
_MAX_TOKENS: Final = 16  # OpenAI's default
_LAST_WORDS: Final = 8  # of a prompt, in its completion
_WORD: Final = re.compile(r"\w+")


def answered(path: str, generation: GenerationRequest) -> tuple[list[Mapping[str, Raw]], Usage]:
    """The answer, or the events of its stream, and its tokens. Raises `RequestError` for an endpoint it has not."""
    if path not in _MADE:
        raise lacking("the simulated model", path)
    answers, texts, made = _MADE[path](generation)
    given = sum(max(1, len(text) // _TOKEN) for text in texts)
    counted = {"prompt_tokens": given, "total_tokens": given + made}
    if made:
        counted["completion_tokens"] = made
    if generation.streamed:
        answers.append({**answers[0], "choices": [], "usage": counted})
    else:
        answers[0]["usage"] = counted
    written = [{name: Raw(encode(value)) for name, value in one.items()} for one in answers]
    return list(written), Usage(prompt_tokens=given, completion_tokens=made)


def _texts(given: Any) -> list[str]:
    """The texts of an input: one, several, or tokens in their place."""
    if isinstance(given, list) and not all(isinstance(one, int) for one in given):
        return [text for one in given for text in _texts(one)]
    return [" ".join(map(str, given)) if isinstance(given, list) else _text(given)]


def _text(given: Any) -> str:
    text = given.get("text") if isinstance(given, Mapping) else given
    return text if isinstance(text, str) else encode(given).decode()


def _completions(generation: GenerationRequest) -> _Answer:
    """Each prompt continues in its own last words."""
    fields = generation.fields
    prompts = _texts(fields.get("prompt", ""))
    limit = _TOKEN * (fields.get("max_tokens") or _MAX_TOKENS)
    stops = fields.get("stop") or ()
    stop = "|".join(re.escape(one) for one in ([stops] if isinstance(stops, str) else stops) if one)
    head = {"id": "cmpl-simulated", "object": "text_completion", "created": 0, "model": generation.model}
    events: list[dict[str, Any]] = []
    made = 0

    for number, prompt in enumerate(prompt for prompt in prompts for _ in range(fields.get("n") or 1)):
        text = f" … and so on: {' '.join(_WORD.findall(prompt)[-_LAST_WORDS:])}."
        text = re.split(stop, text, maxsplit=1)[0] if stop else text
        made += math.ceil(len(text[:limit]) / _TOKEN)
        sent = (prompt if fields.get("echo") else "") + text[:limit]
        reason = "length" if len(text) > limit else "stop"
        pieces = [sent[at : at + _TOKEN] for at in range(0, len(sent), _TOKEN)] if generation.streamed else []
        last = "" if generation.streamed else sent
        events += [
            {"index": number, "text": piece, "logprobs": None, "finish_reason": reason if at == len(pieces) else None}
            for at, piece in enumerate((*pieces, last))
        ]
    choices = [[event] for event in events] if generation.streamed else [events]
    return [{**head, "choices": some} for some in choices], prompts, made


def _embeddings(generation: GenerationRequest) -> _Answer:
    fields = generation.fields
    texts = _texts(fields.get("input", ""))
    size = min(_MOST_DIMENSIONS, fields.get("dimensions") or _DIMENSIONS)
    data: list[dict[str, Any]] = []
    for number, text in enumerate(texts):
        vector: Any = _vector(text, size)
        if fields.get("encoding_format") == "base64":
            vector = b64encode(struct.pack(f"<{size}f", *vector)).decode()
        data.append({"object": "embedding", "index": number, "embedding": vector})
    return [{"object": "list", "data": data, "model": generation.model}], texts, 0


def _vector(text: str, size: int) -> list[float]:
    """Of length 1."""
    vector = [0.0] * size
    for word in _WORD.findall(text.lower()) or [text]:
        number = int.from_bytes(hashlib.blake2s(word.encode(errors="replace"), digest_size=8).digest(), "little")
        vector[number % size] += 1.0 if number >> 63 else -1.0
    length = math.hypot(*vector)
    if not length:  # the words of the text have cancelled each other out
        return [1.0, *[0.0] * (size - 1)]
    return [round(value / length, 6) for value in vector]


def _rerank(generation: GenerationRequest) -> _Answer:
    fields = generation.fields
    query, documents = _text(fields.get("query", "")), fields.get("documents") or []
    texts = [_text(document) for document in documents]
    results: list[dict[str, Any]] = [
        {"index": number, "relevance_score": _overlap(query, text)}
        | ({"document": {"text": text}} if fields.get("return_documents") else {})
        for number, text in enumerate(texts)
    ]
    results.sort(key=lambda result: -result["relevance_score"])
    most = fields.get("top_n") or len(results)
    return [{"id": "rerank-simulated", "model": generation.model, "results": results[:most]}], [query, *texts], 0


def _score(generation: GenerationRequest) -> _Answer:
    first, second = (_texts(generation.fields.get(name, "")) for name in ("text_1", "text_2"))
    if len(first) == 1:
        first *= len(second)
    data = [
        {"index": number, "object": "score", "score": _overlap(one, other)}
        for number, (one, other) in enumerate(zip(first, second, strict=False))
    ]
    head = {"id": "score-simulated", "object": "list", "created": 0, "model": generation.model}
    return [{**head, "data": data}], [*first, *second], 0


def _overlap(query: str, text: str) -> float:
    asked, there = (set(_WORD.findall(each.lower())) for each in (query, text))
    return round(len(asked & there) / len(asked), 6) if asked else 0.0


_MADE: Final[Mapping[str, Callable[[GenerationRequest], _Answer]]] = {
    "/completions": _completions,
    "/embeddings": _embeddings,
    "/rerank": _rerank,
    "/score": _score,
}
