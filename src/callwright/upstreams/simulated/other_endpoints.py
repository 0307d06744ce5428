"""The answers of the simulated model at other endpoints than chat: completions, embeddings, ranks and scores.

A vector counts the words of its text, each at an index that a hash gives it: texts that share words are near each
other. Ranks and scores are the share of the question's words that a document has.
"""

import hashlib
import math
import re
import struct
from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Raw

from callwright.events import Usage
from callwright.tolerant_json.codec import encode
from callwright.upstreams.base import GenerationRequest
from callwright.upstreams.handed import lacking

_TOKEN: Final = 4  # characters
_DIMENSIONS: Final = 64
_MOST_DIMENSIONS: Final = 4_096
_MAX_TOKENS: Final = 16  # OpenAI's default
_LAST_WORDS: Final = 8  # of a prompt, in its completion
_WORD: Final = re.compile(r"\w+")


def answered(path: str, generation: GenerationRequest) -> tuple[list[Mapping[str, Raw]], Usage]:
    """The answer, or the events of its stream, and its tokens. Raises `RequestError` for an endpoint it has not."""
    fields, model, made = generation.fields, generation.model, 0
    data: list[dict[str, Any]]
    match path:
        case "/completions":
            texts = _texts(fields.get("prompt", ""))
            choices, made = _completions(texts, fields, streamed=generation.streamed)
            head = {"id": "cmpl-simulated", "object": "text_completion", "created": 0, "model": model}
            parts = [{**head, "choices": some} for some in choices]
        case "/embeddings":
            texts = _texts(fields.get("input", ""))
            vectors = [_vector(text, fields) for text in texts]
            data = [{"object": "embedding", "index": at, "embedding": vector} for at, vector in enumerate(vectors)]
            parts = [{"object": "list", "data": data, "model": model}]
        case "/rerank":
            texts = [_text(fields.get("query", "")), *map(_text, fields.get("documents") or ())]
            parts = [{"id": "rerank-simulated", "model": model, "results": _ranks(texts, fields)}]
        case "/score":
            firsts, seconds = (_texts(fields.get(name, "")) for name in ("text_1", "text_2"))
            texts = [*firsts, *seconds]
            pairs = zip(firsts * len(seconds) if len(firsts) == 1 else firsts, seconds, strict=False)
            data = [{"object": "score", "index": at, "score": _overlap(*pair)} for at, pair in enumerate(pairs)]
            parts = [{"id": "score-simulated", "object": "list", "created": 0, "model": model, "data": data}]
        case _:
            raise lacking("the simulated model", path)
    given = sum(max(1, len(text) // _TOKEN) for text in texts)
    usage = {"prompt_tokens": given, "total_tokens": given + made} | ({"completion_tokens": made} if made else {})
    if generation.streamed:
        parts.append({**parts[0], "choices": []})
    parts[-1]["usage"] = usage
    written = [{name: Raw(encode(value)) for name, value in one.items()} for one in parts]
    return list(written), Usage(prompt_tokens=given, completion_tokens=made)


def _texts(given: Any) -> list[str]:
    """The texts of an input: one, several, or tokens in their place."""
    if isinstance(given, list) and not all(isinstance(one, int) for one in given):
        return [text for one in given for text in _texts(one)]
    return [" ".join(map(str, given)) if isinstance(given, list) else _text(given)]


def _text(given: Any) -> str:
    text = given.get("text") if isinstance(given, Mapping) else given
    return text if isinstance(text, str) else encode(given).decode()


def _completions(
    prompts: list[str], fields: Mapping[str, Any], *, streamed: bool
) -> tuple[list[list[dict[str, Any]]], int]:
    """The choices of each event, or of one answer, and their tokens. Each prompt continues in its own last words."""
    limit = _TOKEN * (fields.get("max_tokens") or _MAX_TOKENS)
    stops = fields.get("stop") or ()
    found: list[dict[str, Any]] = []
    made = 0
    for number, prompt in enumerate(prompt for prompt in prompts for _ in range(fields.get("n") or 1)):
        text = f" … and so on: {' '.join(_WORD.findall(prompt)[-_LAST_WORDS:])}."
        for stop in [stops] if isinstance(stops, str) else stops:
            text = text.partition(stop)[0] if stop else text
        sent = (prompt if fields.get("echo") else "") + text[:limit]
        pieces = [sent[at : at + _TOKEN] for at in range(0, len(sent), _TOKEN)] if streamed else [sent]
        found += [{"index": number, "text": piece, "logprobs": None, "finish_reason": None} for piece in pieces or [""]]
        found[-1]["finish_reason"] = "length" if len(text) > limit else "stop"
        made += math.ceil(len(text[:limit]) / _TOKEN)
    return [[one] for one in found] if streamed else [found], made


def _vector(text: str, fields: Mapping[str, Any]) -> list[float] | str:
    """Of length 1; in the encoding that the request asks for."""
    vector = [0.0] * min(_MOST_DIMENSIONS, fields.get("dimensions") or _DIMENSIONS)
    for word in _WORD.findall(text.lower()) or [text]:
        number = int.from_bytes(hashlib.blake2s(word.encode(errors="replace"), digest_size=8).digest(), "little")
        vector[number % len(vector)] += 1.0
    length = math.hypot(*vector)
    vector = [round(value / length, 6) for value in vector]
    packed = fields.get("encoding_format") == "base64"
    return b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode() if packed else vector


def _ranks(texts: list[str], fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The documents of a query, the first of the texts: the best first."""
    query, *documents = texts
    results: list[dict[str, Any]] = [
        {"index": at, "relevance_score": _overlap(query, text)}
        | ({"document": {"text": text}} if fields.get("return_documents") else {})
        for at, text in enumerate(documents)
    ]
    return sorted(results, key=lambda result: -result["relevance_score"])[: fields.get("top_n") or None]


def _overlap(query: str, text: str) -> float:
    """The share of the query's words that a text has."""
    asked, there = (set(_WORD.findall(each.lower())) for each in (query, text))
    return round(len(asked & there) / len(asked), 6) if asked else 0.0
