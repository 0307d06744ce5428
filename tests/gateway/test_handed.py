"""Endpoints that are handed on: what the model's server gets, what the client gets back, and what stands in between."""

import base64
import json
import struct
from collections.abc import Mapping
from typing import Any, Final

import pytest

from callwright.gateway.access.keys import hash_of
from callwright.gateway.config.config import Config, KeyConfig, ModelConfig, ServerConfig
from callwright.settings import bounds
from callwright.settings.bounds import Bounds
from tests.conftest import Served
from tests.support.http_client import Live, Reply, request
from tests.support.servers import Answer, Gateway, ModelServer, sse, whole

KEY: Final = "cw-vera-" + "v" * 40
COMPLETIONS, EMBEDDINGS, RERANK, SCORE = "/v1/completions", "/v1/embeddings", "/v1/rerank", "/v1/score"
# Of each endpoint: a request but for its model, and an answer.
ASKED: Final[dict[str, dict[str, Any]]] = {
    COMPLETIONS: {"prompt": "def add(", "suffix": "return c", "max_tokens": 9, "top_k": 3},
    EMBEDDINGS: {"input": ["a pear", "a plum"], "encoding_format": "float", "dimensions": 2},
    RERANK: {"query": "fruit", "documents": ["a pear", {"text": "a car"}], "top_n": 1},
    SCORE: {"text_1": "fruit", "text_2": ["a pear", "a car"]},
}
USAGE: Final = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
ANSWERS: Final[dict[str, dict[str, Any]]] = {
    COMPLETIONS: {
        "id": "cmpl-1",
        "object": "text_completion",
        "model": "served/it",
        "choices": [{"index": 0, "text": "a, b):", "finish_reason": "stop", "stop_reason": None}],
        "usage": USAGE,
    },
    EMBEDDINGS: {
        "object": "list",
        "model": "served/it",
        "data": [{"object": "embedding", "index": 0, "embedding": [0.1234567890123456789, -1e-07]}],
        "usage": {"prompt_tokens": 7, "total_tokens": 7},
    },
    RERANK: {
        "id": "rerank-1",
        "model": "served/it",
        "usage": {"total_tokens": 7},
        "results": [{"index": 0, "document": {"text": "a pear"}, "relevance_score": 0.75}],
    },
    SCORE: {"object": "list", "model": "served/it", "data": [{"index": 0, "score": 0.5}], "usage": {"total_tokens": 7}},
}
PATHS: Final = tuple(ASKED)
every = pytest.mark.parametrize("path", PATHS)


def one(model: ModelServer, **how: Any) -> ModelConfig:
    return ModelConfig(**{"name": "it", "upstream": model.url, "model": "served/it", **how})


def answer(path: str) -> Answer:
    return whole(ANSWERS[path])


def post(gateway: str, path: str, key: str = "", **more: Any) -> Reply:
    headers = {"authorization": f"Bearer {key}"} if key else {}
    return request(gateway + path, {"model": "it", **ASKED[path], **more}, headers=headers)


# --- there and back ---


@every
@pytest.mark.parametrize(
    "how",
    [{}, {"mode": "prompt", "dialect": "hermes"}]
    + [{"mode": "raw", "dialect": "hermes", "server": server} for server in ("openai", "vllm", "sglang", "llamacpp")],
    ids=lambda how: "-".join(how.values()) or "native",
)
def test_the_server_gets_the_request_and_the_client_the_answer(
    serve: Served, model: ModelServer, path: str, how: dict[str, Any]
) -> None:
    gateway = serve(one(model, **how))
    model.plays(answer(path))
    reply = post(gateway, path)
    assert reply.status == 200, reply.text
    assert model.asked[0].path == path
    assert model.body == {**ASKED[path], "model": "served/it"}
    assert reply.json == {**ANSWERS[path], "model": "it"}


def test_values_come_back_as_the_server_wrote_them(serve: Served, model: ModelServer) -> None:
    written = '{"data":[{"embedding":[0.10000000000000000555, 1E-7]}],"model":"x"}'
    model.plays(whole(written))
    assert '[{"embedding":[0.10000000000000000555, 1E-7]}]' in post(serve(one(model)), EMBEDDINGS).text


@pytest.mark.parametrize("path", ["/rerank", "/v2/rerank", "/v1/rerank/"])
def test_ranks_are_asked_for_where_clients_look(serve: Served, model: ModelServer, path: str) -> None:
    model.plays(answer(RERANK))
    reply = request(serve(one(model)) + path, {"model": "it", **ASKED[RERANK]})
    assert (reply.status, model.asked[0].path) == (200, RERANK)


def test_a_bare_list_of_ranks_is_written_as_clients_read_it(serve: Served, model: ModelServer) -> None:
    model.plays(whole([{"score": 0.9, "document": "a pear", "index": 0, "meta_info": {"id": "1"}}]))
    assert post(serve(one(model)), RERANK).json == {
        "results": [{"relevance_score": 0.9, "document": "a pear", "index": 0, "meta_info": {"id": "1"}}]
    }


@pytest.mark.parametrize("path", [path for path in PATHS if path != RERANK])
def test_a_bare_list_is_no_answer_elsewhere(serve: Served, model: ModelServer, path: str) -> None:
    model.plays(whole([{"score": 0.9, "index": 0}]))
    reply = post(serve(one(model)), path)
    assert (reply.status, reply.error["code"]) == (502, "upstream_protocol")


CONFIGURED: Final = {"temperature": 0.5, "cache_prompt": True, "reasoning_effort": "low", "truncate_prompt_tokens": 9}


@pytest.mark.parametrize(
    ("path", "gone"),
    [
        (COMPLETIONS, {"temperature", "cache_prompt", "truncate_prompt_tokens"}),
        (EMBEDDINGS, {"truncate_prompt_tokens"}),
        (RERANK, {"truncate_prompt_tokens"}),
    ],
)
def test_fields_of_the_model_go_along_where_they_mean_something(
    serve: Served, model: ModelServer, path: str, gone: set[str]
) -> None:
    model.plays(answer(path))
    post(serve(one(model, fields=CONFIGURED)), path, truncate_prompt_tokens=3)
    assert model.body == {**{name: CONFIGURED[name] for name in gone}, **ASKED[path], "model": "served/it"} | {
        "truncate_prompt_tokens": 3
    }


# --- what may pass, and who may ask ---


def key(**how: Any) -> tuple[KeyConfig, ...]:
    return (KeyConfig(name="vera", sha256=hash_of(KEY), **how),)


@every
@pytest.mark.parametrize(("pass_fields", "passes"), [((), False), (("mm_processor_kwargs",), True), (("*",), True)])
def test_for_strangers_only_known_fields_pass_and_the_others_are_named(
    serve: Served, model: ModelServer, path: str, pass_fields: tuple[str, ...], passes: bool
) -> None:
    gateway = serve(one(model, pass_fields=pass_fields), keys=key())
    model.plays(answer(path))
    reply = post(gateway, path, KEY, mm_processor_kwargs={"size": 1})
    assert reply.status == 200, reply.text
    assert set(model.body) == {"model", *ASKED[path], *({"mm_processor_kwargs"} if passes else ())}
    assert reply.headers.get("x-callwright-dropped-fields") == (None if passes else "mm_processor_kwargs")


@every
def test_a_key_is_needed_and_must_be_for_the_model(serve: Served, model: ModelServer, path: str) -> None:
    gateway = serve(one(model), one(model, name="other"), keys=key(models=("other",)))
    assert post(gateway, path).error["code"] == "invalid_api_key"
    refused = post(gateway, path, KEY)
    assert (refused.status, refused.error["code"]) == (404, "model_not_found")
    assert not model.asked


@every
@pytest.mark.parametrize(
    "limit", [{"requests_per_minute": 1}, {"tokens_per_minute": 7}], ids=lambda limit: next(iter(limit))
)
def test_requests_and_tokens_count(serve: Served, model: ModelServer, path: str, limit: dict[str, int]) -> None:
    config = Config(models=(one(model),), keys=key(**limit))
    gateway = Gateway(config)
    try:
        model.plays(answer(path), answer(path))
        assert post(gateway.url, path, KEY).status == 200
        refused = post(gateway.url, path, KEY)
        assert (refused.status, refused.error["type"]) == (429, next(iter(limit)).partition("_")[0])
        metrics = request(f"{gateway.url}/metrics", method="GET", headers={"authorization": f"Bearer {KEY}"}).text
        assert 'callwright_key_tokens_total{key="vera",kind="input"} ' in metrics
    finally:
        gateway.stop()


def test_a_model_answers_so_many_at_once(model: ModelServer) -> None:
    gate = model.gate()
    gateway = Gateway(Config(models=(one(model, max_requests=1, queue_s=0),)))
    try:
        model.plays(Answer((gate, *answer(EMBEDDINGS).steps), headers=answer(EMBEDDINGS).headers), answer(RERANK))
        first = Live(gateway.url + EMBEDDINGS, json.dumps({"model": "it", **ASKED[EMBEDDINGS]}).encode())
        gate.wait_until_reached()
        refused = post(gateway.url, RERANK)
        assert (refused.status, refused.error["code"]) == (429, "rate_limit_exceeded")
        gate.open()
        assert first.status == 200
        first.close()
    finally:
        gateway.stop()


BAD: Final = (
    (COMPLETIONS, {"prompt": None}, "prompt", "invalid_type"),
    (COMPLETIONS, {"max_tokens": "9"}, "max_tokens", "invalid_type"),
    (EMBEDDINGS, {"input": {"a": 1}}, "input", "invalid_type"),
    (EMBEDDINGS, {"dimensions": 0}, "dimensions", "integer_below_min_value"),
    (RERANK, {"documents": "a pear"}, "documents", "invalid_type"),
    (RERANK, {"query": 7}, "query", "invalid_type"),
    (SCORE, {"model": 7}, "model", "invalid_type"),
)


@pytest.mark.parametrize(("path", "fields", "param", "code"), BAD)
def test_a_bad_request_is_told_as_openai_does(
    serve: Served, model: ModelServer, path: str, fields: dict[str, Any], param: str, code: str
) -> None:
    refused = post(serve(one(model)), path, **fields)
    assert (refused.status, refused.error["param"], refused.error["code"]) == (400, param, code)
    assert not model.asked


# --- streams ---


def event(text: str, finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {
        "object": "text_completion",
        "model": "served/it",
        "choices": [{"index": 0, "text": text, "finish_reason": finish}],
        **more,
    }


COUNTS: Final = {"object": "text_completion", "model": "served/it", "choices": [], "usage": USAGE}
TOLD: Final = (event("a, ", usage=None), event("b", "stop"))


@pytest.mark.parametrize("with_usage", [True, False])
def test_a_stream_comes_through_with_the_counts_where_they_are_wanted(
    serve: Served, model: ModelServer, with_usage: bool
) -> None:
    model.plays(Answer(sse(*TOLD, COUNTS, "[DONE]")))
    options: dict[str, Any] = {"stream_options": {"include_usage": True}} if with_usage else {}
    reply = post(serve(one(model)), COMPLETIONS, stream=True, **options)
    assert model.body["stream"] is True
    assert model.body["stream_options"] == {"include_usage": True}
    expected = [{**one_, "model": "it"} for one_ in (*TOLD, COUNTS)]
    if not with_usage:
        expected = [{k: v for k, v in one_.items() if k != "usage"} for one_ in expected[:2]]
    assert reply.events == expected


FAILING: Final[Mapping[str, tuple[Answer, str]]] = {
    "cut": (Answer(sse(event("a"))), "upstream_cut"),
    "reset": (Answer((*sse(event("a")), "reset")), "upstream_cut"),
    "error": (Answer(sse(event("a"), {"error": {"message": "out of memory"}})), "upstream_status"),
    "nonsense": (Answer((*sse(event("a")), b"data: {]\n\n")), "upstream_protocol"),
}


@pytest.mark.parametrize("case", FAILING)
def test_a_stream_that_fails_ends_in_an_error_event(serve: Served, model: ModelServer, case: str) -> None:
    played, code = FAILING[case]
    model.plays(played)
    *_, failure = post(serve(one(model)), COMPLETIONS, stream=True).events
    assert failure["error"]["code"] == code


def test_when_the_client_leaves_the_server_is_told(serve: Served, model: ModelServer) -> None:
    model.plays(Answer((*sse(event("a")), "silence")))
    body = {"model": "it", **ASKED[COMPLETIONS], "stream": True}
    with Live(serve(one(model)) + COMPLETIONS, json.dumps(body).encode()) as live:
        next(live.events())
    model.wait_until_left()


def test_while_the_server_thinks_there_are_heartbeats(model: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "HEARTBEAT_S", 0.05)
    gateway = Gateway(Config(models=(one(model),)))
    try:
        gate = model.gate()
        model.plays(Answer((gate, *sse(event("a", "stop"), "[DONE]"))))
        with Live(
            gateway.url + COMPLETIONS, json.dumps({"model": "it", "prompt": "", "stream": True}).encode()
        ) as live:
            events = live.events()
            assert next(events).startswith(b": ")
            gate.open()
            assert any(b"[DONE]" in each for each in events)
    finally:
        gateway.stop()


def test_a_server_that_does_not_stream_gives_one_event(serve: Served, model: ModelServer) -> None:
    model.plays(answer(COMPLETIONS))
    (only,) = post(serve(one(model)), COMPLETIONS, stream=True, stream_options={"include_usage": True}).events
    assert only["choices"][0]["text"] == "a, b):"


# --- servers that fail ---

NOT_THERE: Final = {
    404: {"detail": "Not Found"},
    405: {"detail": "Method Not Allowed"},
    501: {"error": {"message": "Start it with --embeddings"}},
}


@every
@pytest.mark.parametrize("status", NOT_THERE)
def test_a_server_without_the_endpoint_is_named(serve: Served, model: ModelServer, path: str, status: int) -> None:
    model.plays(whole(NOT_THERE[status], status))
    refused = post(serve(one(model)), path)
    assert (refused.status, refused.error["code"], refused.error["param"]) == (404, "endpoint_not_supported", "model")
    assert path.removeprefix("/v1") in refused.error["message"]
    assert str(status) in refused.error["message"]


ERRORS: Final = (
    (whole({"error": {"message": "dimensions must be 2", "code": "odd"}}, 400), 400, "odd", "dimensions must be 2"),
    (whole({"error": {"message": "The model `served/it` does not exist."}}, 404), 404, "model_not_found", "served/it"),
    (whole({"error": "busy"}, 429, retry_after="7"), 429, "rate_limit_exceeded", "busy"),
    (whole({"error": "oops"}, 500), 502, "upstream_status", "oops"),
    (whole("<html>hm</html>", 200, "text/html"), 502, "upstream_protocol", "text/html"),
    (whole("{]"), 502, "upstream_protocol", "{]"),
    (
        whole({"error": {"message": "This model's maximum context length is 9 tokens"}}, 400),
        400,
        "context_length_exceeded",
        "9",
    ),
    (Answer(sse(event("a", "stop"), event("b", "stop"), "[DONE]")), 502, "upstream_protocol", "stream"),
)


@every
@pytest.mark.parametrize(("played", "status", "code", "words"), ERRORS)
def test_errors_of_a_server_are_told_in_the_apis_form(
    serve: Served, model: ModelServer, path: str, played: Answer, status: int, code: str, words: str
) -> None:
    model.plays(played)
    refused = post(serve(one(model)), path)
    assert (refused.status, refused.error["code"]) == (status, code)
    assert words in refused.error["message"]


def test_another_server_of_the_model_is_asked_where_one_is_down(
    serve: Served, model: ModelServer, closed_port: str
) -> None:
    gateway = serve(one(model, upstream=[closed_port, model.url]))
    model.plays(answer(EMBEDDINGS), answer(EMBEDDINGS))
    assert [post(gateway, EMBEDDINGS).status for _ in range(2)] == [200, 200]


def test_a_server_that_is_down_is_named(serve: Served, closed_port: str) -> None:
    refused = request(serve(ModelConfig(name="it", upstream=closed_port)) + RERANK, {"model": "it", **ASKED[RERANK]})
    assert (refused.status, refused.error["code"]) == (503, "upstream_unreachable")


@pytest.mark.parametrize(
    ("limits", "values", "status"),
    [(Bounds(), 100, 200), (Bounds(max_answer_bytes=100_000), bounds.MAX_ANSWER_VALUES, 502)],
    ids=["many numbers are text", "many bytes"],
)
def test_an_answer_is_bounded_by_what_it_takes(
    model: ModelServer, limits: Bounds, values: int, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "MAX_ANSWER_VALUES", values)
    gateway = Gateway(Config(models=(one(model),), limits=limits))
    try:
        model.plays(whole({"data": [{"embedding": [0.5] * 50_000}]}))
        reply = post(gateway.url, EMBEDDINGS)
        assert reply.status == status, reply.text[:300]
    finally:
        gateway.stop()


def test_an_answer_of_many_objects_is_refused(model: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MAX_ANSWER_VALUES", 100)
    gateway = Gateway(Config(models=(one(model),)))
    try:
        model.plays(whole({f"a{number}": 0 for number in range(10_000)}))
        assert "more than 100 values" in post(gateway.url, EMBEDDINGS).error["message"]
    finally:
        gateway.stop()


# --- who watches ---


def test_they_are_rows_of_the_pages_and_counted_and_cannot_be_asked_again(serve: Served, model: ModelServer) -> None:
    gateway = Gateway(Config(models=(one(model),), server=ServerConfig(inspect="full")))
    try:
        model.plays(answer(EMBEDDINGS), whole({"error": "oops"}, 500))
        for _ in range(2):
            post(gateway.url, EMBEDDINGS)
        good, bad = request(f"{gateway.url}/ui/api/turns", method="GET").json["rows"]
        assert (good["endpoint"], good["input_tokens"], good["outcome"]) == (EMBEDDINGS, 7, "text")
        assert (bad["endpoint"], bad["error"], bad["outcome"]) == (EMBEDDINGS, "status", "failed")
        for row in (good, bad):
            assert request(f"{gateway.url}/ui/api/turns/{row['id']}", method="GET").status == 200
        again = request(f"{gateway.url}/ui/api/turns/{good['id']}/again", {})
        assert again.status == 400, again.text
        metrics = request(f"{gateway.url}/metrics", method="GET").text
        assert 'callwright_tokens_total{kind="input",model="it"} 7.0' in metrics
        assert 'callwright_upstream_errors_total{fault="status",model="it"} 1.0' in metrics
    finally:
        gateway.stop()


# --- the simulated model ---


def test_simulated_vectors_of_texts_that_share_words_are_near(simulated: str) -> None:
    texts = ["the red fox runs", "a red fox", "nineteen bananas"]
    reply = request(simulated + EMBEDDINGS, {"model": "native", "input": texts, "dimensions": 256})
    first, second, third = (entry["embedding"] for entry in reply.json["data"])
    near, far = (sum(a * b for a, b in zip(first, other, strict=True)) for other in (second, third))
    assert near > 0.3 > 0.1 > far
    assert {len(first), len(second), len(third)} == {256}
    packed = request(
        simulated + EMBEDDINGS, {"model": "native", "input": texts[1], "encoding_format": "base64", "dimensions": 256}
    )
    unpacked = struct.unpack("<256f", base64.b64decode(packed.json["data"][0]["embedding"]))
    assert list(unpacked) == pytest.approx(second, abs=1e-6)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("fields", "reasons"),
    [
        ({}, ["stop"]),
        ({"max_tokens": 2}, ["length"]),
        ({"n": 2}, ["stop", "stop"]),
        ({"prompt": ["a", "b"]}, ["stop", "stop"]),
    ],
)
def test_simulated_completions_go_on(simulated: str, stream: bool, fields: dict[str, Any], reasons: list[str]) -> None:
    reply = request(simulated + COMPLETIONS, {"model": "raw-hermes", "prompt": "The fox", **fields, "stream": stream})
    choices = [c for e in (reply.events if stream else [reply.json]) for c in e["choices"]]
    assert [c["finish_reason"] for c in choices if c["finish_reason"]] == reasons
    assert sorted({c["index"] for c in choices}) == list(range(len(reasons)))
    assert "".join(c["text"] for c in choices)


def test_the_simulated_model_ranks_by_shared_words(simulated: str) -> None:
    body = {"model": "native", "query": "red fox", "documents": ["a bird", "red fox", {"text": "red"}]}
    reply = request(simulated + RERANK, {**body, "top_n": 2, "return_documents": True})
    assert [(r["index"], r["relevance_score"], r["document"]["text"]) for r in reply.json["results"]] == [
        (1, 1.0, "red fox"),
        (2, 0.5, "red"),
    ]
