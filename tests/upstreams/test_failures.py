"""Model servers that fail, and clients that go away, over HTTP.

Before the first byte a failure is a status, after it an event and the end mark; it names the server and never its key.
"""

import asyncio
import http.client
import json
import socket
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import aclosing, closing
from typing import Any

import pytest
from msgspec import Struct

from callwright.errors import UpstreamError
from callwright.gateway.config.config import ModelConfig
from callwright.upstreams.http import HttpUpstream
from tests.conftest import KEY, Served, scripted_models
from tests.support.http_client import CHAT, Live, Reply, ask, read_event, request
from tests.support.outputs import ARGUMENTS, QUESTION, TEXT, TOOLS, block, played
from tests.support.servers import (
    HOST,
    Answer,
    ModelServer,
    Step,
    call_deltas,
    chunk,
    completion,
    said,
    sse,
    whole,
)

both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
RAW = "raw-hermes-vllm"
chat_and_raw = pytest.mark.parametrize("way", ["native", RAW])
LEAKS = (KEY, "Traceback", 'File "', ".py", "aiohttp", "msgspec", "object at 0x", "Error(", "{'")


def body(way: str, **fields: Any) -> dict[str, Any]:
    return {"model": way, "messages": [QUESTION], "tools": TOOLS, **fields}


@pytest.fixture
def keyed(serve: Served, model: ModelServer, closed_port: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A gateway that has a key for the scripted server, under its names and under those of ``impatient``, which wait a
    quarter of a second for it; and one for a server that is down.
    """
    monkeypatch.setenv("CALLWRIGHT_TEST_KEY", KEY)
    ways: dict[str, dict[str, Any]] = {"native": {}, RAW: {"mode": "raw", "dialect": "hermes", "server": "vllm"}}
    key: dict[str, Any] = {"api_key_env": "CALLWRIGHT_TEST_KEY"}
    patient = [ModelConfig(name=way, upstream=model.url, **key, **how) for way, how in ways.items()]
    hasty = [
        ModelConfig(name=impatient(way), upstream=model.url, idle_timeout_s=0.25, **key, **how)
        for way, how in ways.items()
    ]
    down = ModelConfig(name="down", upstream=closed_port.replace("//", f"//user:{KEY}@"))
    return serve(*patient, *hasty, down)


def impatient(way: str) -> str:
    return f"impatient-{way}"


class Failure(Struct, frozen=True):
    """What a server does, and what the client is told: a status when nothing was sent yet, and words."""

    title: str
    answer: Answer | Callable[[Any], Answer]
    status: int
    words: tuple[str, ...] = ()
    type: str = "server_error"
    code: str | None = "any"
    headers: tuple[tuple[str, str], ...] = ()


HTML = "<html><head><title>502 Bad Gateway</title></head><body><h1>nginx is sad</h1></body></html>"
LLAMACPP_500 = {
    "error": {
        "code": 500,
        "message": "The model produced output that does not match the expected peg-native format",
        "type": "server_error",
    }
}
LIMITED = {"error": {"message": "Slow down.", "type": "requests", "param": None, "code": "rate_limit_exceeded"}}
TOO_LONG = {
    "error": {
        "message": "This model's maximum context length is 4096 tokens.",
        "type": "BadRequestError",
        "param": "messages",
        "code": "context_length_exceeded",
    }
}
NO_KEY = {"error": {"message": f"Incorrect API key provided: {KEY}.", "type": "invalid_request_error", "code": 401}}
UNKNOWN = {
    "error": {"message": "The model `x` does not exist.", "type": "NotFoundError", "param": "model", "code": 404}
}
WRONG_PATH = {
    "error": {"message": "Invalid URL (POST /chat/completions)", "type": "invalid_request_error", "code": None}
}

EARLY = [
    Failure("HTTP 500 with JSON", whole(LLAMACPP_500, 500), 502, ("500", "peg-native")),
    Failure("HTTP 500 without a body", whole("", 500), 502, ("500",)),
    Failure("HTTP 503", whole({"detail": "Loading model"}, 503, retry_after="2"), 502, ("503", "Loading model")),
    Failure("an HTML page with 502", whole(HTML, 502, "text/html"), 502, ("502", "nginx is sad")),
    Failure("an HTML page with 200", whole(HTML, 200, "text/html"), 502, ("text/html", "nginx is sad")),
    Failure(
        "SGLang's error", whole({"object": "error", "message": "CUDA is out", "code": 500}, 500), 502, ("CUDA is out",)
    ),
    Failure(
        "TGI's error", whole({"error": "Model is overloaded", "error_type": "overloaded"}, 503), 502, ("overloaded",)
    ),
    Failure("an error with status 200", whole(LLAMACPP_500), 502, ("peg-native",)),
    Failure(
        "HTTP 429",
        whole(LIMITED, 429, retry_after="7"),
        429,
        ("Slow down",),
        type="rate_limit_error",
        code="rate_limit_exceeded",
        headers=(("retry-after", "7"),),
    ),
    Failure("HTTP 401", whole(NO_KEY, 401), 502, ("401",)),
    Failure("HTTP 403 without JSON", whole("Forbidden", 403, "text/plain"), 502, ("403", "Forbidden")),
    Failure(
        "HTTP 400",
        whole(TOO_LONG, 400),
        400,
        ("maximum context length is 4096",),
        type="invalid_request_error",
        code="context_length_exceeded",
    ),
    Failure(
        "SGLang's 400",
        whole(
            {"object": "error", "message": "top_k must be -1", "type": "BadRequest", "param": None, "code": 400}, 400
        ),
        400,
        ("top_k must be -1",),
        type="invalid_request_error",
    ),
    Failure(
        "FastAPI's 422",
        whole({"detail": [{"loc": ["body", "top_k"], "msg": "value is not a valid integer"}]}, 422),
        400,
        ("top_k", "value is not a valid integer"),
        type="invalid_request_error",
    ),
    Failure(
        "HTTP 404 of an unknown model", whole(UNKNOWN, 404), 404, ("does not exist",), type="invalid_request_error"
    ),
    Failure(
        "HTTP 404 of a model that is named in the message only",
        lambda asked: whole({"error": {"message": f'model "{asked["model"]}" not found, try pulling it'}}, 404),
        404,
        ("try pulling it",),
        type="invalid_request_error",
        code="model_not_found",
    ),
    Failure(
        "HTTP 404 of a model by its code",
        whole({"error": {"message": "No such thing.", "code": "model_not_found"}}, 404),
        404,
        ("No such thing",),
        type="invalid_request_error",
        code="model_not_found",
    ),
    Failure("HTTP 404 of a wrong path", whole(WRONG_PATH, 404), 502, ("404", "Invalid URL", "base URL")),
    Failure("HTTP 404 without JSON", whole("404 page not found", 404, "text/plain"), 502, ("page not found", "POST")),
    Failure("HTTP 404 of FastAPI", whole({"detail": "Not Found"}, 404), 502, ("404", "Not Found", "base URL")),
    Failure("HTTP 500 with too many brackets", whole("[" * 60_000, 500), 502, ("500",)),
    Failure("a reset before the answer", Answer(("reset",)), 503),
    Failure("a close before the answer", Answer(("cut",)), 503),
    Failure("a reset before the first event", Answer((b": hi\n\n", "reset")), 502),
    Failure("an empty stream", Answer(()), 502),
    Failure("a stream of the end mark only", Answer(sse("[DONE]")), 502),
    Failure("garbage instead of an event", Answer(sse("{not json")), 502, ("{not json",)),
    Failure("garbage instead of JSON", whole("{not json"), 502, ("{not json",)),
    Failure("an error as the first event", Answer(sse(LLAMACPP_500)), 502, ("peg-native",)),
    Failure("an error event with its type", Answer((b"event: error\n", *sse(LLAMACPP_500))), 502, ("peg-native",)),
    Failure("an answer that is a list", whole([1, 2]), 502),
    Failure("an answer that is a word", whole("null"), 502),
    Failure("an answer without choices", whole({"id": "x"}), 502),
    Failure("choices that are none", Answer(sse({"choices": [None]})), 502),
    Failure("choices that are an object", Answer(sse({"choices": {"index": 0}})), 502),
    Failure("choices that are a text", Answer(sse({"choices": "stop"})), 502),
]
NATIVE_ONLY = [
    Failure("a delta that is a text", Answer(sse({"choices": [{"delta": "Hi"}]})), 502),
    Failure("calls that are none", Answer(sse({"choices": [{"delta": {"tool_calls": [None]}}]})), 502),
    Failure("calls that are a number", Answer(sse({"choices": [{"delta": {"tool_calls": 5}}]})), 502),
    Failure(
        "a function that is a text", Answer(sse({"choices": [{"delta": {"tool_calls": [{"function": "f"}]}}]})), 502
    ),
    Failure(
        "a name that is a number",
        Answer(sse({"choices": [{"delta": {"tool_calls": [{"function": {"name": 5}}]}}]})),
        502,
    ),
    Failure("a call id that is a list", Answer(sse(chunk(call_deltas("f", id_=["a"])[0]))), 502),  # type: ignore[arg-type]
    Failure("token counts that are a text", Answer(sse({"usage": "many"})), 502),
    Failure(
        "a finish reason that is an object",
        Answer(sse({"choices": [{"delta": {}, "finish_reason": {"type": "stop"}}]})),
        502,
    ),
]
EARLY_BY_WAY = [(way, failure) for failure in EARLY for way in ("native", RAW)]
EARLY_BY_WAY += [("native", failure) for failure in NATIVE_ONLY]


def is_told(reply: Reply, failure: Failure, upstream: str = "") -> None:
    error = reply.error
    assert reply.status == failure.status, reply.text
    assert error["type"] == failure.type
    assert failure.code == "any" or error["code"] == failure.code
    assert not [word for word in failure.words if word not in error["message"]], error["message"]
    assert not [word for word in LEAKS if word in f"{reply.text} {' '.join(reply.headers.values())}"], reply.text
    if failure.type == "server_error":
        assert error["param"] is None
        assert upstream in error["message"]
    assert {name: reply.headers.get(name) for name, _ in failure.headers} == dict(failure.headers)


class Everything:
    """Takes each event as it is."""

    kind: type[Any] = dict
    has_stopped = True
    tell = None

    def marked_over(self) -> None:
        """Nothing is to be done."""

    def read(self, event: Any, deltas: list[Any]) -> None:
        deltas.append(event)


@both
@pytest.mark.parametrize(
    ("way", "failure"), EARLY_BY_WAY, ids=lambda value: value if isinstance(value, str) else value.title
)
def test_a_failure_before_the_first_byte_is_a_plain_error(
    keyed: str, model: ModelServer, way: str, failure: Failure, stream: bool
) -> None:
    model.plays(failure.answer, failure.answer)
    reply = request(keyed + CHAT, body(way, stream=stream))
    is_told(reply, failure, f"{HOST}:{model.port}")


PATHS: dict[str, dict[str, Any]] = {
    CHAT: {"messages": [QUESTION]},
    "/v1/responses": {"input": "Hi", "max_output_tokens": 99, "store": False},
    "/v1/messages": {"messages": [QUESTION], "max_tokens": 99},
    "/v1/embeddings": {"input": "Hi"},
}


@pytest.mark.parametrize(
    ("path", "named", "told"),
    [
        (CHAT, "temperature", "temperature"),
        (CHAT, "messages[0].content", "messages"),
        (CHAT, "response_format.json_schema", None),  # which this request does not have
        (CHAT, "top_p", None),  # null in this request
        *((CHAT, odd, None) for odd in ("", "[0]", ["temperature"], 5, None, "the temperature")),
        (CHAT, "body.temperature", "temperature"),
        ("/v1/responses", "temperature", "temperature"),
        ("/v1/responses", "max_tokens", None),
        ("/v1/responses", "messages", None),
        ("/v1/messages", "temperature", "temperature"),
        ("/v1/embeddings", "input", "input"),
    ],
)
def test_a_refusal_names_the_field_that_the_client_knows(
    keyed: str, model: ModelServer, path: str, named: Any, told: str | None
) -> None:
    error = {"message": "It is not right.", "type": "BadRequestError", "param": named, "code": None}
    model.plays(*[whole({"error": error}, 400)] * 2)
    for stream in (False,) if path == "/v1/embeddings" else (False, True):
        fields = {"model": "native", "temperature": 0.5, "top_p": None, **PATHS[path]}
        reply = request(keyed + path, fields | ({"stream": True} if stream else {}))
        assert reply.status == 400
        if path == "/v1/messages":  # whose errors have no such field
            assert reply.json["error"]["message"] == f"{told}: It is not right"
        else:
            assert reply.error["param"] == told


@both
@chat_and_raw
@pytest.mark.parametrize("how", ["reset", "cut"])
def test_a_kept_connection_that_was_closed_meanwhile_is_no_failure(
    keyed: str, model: ModelServer, way: str, how: Any, stream: bool
) -> None:
    closed: list[int] = []

    def closed_once_kept(_: Any) -> Answer:
        # A client may have its whole answer before the gateway has the end of the server's, and ask again.
        if closed or model.peers[-1] not in model.peers[:-1]:
            return played(way, "text")
        closed.append(len(model.peers) - 1)
        return Answer((how,))

    model.plays(*[closed_once_kept] * 20)
    while not closed:
        assert ask(keyed, body(way), stream=stream).message["content"] == TEXT
    assert model.peers[closed[0] + 1] != model.peers[closed[0]]


def test_a_name_that_leads_nowhere_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def nowhere(host: str, *_: object) -> list[Any]:
        asked.append(host)
        raise socket.gaierror(socket.EAI_NONAME, "there is no such name")

    monkeypatch.setattr(socket, "getaddrinfo", nowhere)

    async def fails() -> UpstreamError:
        upstream = HttpUpstream("http://nowhere.test/v1")
        with pytest.raises(UpstreamError) as failed:
            async with aclosing(upstream.events("/chat/completions", {}, Everything())) as events:
                await anext(events)
        await upstream.close()
        return failed.value

    assert "cannot be reached: no connection to nowhere.test" in str(asyncio.run(fails()))
    assert asked == ["nowhere.test"]


@both
def test_a_server_that_is_down_is_named_without_its_password(keyed: str, closed_port: str, stream: bool) -> None:
    reply = request(keyed + CHAT, body("down", stream=stream))
    is_told(
        reply,
        Failure("", Answer(()), 503, ("cannot be reached: no connection to 127.0.0.1, port ",)),
        closed_port.removeprefix("http://"),
    )


@both
@chat_and_raw
def test_a_silent_server_is_given_up(keyed: str, model: ModelServer, way: str, stream: bool) -> None:
    model.plays(Answer(("silence",)))
    reply = request(keyed + CHAT, body(impatient(way), stream=stream))
    is_told(reply, Failure("", Answer(()), 504, ("silent",)), f"{HOST}:{model.port}")
    model.wait_until_left()


@both
@pytest.mark.parametrize(
    ("how", "path", "hint"),
    [
        ({}, "/chat/completions", True),
        ({"mode": "raw", "dialect": "hermes"}, "/completions", True),
        ({"mode": "raw", "dialect": "hermes", "server": "llamacpp"}, "/completion", False),
    ],
    ids=["chat", "completions", "llama.cpp"],
)
def test_a_base_url_without_its_version_is_told(
    serve: Served, model: ModelServer, how: dict[str, Any], path: str, hint: bool, stream: bool
) -> None:
    bare = model.url.removesuffix("/v1")
    gateway = serve(ModelConfig(name="*", upstream=bare.replace("//", f"//user:{KEY}@"), **how))
    model.plays(whole({"error": {"message": f"Invalid URL (POST {path})", "param": None, "code": None}}, 404))
    reply = request(gateway + CHAT, body("any", stream=stream))
    is_told(reply, Failure("", Answer(()), 502, (f"POST {path}", "base URL"), code="upstream_status"), bare)
    assert (f"{bare}/v1" in reply.error["message"]) == hint
    assert [asked.path for asked in model.asked] == [path]


def test_the_models_of_a_server_that_is_down_are_no_empty_list(serve: Served, closed_port: str) -> None:
    gateway = serve(ModelConfig(name="*", upstream=closed_port.replace("//", f"//user:{KEY}@")))
    reply = request(f"{gateway}/v1/models", method="GET")
    is_told(
        reply,
        Failure("", Answer(()), 503, ("cannot be reached: no connection to 127.0.0.1, port ",)),
        closed_port.removeprefix("http://"),
    )


def test_the_models_of_a_server_that_lists_none_are_no_empty_list(serve: Served, model: ModelServer) -> None:
    gateway = serve(ModelConfig(name="*", upstream=f"{model.url}/elsewhere"))
    reply = request(f"{gateway}/v1/models", method="GET")
    is_told(reply, Failure("", Answer(()), 502, ("405", "GET /models", "base URL")), f"{HOST}:{model.port}")


def test_a_server_that_is_down_takes_no_configured_model_from_the_list(serve: Served, closed_port: str) -> None:
    gateway = serve(ModelConfig(name="*", upstream=closed_port), ModelConfig(name="mine", upstream="simulated"))
    listed = request(f"{gateway}/v1/models", method="GET").json
    assert [entry["id"] for entry in listed["data"]] == ["mine"]


# --- in the middle ---


def begun(way: str) -> tuple[Step, ...]:
    """An answer that has begun."""
    if way == "native":
        return sse(chunk({"role": "assistant", "content": ""}), chunk({"content": "It is"}))
    return completion("It is", size=9).steps[:1]


HALF = b'data: {"choices":[{"index":0,"delta":{"content":" 18'
LATE: dict[str, tuple[Step, ...]] = {
    "a reset": ("reset",),
    "a close": ("cut",),
    "an end without a finish reason": (),
    "an end mark without a finish reason": sse("[DONE]"),
    "half an event": (HALF,),
    "half an event and a close": (HALF, "cut"),
    "garbage": sse("{not json"),
    "an error event": sse({"error": {"code": 500, "message": "Compute error.", "type": "server_error"}}),
    "an error event of SGLang": sse({"error": {"object": "error", "message": "CUDA is out", "code": 500}}),
    "an event that is no chunk": sse({"choices": [None]}),
    "an HTML page": (HTML.encode(), b"\n\n"),
    "silence": ("silence",),
}


@chat_and_raw
@pytest.mark.parametrize("late", LATE)
def test_a_failure_in_a_stream_is_an_event_and_the_end_mark(
    keyed: str, model: ModelServer, way: str, late: str
) -> None:
    model.plays(Answer((*begun(way), *LATE[late])))
    reply = request(keyed + CHAT, body(impatient(way) if late == "silence" else way, stream=True))
    *chunks, last = reply.events
    assert "".join(choice["delta"].get("content") or "" for c in chunks for choice in c["choices"]) == "It is"
    assert not [choice for c in chunks for choice in c["choices"] if choice["finish_reason"]]
    assert list(last) == ["error"]
    assert set(last["error"]) == {"message", "type", "param", "code"}
    assert last["error"]["type"] == "server_error"
    assert f"{HOST}:{model.port}" in last["error"]["message"]
    assert not [word for word in LEAKS if word in reply.text]


@chat_and_raw
@pytest.mark.parametrize("late", LATE)
def test_a_failure_in_the_middle_leaves_no_half_of_a_whole_answer(
    keyed: str, model: ModelServer, way: str, late: str
) -> None:
    model.plays(Answer((*begun(way), *LATE[late])))
    reply = request(keyed + CHAT, body(impatient(way) if late == "silence" else way))
    is_told(reply, Failure("", Answer(()), 504 if late == "silence" else 502), f"{HOST}:{model.port}")


def test_a_line_without_end_is_held_once_and_then_given_up(model: ModelServer) -> None:
    """Joined with each piece that comes it would be there twice, and all of it copied for each."""
    model.plays(Answer((b"data: ", *[b"x" * 65_536] * 300)))
    upstream = HttpUpstream(model.url)
    errors: list[UpstreamError] = []

    async def read() -> None:
        async with aclosing(upstream.events("/chat/completions", {}, Everything())) as events:
            with pytest.raises(UpstreamError, match="an event of more than 16,777,216 bytes") as caught:
                await anext(events)
            errors.append(caught.value)
        await upstream.close()

    tracemalloc.start()
    asyncio.run(read())
    held, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert errors
    assert held < 4_000_000  # an error keeps its frames, and with them nothing large
    assert most < 24_000_000


@pytest.mark.parametrize("late", ["a reset", "a close", "half an event and a close"])
def test_a_server_that_breaks_off_was_reached(keyed: str, model: ModelServer, late: str) -> None:
    model.plays(Answer((*begun("native"), *LATE[late])))
    *_, last = request(keyed + CHAT, body("native", stream=True)).events
    assert "cannot be reached" not in last["error"]["message"]
    assert "middle" in last["error"]["message"]


def test_a_failure_behind_a_heartbeat_is_an_event(serve: Served, model: ModelServer) -> None:
    gateway = serve(*scripted_models(model.url), heartbeat_s=0.05)
    gate = model.gate()
    failing = whole(LLAMACPP_500, 500)
    model.plays(Answer((gate, *failing.steps), failing.status, failing.headers))
    events: list[Any] = []
    with Live(gateway + CHAT, json.dumps(body("native", stream=True)).encode()) as live:
        for piece in live.pieces():
            events += [read_event(event + b"\n\n") for event in piece.removesuffix(b"\n\n").split(b"\n\n")]
            if len(events) == 2:
                gate.open()
    *_, last, end = events
    assert "peg-native" in last["error"]["message"]
    assert end == "[DONE]"


@chat_and_raw
def test_calls_that_were_whole_before_a_failure_do_not_make_it_a_success(
    keyed: str, model: ModelServer, way: str
) -> None:
    native = sse(*map(chunk, call_deltas("get_weather", ARGUMENTS)))
    steps = native if way == "native" else completion(block("get_weather", ARGUMENTS)).steps[:-3]
    model.plays(Answer((*steps, "cut")), Answer((*steps, "cut")))
    assert request(keyed + CHAT, body(way)).status == 502
    *_, last = request(keyed + CHAT, body(way, stream=True)).events
    assert "error" in last


# --- clients that go away, connections that stay ---


@both
@chat_and_raw
@pytest.mark.parametrize("when", ["before the answer", "in the middle"])
def test_when_the_client_leaves_the_server_is_left(
    gateway: str, model: ModelServer, way: str, when: str, stream: bool
) -> None:
    gate = model.gate()
    model.plays(Answer((*(begun(way) if when == "in the middle" else ()), gate, "silence")))
    with Live(gateway + CHAT, json.dumps(body(way, stream=stream)).encode()) as live:
        gate.wait_until_reached()
        if stream and when == "in the middle":
            pieces: Iterator[bytes] = live.pieces()
            while b"It" not in next(pieces):
                pass
    model.wait_until_left()
    model.plays(played(way, "text"))
    assert ask(gateway, body(way), stream=stream).message["content"] == TEXT


def test_a_client_that_leaves_between_heartbeats_is_noticed(serve: Served, model: ModelServer) -> None:
    gateway = serve(*scripted_models(model.url), heartbeat_s=0.05)
    model.plays(Answer(("silence",)))
    with Live(gateway + CHAT, json.dumps(body("native", stream=True)).encode()) as live:
        pieces = live.pieces()
        assert [read_event(next(pieces))["choices"][0]["delta"] for _ in range(2)][1] == {}
    model.wait_until_left()


@both
@pytest.mark.parametrize("way", ["native", "prompt-json", RAW, "raw-hermes-llamacpp"])
@pytest.mark.parametrize("what", ["text", "call"])
def test_connections_to_a_server_are_used_again(
    gateway: str, model: ModelServer, way: str, what: str, stream: bool
) -> None:
    model.plays(*[played(way, what)] * 4)
    for _ in range(4):
        ask(gateway, body(way), stream=stream)
    assert len(model.peers) == 4
    assert len(set(model.peers)) < 4  # one more where a client has its answer before the gateway has its end


@chat_and_raw
def test_many_clients_are_served_at_once(gateway: str, model: ModelServer, way: str) -> None:
    count = 20
    gate = model.gate()
    model.plays(*[Answer((gate, *played(way, "text").steps))] * count)
    sent = json.dumps(body(way, stream=True)).encode()
    lives = [Live(gateway + CHAT, sent) for _ in range(count)]
    gate.open()
    for live in lives:
        with live:
            text = b"".join(live.pieces())
        assert text.count(b"[DONE]") == 1
        assert b'"finish_reason":"stop"' in text


@both
@pytest.mark.parametrize("fault", ["error_500", "html", "cut_stream", "error_event"])
def test_the_simulated_model_fails_like_a_server(serve: Served, fault: str, stream: bool) -> None:
    gateway = serve(ModelConfig(name="m", upstream="simulated", faults=fault))
    reply = request(gateway + CHAT, body("m", stream=stream))
    early = fault in ("error_500", "html")
    if stream and not early:
        *chunks, last = reply.events
        assert len(chunks) > 1
        assert last["error"]["type"] == "server_error"
    else:
        is_told(reply, Failure("", Answer(()), 502), "simulated")


def test_a_clients_connection_serves_one_request_after_the_other(gateway: str, model: ModelServer) -> None:
    model.plays(said("Hi"), said("Hi"), whole(LLAMACPP_500, 500))
    connection = http.client.HTTPConnection(gateway.removeprefix("http://"), timeout=15)
    statuses = []
    with closing(connection):
        for stream, way in (
            (True, "native"),
            (False, "native"),
            (True, "native"),
            (False, "nobody"),
            (False, "native"),
        ):
            connection.request("POST", CHAT, json.dumps(body(way, stream=stream)), {"content-type": "application/json"})
            response = connection.getresponse()
            response.read()
            statuses.append(response.status)
            assert not response.will_close
    assert statuses == [200, 200, 502, 404, 502]


@pytest.mark.parametrize(("status", "told"), [(503, 529), (529, 529), (500, 500), (429, 429)])
def test_a_busy_server_is_overloaded_on_messages(keyed: str, model: ModelServer, status: int, told: int) -> None:
    model.plays(whole({"error": {"message": "too busy"}}, status))
    body_ = {"model": "native", "messages": [QUESTION], "max_tokens": 9}
    assert request(keyed + "/v1/messages", body_).status == told
