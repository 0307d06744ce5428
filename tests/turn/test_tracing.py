"""Spans as OpenTelemetry's own SDK exports them: names, attributes, parents, and the trace the upstream is told."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from websockets.sync.client import connect

from callwright.agent.run import run, stream
from callwright.errors import UpstreamError
from callwright.gateway.config.config import Config, McpConfig, ModelConfig
from callwright.gateway.endpoints.websocket import ENDPOINT
from tests.agent.test_mcp import SERVER
from tests.support.http_client import CHAT, request
from tests.support.outputs import QUESTION, TOOLS
from tests.support.responses_client import RESPONSES
from tests.support.scripted_agents import agent
from tests.support.servers import Gateway, ModelServer, calling, said, whole

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"


@pytest.fixture(scope="session")
def _exporter() -> InMemorySpanExporter:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


@pytest.fixture
def spans(_exporter: InMemorySpanExporter) -> InMemorySpanExporter:
    _exporter.clear()
    return _exporter


@pytest.fixture
def gateway(model: ModelServer, spans: InMemorySpanExporter) -> Iterator[str]:
    gateway = Gateway(Config(models=(ModelConfig(name="native", upstream=model.url, model="served/native"),)))
    yield gateway.url
    gateway.stop()


def one(spans: InMemorySpanExporter, name: str) -> ReadableSpan:
    (found,) = [span for span in spans.get_finished_spans() if span.name == name]
    return found


def told(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


def test_a_turn_is_a_span_of_the_requests_trace(gateway: str, model: ModelServer, spans: InMemorySpanExporter) -> None:
    model.plays(said("Hi"))
    body = {"model": "native", "messages": [QUESTION], "tools": TOOLS, "temperature": 0.5, "stop": "END", "user": "u-1"}
    headers = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "vendor=1"}
    assert request(gateway + CHAT, body, headers=headers).status == 200
    whole, span = one(spans, f"POST {CHAT}"), one(spans, "chat served/native")
    assert (whole.kind, span.kind) == (SpanKind.SERVER, SpanKind.CLIENT)
    assert span.context is not None
    assert whole.parent is not None
    assert f"{span.context.trace_id:032x}" == TRACE
    assert f"{whole.parent.span_id:016x}" == PARENT
    assert span.parent == whole.context
    assert told(whole) == {"http.request.method": "POST", "http.route": CHAT, "http.response.status_code": 200}
    attributes = told(span)
    assert attributes.pop("gen_ai.response.time_to_first_chunk", 0)
    assert str(attributes.pop("callwright.request_id")).startswith("req_")
    assert attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "served/native",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.stop_sequences": ("END",),
        "gen_ai.output.type": "text",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 11,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.cache_read.input_tokens": 0,
        "gen_ai.usage.reasoning.output_tokens": 0,
        "server.address": "127.0.0.1",
        "server.port": model.port,
    }
    # The upstream's spans belong below this one.
    headers = {name.lower(): value for name, value in model.asked[0].headers.items()}
    assert headers["traceparent"] == f"00-{TRACE}-{span.context.span_id:016x}-01"
    assert headers["tracestate"] == "vendor=1"


@pytest.mark.parametrize("stream", [False, True])
def test_a_turn_that_fails_says_how(
    gateway: str, model: ModelServer, spans: InMemorySpanExporter, stream: bool
) -> None:
    model.plays(whole({"error": {"message": "the words of the server"}}, 500))
    assert request(gateway + CHAT, {"model": "native", "messages": [QUESTION], "stream": stream}).status == 502
    span = one(spans, "chat served/native")
    assert told(span)["error.type"] == "status"
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description == "status"
    assert not span.events
    outer = one(spans, f"POST {CHAT}")
    assert (span.parent, outer.parent) == (outer.context, None)
    assert told(outer)["error.type"] == "status"
    assert outer.status.status_code is StatusCode.ERROR


def test_a_turn_says_of_which_response_and_conversation_it_is(
    gateway: str, model: ModelServer, spans: InMemorySpanExporter
) -> None:
    model.plays(said("Hi"), said("Hi"))
    conversation = request(f"{gateway}/v1/conversations", {}).json["id"]
    asked = {"model": "native", "input": "Hi", "conversation": conversation}
    response = request(gateway + RESPONSES, asked)
    attributes = told(one(spans, "chat served/native"))
    assert attributes["gen_ai.conversation.id"] == conversation
    assert attributes["gen_ai.response.id"] == response.json["id"]
    assert attributes["callwright.request_id"] == response.headers["x-request-id"]


def test_a_turn_over_a_websocket_is_a_span_and_what_machines_ask_for_is_none(
    gateway: str, model: ModelServer, spans: InMemorySpanExporter
) -> None:
    model.plays(said("Hi"))
    request(f"{gateway}/healthz", method="GET")
    headers = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
    with connect(f"{gateway.replace('http', 'ws')}{RESPONSES}", open_timeout=10, additional_headers=headers) as socket:
        socket.send(json.dumps({"type": "response.create", "model": "native", "input": "Hi"}))
        while json.loads(socket.recv(10))["type"] != "response.completed":
            pass
        socket.send("{}")
        socket.recv(10)
    turn, wrong = [span for span in spans.get_finished_spans() if span.name == f"GET {ENDPOINT}"]
    assert one(spans, "chat served/native").parent == turn.context
    assert turn.parent == wrong.parent
    assert told(wrong)["http.response.status_code"] == 400
    assert not [span for span in spans.get_finished_spans() if "healthz" in span.name]


def test_the_tools_of_an_agent_are_spans_beside_its_turns_below_that_of_the_run(spans: InMemorySpanExporter) -> None:
    tracer = trace.get_tracer("the program")

    def get_weather(city: str) -> str:
        """The weather in a city."""
        with tracer.start_as_current_span("lookup"):
            return f"sunny in {city}"

    async def break_glass() -> str:
        raise OSError("secret words")

    made = agent(
        [("get_weather", {"city": "Paris"}), ("break_glass", {})],
        "It is sunny.",
        tools=[get_weather, break_glass],
        name="forecaster",
    )
    with tracer.start_as_current_span("program"):
        asyncio.run(run(made, "What is the weather?"))
    program, weather = one(spans, "program"), one(spans, "execute_tool get_weather")
    assert weather.kind is SpanKind.INTERNAL
    assert {**told(weather), "gen_ai.tool.call.id": "…"} == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get_weather",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "…",
        "gen_ai.tool.description": "The weather in a city.",
    }
    glass = one(spans, "execute_tool break_glass")
    assert told(glass)["error.type"] == "OSError"
    assert glass.status.status_code is StatusCode.ERROR
    assert "secret words" not in glass.to_json()
    turns = [span for span in spans.get_finished_spans() if span.name == "chat scripted"]
    assert len(turns) == 2
    whole = one(spans, "invoke_agent forecaster")
    assert whole.parent == program.context
    for span in (weather, glass, *turns):
        assert span.parent == whole.context
    assert told(whole) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "forecaster",
        "gen_ai.request.model": "scripted",
        "gen_ai.provider.name": "scripted",
        "gen_ai.usage.input_tokens": 0,
        "gen_ai.usage.output_tokens": 0,
        "gen_ai.usage.cache_read.input_tokens": 0,
        "gen_ai.usage.reasoning.output_tokens": 0,
        "callwright.stop": "completed",
    }
    assert one(spans, "lookup").parent == weather.context


def test_a_run_that_fails_says_so(spans: InMemorySpanExporter) -> None:
    down = UpstreamError("secret words", fault="unreachable", upstream="m")
    with pytest.raises(UpstreamError):
        asyncio.run(run(agent([down]), "Hi"))
    span = one(spans, "invoke_agent")
    assert told(span)["error.type"] == "unreachable"
    assert span.status.status_code is StatusCode.ERROR
    assert "secret words" not in span.to_json()


def test_the_span_of_a_run_is_current_nowhere_else(spans: InMemorySpanExporter) -> None:
    async def story() -> None:
        async for _ in stream(agent("One.", "Two."), "Hi"):
            assert not trace.get_current_span().get_span_context().is_valid

    asyncio.run(story())
    assert one(spans, "chat scripted").parent == one(spans, "invoke_agent").context


@pytest.mark.clients
def test_the_tool_of_a_server_says_where_it_is_run(
    model: ModelServer, spans: InMemorySpanExporter, tmp_path: Path
) -> None:
    pytest.importorskip("mcp.client", reason="the SDK of MCP is not installed")
    servers = (McpConfig(label="s", command=[sys.executable, SERVER, "stdio", str(tmp_path)]),)
    gateway = Gateway(Config(models=(ModelConfig(name="native", upstream=model.url),), mcp=servers))
    try:
        model.plays(calling("s__add", '{"a": 1, "b": 2}'), calling("s__refuse", "{}"), said("It is 3."))
        tools = [{"type": "mcp", "server_label": "s", "require_approval": "never"}]
        assert request(gateway.url + RESPONSES, {"model": "native", "input": "Hi", "tools": tools}).status == 200
    finally:
        gateway.stop()
    add, refuse = one(spans, "execute_tool s__add"), one(spans, "execute_tool s__refuse")
    assert told(add)["mcp.method.name"] == "tools/call"
    assert told(add)["network.transport"] == "pipe"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", str(told(add)["mcp.protocol.version"]))
    assert told(refuse)["error.type"] == "tool_error"
    turns = [span for span in spans.get_finished_spans() if span.name == "chat native"]
    assert len(turns) == 3
    outer = one(spans, f"POST {RESPONSES}")
    assert [span.parent for span in (add, refuse, *turns)] == [outer.context] * 5


@pytest.mark.processes
def test_without_opentelemetry_nothing_of_it_is_looked_for_twice_and_everything_runs() -> None:
    program = (
        "import sys, asyncio\n"
        "sys.modules['opentelemetry'] = None\n"
        "from tests.support.scripted_agents import agent\n"
        "from callwright.agent.run import run\n"
        "def get_time() -> str: return 'noon'\n"
        "print(asyncio.run(run(agent([('get_time', {})], 'Noon.', tools=[get_time]), 'When?')).text)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, encoding="utf-8")
    assert (ran.stdout.strip(), ran.stderr) == ("Noon.", "")


@pytest.mark.processes
def test_the_package_imports_nothing_of_it() -> None:
    program = "import sys, callwright, callwright.gateway.app; print([n for n in sys.modules if 'opentelemetry' in n])"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, encoding="utf-8")
    assert ran.stdout.strip() == "[]"
