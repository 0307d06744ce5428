"""Mode `auto` through the gateway: chosen at the start, later where the server was down, anew where it fails."""

import asyncio
import gc
import json
import logging
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any

import msgspec
import pytest

from callwright.conversation import Conversation, FunctionTool, Message, TextPart
from callwright.doctor.findings import Findings, ProbeResult
from callwright.errors import ConfigError, UpstreamError
from callwright.gateway.config.auto_mode import AutoModeSelector
from callwright.gateway.config.build_models import build_models
from callwright.gateway.config.config import Config, ModelConfig
from callwright.turn.model import Model
from callwright.turn.run import run_turn
from callwright.upstreams.chat import ChatUpstream
from tests.support.fake_servers import POSES, Pose, PosingServer, models_of
from tests.support.http_client import CHAT, Said, ask, request
from tests.support.outputs import TOOLS
from tests.support.servers import Answer, ClosedPort, Gateway, said
from tests.support.tiny_llama import HERMES, TinyLlama

both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
QUESTION = {"role": "user", "content": "What is the weather in Oslo?"}
CITY = {"type": "string", "enum": ["Oslo", "Bergen"]}
BOUNDED = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {
                "type": "object",
                "properties": {"city": CITY},
                "required": ["city"],
                "additionalProperties": False,
            },
        },
    }
]
PARSER_FAILURE = "The model produced output that does not match the expected peg-native format"


@pytest.fixture
def posing() -> Iterator[PosingServer]:
    server = PosingServer()
    yield server
    server.stop()
    gc.collect()


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> TinyLlama:
    return TinyLlama(tmp_path_factory.mktemp("llama"), HERMES)


@pytest.fixture(autouse=True)
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "callwright.gateway")
    return caplog


def told(log: pytest.LogCaptureFixture) -> list[str]:
    """What was said of modes."""
    return [text for text in (record.getMessage() for record in log.records) if text.startswith("model ")]


class AutoGateway:
    """A gateway with one model in mode auto."""

    def __init__(self, url: str | list[str], name: str, **how: Any) -> None:
        self._gateway = Gateway(Config(models=(ModelConfig(name=name, upstream=url, mode="auto", **how),)))
        self.url = self._gateway.url
        self._name = name

    def ask(self, *, stream: bool = False, name: str | None = None) -> Said:
        return ask(self.url, self.body(name), stream=stream)

    def body(self, name: str | None = None) -> dict[str, Any]:
        return {"model": name or self._name, "messages": [QUESTION], "tools": TOOLS}

    def close(self) -> None:
        self._gateway.stop()


def used(server: PosingServer) -> tuple[str, bool]:
    """The path of the last request, and whether it had tools."""
    return server.asked[-1].path, "tools" in server.asked[-1].body


RAW = ("/v1/completions", False)
NATIVE = ("/v1/chat/completions", True)
PROMPT = ("/v1/chat/completions", False)
CHOSEN = {
    "vllm": (RAW, "raw harmony"),
    "vllm, reasoning parser": (RAW, "raw hermes"),
    "sglang": (RAW, "raw hermes"),
    "ollama": (NATIVE, "native"),
    "ollama, no tools": (PROMPT, "prompt json"),
    "lm studio": (NATIVE, "native"),
    "calls are printed": (PROMPT, "prompt json"),
    "its parser fails": (PROMPT, "prompt json"),
}


@pytest.mark.parametrize("pose", CHOSEN)
def test_each_server_is_asked_in_the_way_that_works(
    posing: PosingServer, log: pytest.LogCaptureFixture, pose: str
) -> None:
    posing.pose = POSES[pose]
    way, mode = CHOSEN[pose]
    with closing(AutoGateway(posing.url, posing.pose.model)) as gateway:
        for stream in (False, True):
            assert gateway.ask(stream=stream).calls == [("get_weather", {"city": "Oslo"})]
            assert used(posing) == way
    (line,) = told(log)
    assert line.startswith(f"model {posing.pose.model!r} is asked in mode {mode}: ")


def test_what_the_model_wrote_is_logged_at_debug_alone(posing: PosingServer, log: pytest.LogCaptureFixture) -> None:
    log.set_level(logging.DEBUG, "callwright.gateway")
    posing.pose = POSES["calls are printed"]
    with closing(AutoGateway(posing.url, posing.pose.model)) as gateway:
        gateway.ask()
    levels = {record.levelno for record in log.records if "a call stands in the text" in record.getMessage()}
    assert levels == {logging.DEBUG}
    (line,) = told(log)
    assert line.endswith("the server makes no calls of its own (ignored); any chat endpoint takes tools as text")


def test_the_server_is_probed_once_before_anybody_asks(posing: PosingServer) -> None:
    posing.pose = POSES["ollama"]
    with closing(AutoGateway(posing.root, posing.pose.model)) as gateway:
        gateway.ask()
        probed = len(posing.asked)
        threads = [threading.Thread(target=gateway.ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(posing.asked) == probed + 4
    assert posing.asked[-1].path == "/v1/chat/completions"


def test_requests_that_come_together_wait_for_one_examination(posing: PosingServer) -> None:
    with closing(AutoGateway(posing.url, "*")) as gateway:
        threads = [threading.Thread(target=gateway.ask, kwargs={"name": posing.pose.model}) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sum(asked.path == "/v1/models" for asked in posing.asked) == 1


def test_of_any_model_each_name_is_chosen_for(posing: PosingServer, log: pytest.LogCaptureFixture) -> None:
    with closing(AutoGateway(posing.url, "*")) as gateway:
        assert told(log) == []
        gateway.ask(name="openai/gpt-oss-120b")
        assert used(posing) == RAW
        gateway.ask(name="mystery")
        assert used(posing) == NATIVE
        assert posing.asked[-1].body["model"] == "mystery"
    assert [line.split(":")[0] for line in told(log)] == [
        "model 'openai/gpt-oss-120b' is asked in mode raw harmony",
        "model 'mystery' is asked in mode native",
    ]


def test_the_log_calls_a_model_what_clients_call_it(posing: PosingServer, log: pytest.LogCaptureFixture) -> None:
    with closing(AutoGateway(posing.url, "ours", model=posing.pose.model)) as gateway:
        gateway.ask()
    (line,) = told(log)
    assert line.startswith("model 'ours' is asked in mode raw harmony: ")


def test_a_dialect_and_a_server_that_are_named_are_kept(posing: PosingServer) -> None:
    posing.pose = msgspec.structs.replace(
        POSES["vllm"], model="served", dialect="hermes", pages={"/v1/models": models_of("served")}
    )
    how = {"dialect": "hermes", "server": "vllm", "options": {"thinking": "off"}, "fields": {"reasoning_effort": "low"}}
    with closing(AutoGateway(posing.url, "served", **how)) as gateway:
        assert gateway.ask().calls == [("get_weather", {"city": "Oslo"})]
    assert used(posing) == RAW
    assert posing.asked[-1].body["skip_special_tokens"] is False
    assert "<think>\n\n</think>" in posing.asked[-1].body["prompt"]


def test_of_several_servers_the_first_that_can_be_used_tells_for_all(
    posing: PosingServer, closed_port: str, log: pytest.LogCaptureFixture
) -> None:
    gateway = AutoGateway([closed_port, posing.root], posing.pose.model)
    with closing(gateway):
        for _ in range(3):
            assert gateway.ask().calls == [("get_weather", {"city": "Oslo"})]
            assert used(posing) == RAW
    (line,) = told(log)
    assert line.startswith("model 'openai/gpt-oss-120b' is asked in mode raw harmony: ")


# --- servers that are not there ---


def test_a_server_that_is_down_holds_nothing_up_and_is_probed_when_it_is_there(log: pytest.LogCaptureFixture) -> None:
    reserved = ClosedPort()
    port = int(reserved.url.rpartition(":")[2].removesuffix("/v1"))
    with closing(AutoGateway(reserved.url, "openai/gpt-oss-120b")) as gateway:
        for _ in range(2):
            reply = request(gateway.url + CHAT, gateway.body())
            assert reply.status == 503
            assert "cannot be reached" in reply.error["message"]
        reserved.close()
        server = PosingServer(port=port)
        try:
            assert gateway.ask().calls == [("get_weather", {"city": "Oslo"})]
            assert used(server) == RAW
        finally:
            server.stop()
        assert request(gateway.url + CHAT, gateway.body()).status == 503
        server = PosingServer("ollama", port)
        try:
            assert gateway.ask().calls == [("get_weather", {"city": "Oslo"})]
            assert used(server) == NATIVE
        finally:
            server.stop()
    lines = told(log)
    assert lines[0].startswith("model 'openai/gpt-oss-120b' is asked natively until its server can be probed: ")
    assert [line.split(":")[0].rpartition(" mode ")[2] for line in lines[1:]] == ["raw harmony", "native"]


def test_a_server_that_hangs_keeps_no_gateway_from_starting_or_stopping(posing: PosingServer) -> None:
    posing.pose = Pose("m", {"/v1/models": Answer(("silence",))})
    with closing(AutoGateway(posing.url, "m")) as gateway:
        assert request(f"{gateway.url}/healthz", method="GET").status == 200


def test_what_cannot_be_used_gives_the_servers_own_error(posing: PosingServer) -> None:
    posing.pose = Pose("m", {"/v1/models": models_of("m")}, always=Answer((b'{"detail": "no GPU"}',), 503))
    with closing(AutoGateway(posing.url, "m")) as gateway:
        reply = request(gateway.url + CHAT, gateway.body())
    assert reply.status == 502
    assert "no GPU" in reply.error["message"]


# --- failing later ---


@both
def test_a_parser_that_fails_later_is_done_without(
    posing: PosingServer, log: pytest.LogCaptureFixture, stream: bool
) -> None:
    posing.pose = POSES["ollama"]
    with closing(AutoGateway(posing.url, posing.pose.model)) as gateway:
        gateway.ask()
        assert used(posing) == NATIVE
        posing.pose = msgspec.structs.replace(posing.pose, calls="fails")
        for _ in range(2):
            assert gateway.ask(stream=stream).calls == [("get_weather", {"city": "Oslo"})]
            assert used(posing) == PROMPT
        assert sum(1 for asked in posing.asked[-3:] if "tools" in asked.body) == 1
    lines = told(log)
    assert len(lines) == 2
    assert lines[1].startswith(
        "model 'qwen3:8b' is asked in mode prompt hermes from now on, because mode native failed"
    )
    assert PARSER_FAILURE not in log.text  # which may hold what the model wrote


@both
def test_what_was_sent_is_not_taken_back_but_the_next_request_goes_another_way(
    posing: PosingServer, stream: bool
) -> None:
    posing.pose = POSES["ollama"]
    with closing(AutoGateway(posing.url, posing.pose.model)) as gateway:
        gateway.ask()
        failing = said("Let me see. ", finish=None, usage=False, done=False).steps
        error = f"data: {json.dumps({'error': {'code': 500, 'message': PARSER_FAILURE}})}\n\n".encode()
        posing.pose = msgspec.structs.replace(posing.pose, always=Answer((*failing, error)))
        body = {**gateway.body(), "stream": stream}
        reply = request(gateway.url + CHAT, body)
        if stream:
            assert "Let me see." in reply.text
        posing.pose = POSES["ollama"]
        gateway.ask(stream=stream)
        assert used(posing) == PROMPT


@pytest.mark.parametrize("failure", ["CUDA out of memory", "the grammar does not match the tools"])
def test_other_failures_change_nothing(posing: PosingServer, failure: str) -> None:
    posing.pose = POSES["ollama"]
    with closing(AutoGateway(posing.url, posing.pose.model)) as gateway:
        gateway.ask()
        broken = Answer(
            (json.dumps({"error": {"message": failure}}).encode(),), 500, {"content-type": "application/json"}
        )
        posing.pose = msgspec.structs.replace(posing.pose, always=broken)
        assert request(gateway.url + CHAT, gateway.body()).status == 502
        posing.pose = POSES["ollama"]
        gateway.ask()
        assert used(posing) == NATIVE


FAILURES = (
    PARSER_FAILURE,
    "Failed to parse input at pos 12: <|channel|>",
    "error parsing tool call: raw='{\"a\":', err=unexpected end of JSON input",
    "openai_harmony.HarmonyError: unexpected tokens remaining in message header: ...",
    "Unexpected token 12606 while expecting start token 200006",
)


def findings(*works: str) -> Findings:
    results = tuple(ProbeResult("tools", name, "works", "") for name in works)
    return Findings(url="http://127.0.0.1:9/v1", model="m", results=results)


def auto(url: str) -> Model:
    """A model whose server makes calls, as a probe has found."""

    async def examined(_: str | None) -> Findings:
        return findings("tools, streamed", "chat")

    def built(_: Findings, advised: Any) -> Model:
        return Model("m", ChatUpstream(url), "m", mode=advised.mode, dialect=advised.dialect, retries=0)

    upstream = ChatUpstream(url)
    return Model("m", upstream, "m", retries=0, mode_selector=AutoModeSelector(None, examined, built))


def test_a_request_does_not_wait_for_ever_and_a_slow_server_is_left_alone_for_a_while(
    log: pytest.LogCaptureFixture,
) -> None:
    probed: list[str | None] = []
    ended = asyncio.Event()

    async def examined(name: str | None) -> Findings:
        probed.append(name)
        await ended.wait()
        return Findings(url="http://127.0.0.1:9/v1", message="It hangs.")

    def built(_: Findings, __: Any) -> Model:
        raise AssertionError("there is nothing to build")

    async def asked() -> None:
        mode_selector = AutoModeSelector("m", examined, built, patience_s=0.01)
        model = Model("m", ChatUpstream("http://127.0.0.1:9/v1"), "m", mode_selector=mode_selector)
        mode_selector.start()
        assert await mode_selector.choose(model) is model
        assert await mode_selector.choose(model) is model
        ended.set()
        assert await mode_selector.choose(model) is model
        assert await mode_selector.choose(model) is model
        await model.close()

    asyncio.run(asked())
    assert probed == ["m"]
    assert told(log) == ["model 'm' is asked natively until its server can be probed: It hangs."]


@pytest.mark.parametrize("failure", FAILURES)
def test_the_words_of_each_servers_parser_are_known(failure: str) -> None:
    async def other() -> Model | None:
        model = auto("http://127.0.0.1:9/v1")
        assert model.mode_selector is not None
        chosen = await model.mode_selector.choose(model)
        error = UpstreamError(f"The upstream answered 500: {failure}.", fault="status", upstream="m")
        return await model.mode_selector.instead(chosen, error)

    found = asyncio.run(other())
    assert found is not None
    assert (found.mode, found.dialect) == ("prompt", "json")


def test_llama_cpps_own_parser_fails_and_is_done_without(llama: TinyLlama, log: pytest.LogCaptureFixture) -> None:
    """With random weights its `required` ends in a 500 for some seeds."""
    tools = tuple(
        FunctionTool(name, None, {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})
        for name in ("get_weather", "get_time")
    )
    conversation = Conversation((Message("user", (TextPart("Hi"),)),), tools, tool_choice="required")

    async def fails() -> None:
        model = auto(llama.url)
        try:
            for seed in range(60):
                fields = {"seed": seed, "max_tokens": 400, "temperature": 10.0}
                with suppress(UpstreamError):
                    async for _ in run_turn(model, conversation, fields, today="2026-01-15", streamed=False):
                        pass
                if len(told(log)) > 1:
                    return
        finally:
            await model.close()

    asyncio.run(fails())
    (_, line) = told(log)
    assert line.startswith("model 'm' is asked in mode prompt json from now on, because mode native failed")


@pytest.mark.processes
@both
def test_llama_cpp_is_asked_raw_and_held_to_its_grammar(
    llama: TinyLlama, log: pytest.LogCaptureFixture, stream: bool
) -> None:
    with closing(AutoGateway(llama.url, "tiny")) as gateway:
        for seed in range(8):
            body = {**gateway.body(), "tools": BOUNDED, "tool_choice": "required", "seed": seed, "max_tokens": 1_000}
            answer = ask(gateway.url, {**body, "parallel_tool_calls": False}, stream=stream)
            assert answer.calls in ([("get_weather", {"city": "Oslo"})], [("get_weather", {"city": "Bergen"})])
    (line,) = told(log)
    assert line.startswith("model 'tiny' is asked in mode raw hermes: ")


# --- the configuration ---


@pytest.mark.parametrize(("how", "mode"), [({}, "native"), ({"dialect": "hermes"}, "prompt")])
def test_the_simulated_model_is_plain(how: dict[str, Any], mode: str) -> None:
    (model,) = build_models(Config(models=(ModelConfig(name="s", upstream="simulated", mode="auto", **how),))).values()
    assert (model.mode, model.mode_selector) == (mode, None)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"dialect": "hermez"}, "Did you mean 'hermes'?"),
        ({"options": {"thinking": "off"}}, "options are a dialect's"),
        ({"faults": "all:1"}, "faults are for the simulated model"),
        ({"upstream": "localhost:8000"}, "got no http:// or https://"),
    ],
)
def test_mistakes_are_told_at_the_start(how: dict[str, Any], message: str) -> None:
    given = ModelConfig(**{"name": "m", "upstream": "http://127.0.0.1:9/v1", "mode": "auto", **how})
    with pytest.raises(ConfigError, match=message.replace("?", r"\?").replace("(", r"\(")):
        build_models(Config(models=(given,)))
