"""Growing conversations of several clients in turn, with control tokens of all families in every text: each request
gets the prompt and the answer that it gets from a gateway with empty caches.
"""

import json
import random
import re
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import pytest

import callwright
from callwright.dialects.base import dialect_names
from callwright.dialects.tokenizers import TOKENIZERS, added_tokens
from callwright.gateway.access.keys import hash_of
from callwright.gateway.config.config import Config, KeyConfig, ModelConfig, ServerConfig
from tests.support.fresh import caches, forget
from tests.support.growing_conversations import bodies
from tests.support.http_client import request
from tests.support.servers import Answer, Gateway, ModelServer, completion, said

PATHS: Final = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
KEYS: Final = {name: f"cw-{name}-" + name[0] * 40 for name in ("moss", "fern")}
SEEDS: Final = 4
# New in each answer: ids and times.
_OWN: Final = re.compile(r"\b(?:chatcmpl|resp|msg|rs|fc|fco|ctc|cmp|call|toolu|req)_?-?[0-9a-zA-Z_-]{12,}")
_TIMES: Final = re.compile(r'"(?:created|created_at|completed_at|_ms)": ?[0-9.]+')
_TEXTS: Final = ("content", "text", "output", "input", "thinking", "reasoning_content", "refusal", "data", "system")
_BETWEEN: Final = ("", "", " ", "\n", "<", "|", ">", "[", "</", "|>", "<|", "x", "é", '"', "\\", "long " * 60)


@cache
def tokens() -> Sequence[str]:
    """The marks of all dialects, and of each tokenizer some tokens."""
    marks = {mark for name in dialect_names() for mark in callwright.render([], dialect=name).marks}
    added = [random.Random(name).choices(added_tokens(name), k=9) for name in TOKENIZERS if added_tokens(name)]
    return [*sorted(marks), *[token for some in added for token in some]]


def with_tokens(value: Any, key: str) -> Any:
    """The same with control tokens, whole ones and parts, in each text: the same ones for the same key."""
    match value:
        case dict():
            return {name: _field(name, inner, f"{key} {name}") for name, inner in value.items()}
        case list():
            return [with_tokens(inner, f"{key} {number}") for number, inner in enumerate(value)]
    return value


def _field(name: str, value: Any, key: str) -> Any:
    if isinstance(value, str) and name in _TEXTS:
        return value + some_tokens(key + value)
    if name == "arguments" and value == "{}":
        return json.dumps({"note": some_tokens(key)})
    if name in ("parameters", "input_schema"):
        note = {"type": "string", "description": some_tokens(key), "enum": [some_tokens(f"{key} 1"), "b"]}
        return {**value, "properties": {**value.get("properties", {}), "note": note}}
    return with_tokens(value, key)


def some_tokens(key: str) -> str:
    random_ = random.Random(key)
    found = ""
    for _ in range(random_.choice((0, 1, 2, 6))):
        token = random_.choice(tokens())
        cut = random_.choice((0, 0, random_.randrange(len(token))))
        found += random_.choice(_BETWEEN) + token[cut:] + token[:cut]
    return found + random_.choice(_BETWEEN)


def conversations(seed: int) -> list[tuple[str, str, bytes]]:
    """The name of the client, the API and the body of each request: two conversations for each API, in random turns.
    Some clients have the same conversation.
    """
    random_ = random.Random(seed)
    models = random_.sample([name for name in _models("") if name.startswith("raw")], 2)
    models += random_.sample(list(_models("")), 2)
    rows = []
    for api in PATHS:
        for name in KEYS:
            own = random_.choice((f"{seed}", f"{seed} {name}"))
            told = random_.choice((seed, seed + 1, seed + 2))  # an even seed has bad requests, too
            going_on = bodies(api, told if random_.randrange(4) == 0 else 2 * told + 1)
            rows.append([(name, api, with_tokens(_instructed(body, api, own), own)) for body in going_on])
    requests = []
    while rows:
        row = random_.choice(rows)
        name, api, body = row.pop(0)
        asked = {**body, "model": random_.choice(models), "stream": random_.choice((True, False))}
        requests.append((name, api, json.dumps(asked, ensure_ascii=False).encode()))
        rows = [row for row in rows if row]
    return requests


def _instructed(body: dict[str, Any], api: str, key: str) -> dict[str, Any]:
    """The body with a system message, for half of the conversations."""
    if random.Random(key).randrange(2):
        return body
    if api == "messages":
        return {**body, "system": "Be kind."}
    field = "input" if api == "responses" else "messages"
    return {**body, field: [{"role": "system", "content": "Be kind."}, *body[field]]}


def answer(given: Any) -> Answer:
    """The answer of the model to this request: a text or a call of its dialect, always the same one."""
    key = json.dumps(given, sort_keys=True)
    text = "Well." + some_tokens(key)
    dialect = str(given["model"]).partition(" ")[2]
    if dialect and random.Random(key).randrange(3) == 0:
        call = {"name": "sow", "arguments": {"row": 7, "note": some_tokens(f"{key} note")}}
        text = callwright.write([call], dialect=dialect)
    return said(text) if "messages" in given else completion(text)


@cache
def _models(url: str) -> dict[str, ModelConfig]:
    how: dict[str, dict[str, Any]] = {"native": {"mode": "native"}}
    how |= {f"prompt {dialect}": {"mode": "prompt", "dialect": dialect} for dialect in dialect_names()}
    how |= {f"raw {dialect}": {"mode": "raw", "dialect": dialect, "server": "vllm"} for dialect in dialect_names()}
    return {name: ModelConfig(name=name, upstream=url, model=name, retries=0, **one) for name, one in how.items()}


class Asking:
    """A gateway with two keys."""

    def __init__(self, model: ModelServer) -> None:
        keys = tuple(KeyConfig(name=name, sha256=hash_of(key)) for name, key in KEYS.items())
        server = ServerConfig(history="mend")  # of random histories few are whole
        self._model = model
        self._gateway = Gateway(Config(server=server, models=tuple(_models(model.url).values()), keys=keys))

    def __enter__(self) -> "Asking":
        return self

    def __exit__(self, *_: object) -> None:
        self._gateway.stop()

    def outcome(self, name: str, api: str, body: bytes) -> Any:
        """The answer to the client, and the requests to the model's server."""
        self._model.plays(answer, answer, answer)
        headers = {"authorization": f"Bearer {KEYS[name]}"}
        reply = request(self._gateway.url + PATHS[api], body, headers=headers)
        told = _TIMES.sub("", _OWN.sub("an id", reply.text))
        asked = [(one.path, _OWN.sub("an id", json.dumps(one.body))) for one in self._model.asked]
        named = {key: value for key, value in reply.headers.items() if key.startswith("x-callwright")}
        return reply.status, told, named, asked


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_request_shows_in_the_answer_or_the_prompt_of_another(model: ModelServer, seed: int) -> None:
    requests = conversations(seed)
    with Asking(model) as grown, Asking(model) as fresh:
        outcomes = [grown.outcome(*one) for one in requests]
        kept = caches()
        for one, outcome in zip(requests, outcomes, strict=True):
            forget(kept)
            assert outcome == fresh.outcome(*one)
    assert any(asked for _, _, _, asked in outcomes)
