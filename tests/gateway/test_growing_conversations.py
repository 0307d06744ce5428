"""Conversations that go on, from clients of all APIs: model servers are asked, and clients answered, as if nothing had
come before.
"""

import itertools
import json
import random
import re
from typing import Any, Final

import pytest

from callwright.dialects.base import dialect_names
from callwright.gateway.config.config import ModelConfig
from tests.conftest import Served
from tests.support.growing_conversations import bodies
from tests.support.http_client import request
from tests.support.servers import Answer, ModelServer, completion, said

PATHS: Final = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
_BLANKS: Final = b" \t\n\r"
_NUMBERS: Final = itertools.count()
# What is made anew for each answer: ids and times.
_OWN: Final = re.compile(r"\b(?:chatcmpl|resp|msg|rs|fc|fco|ctc|cmp|call|toolu|req)_?-?[0-9a-zA-Z_-]{12,}")
_TIMES: Final = re.compile(r'"(?:created|created_at|completed_at|_ms)": ?[0-9.]+')


def alone(body: Any) -> bytes:
    """A body of which no part was ever written like this: each object has blanks of its own."""
    number = next(_NUMBERS)
    blanks = bytes(_BLANKS[number // 4**digit % 4] for digit in range(8))
    text = json.dumps(body).encode()
    outside = re.split(rb'("(?:[^"\\]|\\.)*")', text)  # blanks within texts would be others
    return b"".join(part if at % 2 else part.replace(b"{", b"{" + blanks) for at, part in enumerate(outside))


def answer(given: Any) -> Answer:
    return said("Well.") if "messages" in given else completion("Well.")


def outcome(url: str, model: ModelServer, path: str, body: bytes) -> Any:
    model.plays(answer, answer, answer)
    reply = request(url + path, body)
    told = _TIMES.sub("", _OWN.sub("an id", reply.text))
    asked = [(one.path, _OWN.sub("an id", json.dumps(one.body))) for one in model.asked]
    return reply.status, told, reply.headers.get("x-callwright-problems"), asked


@pytest.fixture
def ways(serve: Served, model: ModelServer) -> tuple[str, list[str]]:
    """A gateway, and the names of its models: the server asked in each way, with each dialect."""
    how: dict[str, dict[str, Any]] = {"native": {}}
    how |= {f"prompt {dialect}": {"mode": "prompt", "dialect": dialect} for dialect in dialect_names()}
    how |= {f"raw {dialect}": {"mode": "raw", "dialect": dialect, "server": "vllm"} for dialect in dialect_names()}
    models = [ModelConfig(name=name, upstream=model.url, model="served", retries=0, **one) for name, one in how.items()]
    return serve(*models), list(how)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("api", PATHS)
def test_a_conversation_that_goes_on_is_asked_and_answered_as_if_it_were_new(
    ways: tuple[str, list[str]], model: ModelServer, api: str, seed: int
) -> None:
    url, models = ways
    random_ = random.Random(f"{api} {seed}")
    some = random_.sample(models, 4)
    for body in bodies(api, seed):
        asked = {**body, "model": random_.choice(some)}
        text = json.dumps(asked).encode()
        cold = outcome(url, model, PATHS[api], alone(asked))
        assert [outcome(url, model, PATHS[api], text) for _ in range(2)] == [cold, cold]


def test_bodies_that_are_written_alone_say_the_same_and_are_told_apart(
    ways: tuple[str, list[str]], model: ModelServer
) -> None:
    url, _ = ways
    seen = set()
    for number in range(2):
        body = {"model": "native", "messages": [{"role": "user", "content": f"Row {number}{{"}]}
        assert json.loads(alone(body)) == body
        seen.add(str(outcome(url, model, PATHS["chat"], alone(body))))
    assert len(seen) == 2
