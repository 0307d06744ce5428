"""Bodies of requests: what is kept of one does not change what another one says."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from callwright.errors import RequestError
from callwright.gateway.config.config import ModelConfig
from callwright.settings.bounds import Bounds
from callwright.wire.body import decoded
from tests.conftest import Served
from tests.support.bounded import bounded
from tests.support.http_client import CHAT, request
from tests.support.responses_client import RESPONSES

BOUNDS = Bounds(max_tools=3, max_items=4)


@pytest.fixture(autouse=True)
def _small() -> Iterator[None]:
    with bounded(MAX_DEPTH=9, MAX_PATTERN_SIZE=50):
        yield


def tool(**schema: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "weigh", "parameters": {"type": "object", **schema}}}


def nested(levels: int) -> Any:
    return [nested(levels - 1)] if levels else "end"


GOOD: dict[str, object] = {
    "no tools": {"model": "m", "messages": []},
    "no object": [1, 2],
    "null for tools": {"tools": None, "model": "m"},
    "tools between others": {"model": "m", "tools": [tool()], "stream": True},
    "tools that are none": {"tools": "none", "model": "m"},
    "as many tools as may be": {"tools": [tool()] * 3},
    "as deep as may be, in tools": {"tools": nested(8)},
    "as deep as may be, elsewhere": {"tools": [tool()], "input": nested(8)},
    "a pattern": {"tools": [tool(properties={"code": {"type": "string", "pattern": "^[a-z]{2,9}$"}})]},
    "other letters": {"tools": [tool(description="Gewicht in ℓ 𝔤")], "model": "ä"},
}
BAD: dict[str, tuple[bytes, str]] = {
    "one tool too many": (json.dumps({"tools": [tool()] * 4}).encode(), "array too long"),
    "too many messages": (json.dumps({"tools": [tool()], "messages": [{}] * 5}).encode(), "array too long"),
    "too deep in tools": (json.dumps({"tools": nested(9)}).encode(), "expected at most 9 levels"),
    "too deep elsewhere": (json.dumps({"tools": [tool()], "input": nested(9)}).encode(), "expected at most 9 levels"),
    "a large pattern": (json.dumps({"tools": [tool(pattern="a{2000}")]}).encode(), "Invalid schema for function"),
    "a comma too many in tools": (b'{"model": "m", "tools": [{},]}', "line 1, column 2[89]"),
    "half a character in tools": (b'{"tools": ["\\ud83d"]}', "unpaired surrogate"),
    "no UTF-8 in tools": (b'{"tools": ["\xff"]}', "byte 0xff at position 12"),
    "something behind it": (b'{"tools": []} x', "Extra data"),
}


@pytest.mark.parametrize("given", GOOD.values(), ids=list(GOOD))
def test_a_body_says_the_same_however_often_it_comes(given: object) -> None:
    text = json.dumps(given, ensure_ascii=False)
    for body in (text.encode(), text, json.dumps(given, indent=1).encode(), text.encode()):
        value = decoded(body, BOUNDS)
        assert value == given
        if isinstance(value, dict):
            assert list(value) == list(given)  # type: ignore[call-overload]


@pytest.mark.parametrize(("body", "told"), BAD.values(), ids=list(BAD))
def test_a_bad_body_is_refused_each_time(body: bytes, told: str) -> None:
    for _ in range(2):
        with pytest.raises(RequestError, match=told):
            decoded(body, BOUNDS)


def test_of_two_fields_of_one_name_the_last_counts() -> None:
    body = json.dumps({"tools": [tool()]})[:-1] + ', "tools": [], "model": "a", "model": "b"}'
    assert decoded(body, BOUNDS) == {"tools": [], "model": "b"}


def test_tools_that_one_gateway_has_taken_may_be_too_much_for_another() -> None:
    body = json.dumps({"tools": [tool()] * 3}).encode()
    decoded(body, BOUNDS)
    with pytest.raises(RequestError, match="maximum length 2"):
        decoded(body, Bounds(max_tools=2))


def test_the_limit_of_all_schemas_counts_those_of_tools_and_answer_together() -> None:
    format_ = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}
    body = json.dumps({"tools": [tool()], "response_format": format_})
    tools_alone = len(json.dumps([tool()], separators=(",", ":")))
    with bounded(MAX_SCHEMA_BYTES=tools_alone + 5), pytest.raises(RequestError, match="schemas too large"):
        decoded(body, BOUNDS)


def test_tools_are_decoded_once_but_for_those_with_keys() -> None:
    asks = json.dumps({"tools": [tool(title="decoded once")]}), json.dumps({"tools": [tool(title="once")], "n": 1})
    for body in asks:
        first, second = decoded(body, BOUNDS), decoded(f" {body}", BOUNDS)
        assert first is not second
        assert first["tools"] is second["tools"]  # type: ignore[index]
    keyed = json.dumps({"tools": [{"type": "mcp", "server_label": "s", "authorization": "secret-1"}]})
    first, second = decoded(keyed, BOUNDS), decoded(keyed, BOUNDS)
    assert first == second
    assert first["tools"] is not second["tools"]  # type: ignore[index]


@pytest.mark.parametrize("mode", ["raw", "prompt"])
def test_answering_changes_nothing_in_what_is_kept(serve: Served, mode: Any) -> None:
    gateway = serve(ModelConfig(name="m", upstream="simulated", mode=mode, dialect="hermes"))
    weigh = tool(properties={"of": {"type": "string", "default": "it"}}, required=["of"])
    flat = {"type": "function", **weigh["function"]}
    space = {"type": "namespace", "name": "scales", "description": "Old ones.", "tools": [{**flat, "strict": None}]}
    later = {**flat, "name": "weigh_later", "defer_loading": True}
    search = {"type": "tool_search", "execution": "server"}
    question = {"role": "user", "content": "What does it weigh?"}
    asks: dict[str, dict[str, Any]] = {
        CHAT: {"messages": [question], "tools": [weigh], "tool_choice": "required"},
        RESPONSES: {"input": [question], "tools": [flat, space, later, search, {"type": "apply_patch"}]},
    }
    for path, fields in asks.items():
        given = {"model": "m", **fields}
        answers = [request(gateway + path, given) for _ in range(3)]
        assert [answer.status for answer in answers] == [200] * 3
        assert decoded(json.dumps(given).encode(), Bounds()) == given
        assert len({json.dumps(answer.json.get("tools")) for answer in answers}) == 1
