"""What a model's server sends is bounded: bytes, values, calls, and the time that it takes to come, byte by byte."""

import asyncio
import gc
import gzip
import json
import threading
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import aclosing
from functools import cache
from typing import Any, TypeAlias

import pytest

from callwright.conversation import Conversation
from callwright.errors import UpstreamError
from callwright.events import ContentDelta
from callwright.gateway.config.config import Config, ModelConfig, ServerConfig
from callwright.settings.bounds import MAX_ANSWER_CALLS, Bounds
from callwright.tolerant_json.codec import encode
from callwright.turn.model import Model
from callwright.turn.run import run_turn
from callwright.upstreams.answers import read_json
from callwright.upstreams.base import GenerationRequest, TextDelta
from callwright.upstreams.chat import ChatUpstream
from callwright.upstreams.http import HttpUpstream, Timeouts
from tests.conftest import Connected, Served
from tests.support.bounded import bounded
from tests.support.connection_server import Writer
from tests.support.http_client import CHAT, Reply, request
from tests.support.messages_client import MESSAGES, named_events
from tests.support.outputs import QUESTION, TOOLS
from tests.support.responses_client import RESPONSES
from tests.support.servers import EVENTS, JSON, Answer, Gateway, ModelServer, chunk, completion, said, sse, whole
from tests.support.waiting import PATIENCE_S, until

both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
SMALL = Bounds(max_answer_bytes=1_000_000)
VALUES = 20_000


@pytest.fixture
def smaller() -> Iterator[None]:
    """Events and counts of values that are bounded as `SMALL` is."""
    with bounded(MAX_EVENT_BYTES=500_000, MAX_ANSWER_VALUES=VALUES):
        yield


ASKED: dict[str, Any] = {"model": "m", "messages": [QUESTION]}
RAW: dict[str, Any] = {"mode": "raw", "dialect": "hermes", "server": "vllm"}
PACKED: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress}


@cache
def too_large(how: str) -> bytes:
    """Compressed JSON that is a little larger than an answer may be."""
    return PACKED[how](b'{"choices":[],"padding":"%b"}' % (b"x" * Bounds().max_answer_bytes))


def packed(body: bytes, how: str = "gzip", kind: str = JSON, status: int = 200) -> Answer:
    """A compressed answer."""
    return Answer((PACKED[how](body),), status, {"content-type": kind, "content-encoding": how})


class Endless(tuple[bytes, ...]):
    """An answer that goes on for ever with the same piece."""

    __slots__ = ()

    def __iter__(self) -> Iterator[bytes]:
        while True:
            yield self[0]


@pytest.fixture
def small(model: ModelServer, smaller: None) -> Iterator[str]:
    """A gateway with small limits that keeps nothing of turns, with the model server as `m` and, for mode raw, as
    `raw`.
    """
    models = (ModelConfig(name="m", upstream=model.url), ModelConfig(name="raw", upstream=model.url, **RAW))
    gateway = Gateway(Config(server=ServerConfig(inspect="off"), models=models, limits=SMALL))
    yield gateway.url
    gateway.stop()


async def fails(upstream: HttpUpstream) -> UpstreamError:
    """What an upstream raises when it is asked."""

    class Anything:
        kind: type[Any] = dict
        has_stopped = True
        tell = None

        def marked_over(self) -> None:
            raise AssertionError("no stream comes to its end")

        def read(self, event: Any, deltas: list[Any]) -> None:
            deltas.append(event)

    try:
        async with aclosing(upstream.events("/chat/completions", {}, Anything())) as batches:
            async for _ in batches:
                pass
    except UpstreamError as error:
        return error
    finally:
        await upstream.close()
    raise AssertionError("it did not fail")


# --- bytes ---


@both
@pytest.mark.parametrize("how", PACKED)
def test_an_answer_is_bounded_after_decompression(serve: Served, model: ModelServer, how: str, stream: bool) -> None:
    gateway = serve(ModelConfig(name="m", upstream=model.url))
    model.plays(Answer((too_large(how),), 200, {"content-type": JSON, "content-encoding": how}))
    reply = request(gateway + CHAT, {**ASKED, "stream": stream})
    assert reply.status == 502
    assert "sent an answer of more than 67,108,864 bytes (`max_answer_bytes` in [limits])" in reply.error["message"]


@both
@pytest.mark.parametrize("name", ["m", "raw"])
def test_an_answer_as_large_as_it_may_be_is_read(small: str, model: ModelServer, name: str, stream: bool) -> None:
    choice = {"index": 0, "message": {"content": "Hi"}, "text": "Hi", "finish_reason": "stop"}
    room = SMALL.max_answer_bytes - len(encode({"choices": [choice], "padding": ""}))
    for more, status in ((0, 200), (1, 502)):
        body = encode({"choices": [choice], "padding": "x" * (room + more)})
        model.plays(whole(body.decode()))
        assert request(small + CHAT, {**ASKED, "model": name, "stream": stream}).status == status


@pytest.mark.parametrize("name", ["m", "raw"])
def test_a_stream_without_end_ends_with_an_error(small: str, model: ModelServer, name: str) -> None:
    event = {"choices": [{"index": 0, "delta": {"content": "and so on "}, "text": "and so on "}]}
    model.plays(*[Answer(Endless(sse(event)))] * 2)
    reply = request(small + CHAT, {**ASKED, "model": name})
    assert reply.status == 502
    assert "max_answer_bytes" in reply.error["message"]
    model.wait_until_left()
    *chunks, last = request(small + CHAT, {**ASKED, "model": name, "stream": True}).events
    assert "max_answer_bytes" in last["error"]["message"]
    assert len("".join(choice["delta"].get("content") or "" for c in chunks for choice in c["choices"])) > 50_000
    assert not [choice for c in chunks for choice in c["choices"] if choice["finish_reason"]]


@both
def test_an_event_without_end_is_given_up(small: str, model: ModelServer, stream: bool) -> None:
    model.plays(Answer(Endless((b"data: x",))))
    reply = request(small + CHAT, {**ASKED, "stream": stream})
    assert reply.status == 502
    assert "an event of more than 500,000 bytes" in reply.error["message"]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (packed(b'{"choices":[],"padding":"' + bytes(32_000_000)), "`max_answer_bytes`"),
        (packed(b"data: " + bytes(32_000_000), kind=EVENTS), "an event of more than 500,000 bytes"),
        (packed(b": " + bytes(32_000_000), kind=EVENTS), "an event of more than 500,000 bytes"),
        (packed(b"data: 1\n\n" * 3_000_000, kind=EVENTS), "event"),
        (packed(b'{"error":"' + bytes(32_000_000), status=500), "500"),
        (packed(bytes(32_000_000), kind="text/html"), "text/html"),
    ],
    ids=["JSON", "an event", "a comment", "a stream", "an error", "a page"],
)
@pytest.mark.usefixtures("smaller")
def test_what_is_small_and_stands_for_much_takes_little_memory(model: ModelServer, answer: Answer, told: str) -> None:
    model.plays(answer)
    tracemalloc.start()
    try:
        error = asyncio.run(fails(HttpUpstream(model.url, bounds=SMALL)))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert told in str(error)
    assert most < 8_000_000


def test_a_list_of_models_is_bounded(connected: Connected) -> None:
    bomb = gzip.compress(b'{"data":[' + b'{"id":"m"},' * 3_000_000)

    async def answering(_: int, __: int, writer: Writer) -> bool:
        head = f"HTTP/1.1 200 OK\r\ncontent-type: {JSON}\r\ncontent-encoding: gzip\r\ncontent-length: {len(bomb)}"
        writer.write(f"{head}\r\n\r\n".encode() + bomb)
        return True

    async def listed(url: str) -> UpstreamError:
        upstream = ChatUpstream(url, bounds=SMALL)
        try:
            with pytest.raises(UpstreamError) as failed:
                await upstream.models()
        finally:
            await upstream.close()
        return failed.value

    tracemalloc.start()
    try:
        error = asyncio.run(listed(connected(answering).url))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "`max_answer_bytes`" in str(error)
    assert most < 8_000_000


@both
def test_what_was_read_of_an_answer_that_failed_is_freed_at_once(small: str, model: ModelServer, stream: bool) -> None:
    """An error holds the frames that it went through: whoever keeps it must not keep the answer."""
    model.plays(Answer(Endless(sse(chunk({"content": "and so on "})))))
    gc.collect()
    gc.disable()
    try:
        request(small + CHAT, {**ASKED, "stream": stream})
        model.wait_until_left()
        until(lambda: not [kept for kept in gc.get_objects() if isinstance(kept, list) and _is_of_text(kept)])
    finally:
        gc.enable()


def _is_of_text(kept: list[Any]) -> bool:
    return len(kept) > 1_000 and isinstance(kept[0], ContentDelta)


# --- counts ---


@both
@pytest.mark.parametrize(
    "field", ['"choices":[%b{}]', '"refusal":[%b{}]', '"usage":{"x":[%b{}]}'], ids=["choices", "refusal", "unknown"]
)
def test_values_are_counted_before_they_take_memory(small: str, model: ModelServer, field: str, stream: bool) -> None:
    body = b"{" + field.encode() % (b"{}," * 2 * VALUES) + b"}"
    event = Answer((b"data: " + body + b"\n\n",)) if stream else whole(body.decode())
    model.plays(event)
    reply = request(small + CHAT, {**ASKED, "stream": stream})
    assert reply.status == 502
    assert "sent more than 20,000 values in one piece" in reply.error["message"]


@both
def test_calls_are_counted(serve: Served, model: ModelServer, stream: bool) -> None:
    gateway = serve(ModelConfig(name="m", upstream=model.url))
    call = {"function": {"name": "get_weather", "arguments": "{}"}}
    calls = [{"index": at, "id": f"c{at}", **call} for at in range(MAX_ANSWER_CALLS + 1)]
    model.plays(Answer(sse(chunk({"tool_calls": calls}), chunk({}, "tool_calls"), "[DONE]")))
    reply = request(gateway + CHAT, {**ASKED, "tools": TOOLS, "stream": stream})
    error = reply.events[-1]["error"] if stream else reply.error
    assert error["code"] == "upstream_protocol"
    assert "sent more than 1,024 calls in one answer" in error["message"]


# --- at each door ---


def streamed(*events: Any) -> Answer:
    return Answer(sse(*events))


def _many_calls() -> Answer:
    call = {"function": {"name": "get_weather", "arguments": "{}"}}
    return streamed(chunk({"tool_calls": [{"index": at, "id": f"c{at}", **call} for at in range(1_025)]}), "[DONE]")


SENT: dict[str, Callable[[], Answer]] = {
    "`max_answer_bytes`": lambda: Answer(Endless(sse(chunk({"content": "and so on " * 1_000})))),
    "an event of more than": lambda: Answer(Endless((b"data: " + b"x" * 10_000,))),
    "more than 20,000 values": lambda: Answer((b'data: {"choices":[' + b"{}," * 40_000 + b"{}]}\n\n",)),
    "more than 1,024 calls": _many_calls,
}


@pytest.mark.parametrize("door", ["chat", "responses", "messages", "messages, streamed", "websocket", "library"])
@pytest.mark.parametrize("bound", SENT)
@pytest.mark.usefixtures("smaller")
def test_what_a_server_sends_is_bounded_at_each_door(model: ModelServer, bound: str, door: str) -> None:
    # Which a large read may reach before any other.
    bounds = SMALL if bound == "`max_answer_bytes`" else Bounds()
    model.plays(SENT[bound]())
    if door == "library":
        assert bound in asyncio.run(_library_fails(model.url, bounds))
        return
    gateway = Gateway(Config(models=(ModelConfig(name="m", upstream=model.url),), limits=bounds))
    try:
        assert bound in _told(gateway.url, door, {"model": "m", "input": "Hi"})
    finally:
        gateway.stop()


def _told(url: str, door: str, asked: dict[str, Any]) -> str:
    """What the gateway tells of an answer, as one text."""
    if door == "chat":
        return request(url + CHAT, {**ASKED, **asked, "stream": False}).text
    if door == "responses":
        return request(url + RESPONSES, asked).text
    if door.startswith("messages"):
        given = {**ASKED, "max_tokens": 500, **asked, "stream": door.endswith("streamed")}
        return _anthropic(request(url + MESSAGES, given))
    websockets = pytest.importorskip("websockets.sync.client", reason="websockets is not installed")
    with websockets.connect(f"{url.replace('http', 'ws')}{RESPONSES}") as connection:
        connection.send(json.dumps({"type": "response.create", **asked}))
        while True:
            told = str(connection.recv(PATIENCE_S))
            if json.loads(told)["type"] in ("error", "response.failed", "response.incomplete", "response.completed"):
                return told


def _anthropic(reply: Reply) -> str:
    """The same of Anthropic's API, where an error has a form of its own."""
    ends = [reply.json] if reply.status != 200 else [event for name, event in _events(reply) if name == "error"]
    assert all((end["type"], end["error"]["type"]) == ("error", "api_error") for end in ends)
    return reply.text


def _events(reply: Reply) -> list[tuple[str, dict[str, Any]]]:
    return named_events(reply) if reply.headers["content-type"].startswith(EVENTS) else []


async def _library_fails(url: str, bounds: Bounds) -> str:
    upstream = ChatUpstream(url, bounds=bounds)
    generation = GenerationRequest("m", Conversation(()), messages=[QUESTION])
    try:
        async with aclosing(upstream.stream(generation)) as batches:
            async for _ in batches:
                pass
    except UpstreamError as error:
        return str(error)
    finally:
        await upstream.close()
    raise AssertionError("it did not fail")


@pytest.mark.parametrize("door", ["chat", "responses", "messages, streamed", "websocket"])
def test_parameters_of_a_call_are_bounded_at_each_door(model: ModelServer, door: str) -> None:
    """The others are kept as text."""
    parameters = "".join(f"<parameter=p{n}>\nv{n}\n</parameter>\n" for n in range(6))
    text = f"<tool_call>\n<function=f>\n{parameters}</function>\n</tool_call>"
    made = ModelConfig(name="m", upstream=model.url, mode="raw", dialect="qwen3_coder", server="vllm", retries=0)
    schema = {"type": "object", "properties": {f"p{n}": {} for n in range(6)}}
    shaped: dict[str, Any] = {"type": "function", "name": "f", "parameters": schema}
    if door == "chat":
        shaped = {"type": "function", "function": {"name": "f", "parameters": schema}}
    elif door == "messages, streamed":  # a whole answer has no call that is cut off
        shaped = {"name": "f", "input_schema": schema}
    gateway = Gateway(Config(models=(made,)))
    model.plays(completion(text))
    try:
        with bounded(MAX_PARAMETERS=4):
            told = _told(gateway.url, door, {"model": "m", "input": "Hi", "tools": [shaped]})
    finally:
        gateway.stop()
    assert "more than 4 parameters" in told or ("v3" in told and "v4" not in told)


# --- the loop ---


@pytest.mark.parametrize("kind", [JSON, EVENTS])
def test_while_a_large_answer_is_read_others_have_their_turn(
    model: ModelServer, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callwright.turn.run.PAUSE_S", -1.0)  # whatever the machine's speed
    size = 4_000_000
    if kind == JSON:
        choice = {"index": 0, "message": {"content": "x" * size}, "finish_reason": "stop"}
        model.plays(whole({"choices": [choice]}))
    else:
        model.plays(said("x" * size))
    upstream = ChatUpstream(model.url)
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def read() -> list[int]:
        turn = run_turn(Model("m", upstream, "m", mode="native"), Conversation(()), {}, today="2026-11-01")
        beside = asyncio.create_task(others())
        texts: list[int] = []
        before = turns
        async with aclosing(turn) as batches:
            async for batch in batches:
                sizes = [len(event.text) for event in batch if isinstance(event, ContentDelta)]
                if sizes and max(sizes) > 1:
                    assert turns > before
                    before = turns
                    texts.append(sum(sizes))
        beside.cancel()
        await upstream.close()
        return texts

    texts = asyncio.run(read())
    assert sum(texts) == size
    assert max(texts) <= 16_384


@pytest.mark.parametrize("kind", [JSON, EVENTS])
def test_what_is_large_is_decoded_beside_the_loop(
    model: ModelServer, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside: list[bool] = []

    def noting(data: bytes, *more: Any) -> Any:
        if len(data) > 100:
            beside.append(threading.current_thread() is not threading.main_thread())
        return read_json(data, *more)

    monkeypatch.setattr("callwright.upstreams.http.read_json", noting)
    for size in (1_000, 2_000_000):
        choice = {"index": 0, "finish_reason": "stop"}
        text = {"content": "x" * size}
        model.plays(
            whole({"choices": [{**choice, "message": text}]})
            if kind == JSON
            else Answer(sse({"choices": [{**choice, "delta": text}]}, "[DONE]"))
        )
        assert asyncio.run(_read_of(model.url)) == size
    assert beside == [False, True]


async def _read_of(url: str) -> int:
    upstream = ChatUpstream(url)
    size = 0
    try:
        async with aclosing(upstream.stream(GenerationRequest("m", Conversation(()), messages=[QUESTION]))) as batches:
            async for batch in batches:
                size += sum(len(delta.text) for delta in batch if isinstance(delta, TextDelta))
    finally:
        await upstream.close()
    return size


# --- time ---

Trickled: TypeAlias = tuple[bytes, bytes]
HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("begin", "drop"),
    [
        (HEAD, b"x: y\r\n"),
        (HEAD + b"content-type: application/json\r\n\r\n", b" "),
        (HEAD + b"content-type: text/event-stream\r\n\r\ndata: ", b"x"),
        (HEAD + b"content-type: text/event-stream\r\n\r\n", b"data: x\n"),
        (b"HTTP/1.1 500 NO\r\n\r\n", b" "),
    ],
    ids=["a head", "an answer", "a line", "an event", "an error"],
)
def test_what_comes_byte_by_byte_and_does_not_end_is_given_up(connected: Connected, begin: bytes, drop: bytes) -> None:
    async def answering(_: int, __: int, writer: Writer) -> bool:
        writer.write(begin)
        while True:
            writer.write(drop)
            await writer.drain()
            await asyncio.sleep(0.02)

    upstream = HttpUpstream(connected(answering).url, timeouts=Timeouts(connect_s=1.0, idle_s=0.1))
    error = asyncio.run(fails(upstream))
    assert error.fault == "timeout"
    assert "did not come to an end within 0.2 s, byte by byte" in str(error)
