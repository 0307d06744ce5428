"""`callwright doctor`: what it finds out about each server, what it advises, and how it is told."""

import asyncio
import gc
import json
import re
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

import callwright
from callwright.cli import main
from callwright.doctor.examine import Depth, probe
from callwright.doctor.fields import ENDPOINTS, FIELDS
from callwright.doctor.findings import Findings
from callwright.doctor.recommend import advice
from callwright.gateway.config.build_models import build_models
from callwright.gateway.config.config import ModelConfig, load_config
from tests.conftest import KEY, Served
from tests.support.examples import share
from tests.support.fake_servers import POSES, TRANSFORMERS_API, Pose, PosingServer, models_of
from tests.support.servers import Answer, whole
from tests.support.tiny_llama import HERMES, TinyLlama


@pytest.fixture(scope="module")
def _posing() -> Iterator[PosingServer]:
    server = PosingServer()
    yield server
    server.stop()
    gc.collect()


@pytest.fixture
def posing(_posing: PosingServer) -> PosingServer:
    _posing.plays()
    return _posing


@pytest.fixture(scope="session")
def llama(tmp_path_factory: pytest.TempPathFactory) -> TinyLlama:
    return TinyLlama(tmp_path_factory.mktemp("llama"))


@pytest.fixture(scope="module")
def hermes_llama(tmp_path_factory: pytest.TempPathFactory) -> TinyLlama:
    return TinyLlama(tmp_path_factory.mktemp("hermes"), HERMES)


def found(url: str, **how: Any) -> Findings:
    return asyncio.run(probe(url, **{"timeout_s": 10.0, **how}))


def doctor(*arguments: str, **how: Any) -> Result:
    return CliRunner().invoke(main, ["doctor", *arguments], **how)


@pytest.mark.parametrize("pose", ["vllm", "ollama", "lm studio", "calls are printed"])
def test_what_it_advises_is_written_once_and_can_be_served(posing: PosingServer, pose: str, tmp_path: Path) -> None:
    posing.pose = POSES[pose]
    file = tmp_path / "call wright.toml"
    result = doctor(posing.root, "--write", str(file))
    assert result.exit_code == 0, result.output
    assert f"callwright serve --config '{file}'" in result.stderr
    (entry,) = load_config(file).models
    assert entry.name == POSES[pose].model
    assert build_models(load_config(file))
    written = file.read_text()
    assert "# mode: " in written
    posing.plays()
    again = doctor(posing.root, "--write", str(file))
    assert (again.exit_code, file.read_text()) == (2, written)
    assert f"{file} exists already" in again.stderr
    assert not posing.asked


def test_nothing_is_written_where_there_is_nothing_to_advise(closed_port: str, tmp_path: Path) -> None:
    file = tmp_path / "callwright.toml"
    result = doctor(closed_port, "--write", str(file))
    assert result.exit_code == 1
    assert "Nothing is written" in result.stderr
    assert not file.exists()


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (("nomic-embed-text:latest", "qwen3:8b", "other"), "qwen3:8b"),
        (("bge-m3", "whisper-1", "my-reranker", "tiny"), "tiny"),
        (("nomic-embed-text:latest",), "nomic-embed-text:latest"),
    ],
)
def test_the_first_model_that_chats_is_examined(posing: PosingServer, names: tuple[str, ...], chosen: str) -> None:
    pages = {**POSES["ollama"].pages, "/v1/models": models_of(*names, owned_by="library")}
    posing.pose = msgspec.structs.replace(POSES["ollama"], pages=pages)
    found_ = found(posing.root, depth="mode")
    assert found_.model == chosen
    asked = [one.body["model"] for one in posing.asked if one.body]
    assert {*asked} == {chosen}


@pytest.mark.parametrize("depth", ["all", "mode"])
def test_an_examination_is_stopped_anywhere_without_a_word(
    posing: PosingServer, depth: Depth, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a task is made or something is waited for, the examination is stopped: at the first, in the next turn at
    the second, and so on. What was begun and is never awaited is a warning, and those are errors.
    """
    posing.pose = POSES["vllm"]

    async def stopped_at(number: int) -> bool:
        left = number
        examination: asyncio.Task[Findings] | None = None
        loop = asyncio.get_running_loop()
        waits = loop.create_future

        def passed() -> None:
            nonlocal left
            left -= 1
            if left == 0 and examination is not None:
                examination.cancel()

        def made(loop: asyncio.AbstractEventLoop, work: Any, **how: Any) -> Any:
            passed()
            return asyncio.Task(work, loop=loop, **how)

        def waited() -> asyncio.Future[Any]:
            passed()
            return waits()

        loop.set_task_factory(made)
        monkeypatch.setattr(loop, "create_future", waited)
        examination = asyncio.ensure_future(probe(posing.url, timeout_s=10.0, depth=depth))
        await asyncio.wait([examination])
        return examination.cancelled()

    number = 2
    while asyncio.run(stopped_at(number)):
        number += 24 // share(24)  # each turn in a run of everything
        gc.collect()
    assert number > {"all": 10, "mode": 5}[depth]


# --- which server it is, and what it does ---

# The pose, then: server, version, mode, dialect, `server` and `constrain` of the advice.
SERVERS = [
    ("vllm", "vllm", "0.33.0", "raw", "harmony", "vllm", True),
    ("vllm, reasoning parser", "vllm", "0.33.0", "raw", "hermes", "vllm", False),
    ("vllm behind a proxy", "vllm", "1", "native", None, "vllm", True),
    ("sglang", "sglang", "0.5.23", "raw", "hermes", "sglang", True),
    ("sglang behind a proxy", "sglang", "0.5.23", "raw", "hermes", "sglang", False),
    ("ollama", "ollama", "0.33.0", "native", None, "ollama", True),
    ("ollama, no tools", "ollama", "0.33.0", "prompt", "json", "ollama", False),
    ("lm studio", "unknown", None, "native", None, "openai", True),
    ("transformers", "transformers", None, "prompt", "json", "transformers", True),
    ("calls are printed", "unknown", None, "prompt", "json", "openai", True),
    ("no calls in a stream", "unknown", None, "prompt", "json", "openai", True),
]


@pytest.mark.parametrize("depth", ["all", "mode"])
@pytest.mark.parametrize(("pose", "server", "version", "mode", "dialect", "flavour", "constrain"), SERVERS)
def test_each_server_is_known_and_the_mode_is_the_one_that_works(
    posing: PosingServer,
    depth: Depth,
    pose: str,
    server: str,
    version: str | None,
    mode: str,
    dialect: str | None,
    flavour: str,
    constrain: bool,
) -> None:
    posing.pose = POSES[pose]
    findings = found(posing.root, depth=depth)
    advised = advice(findings)
    assert (findings.server, findings.version, findings.message) == (server, version, "")
    assert (advised.usable, advised.mode, advised.dialect) == (True, mode, dialect), advised
    assert (advised.server, advised.constrain) == (flavour, constrain)
    assert findings.url == posing.url
    assert len(posing.asked) == findings.requests


@pytest.mark.parametrize("pose", POSES)
def test_every_constraint_is_told_as_the_server_treats_it(posing: PosingServer, pose: str) -> None:
    posing.pose = POSES[pose]
    findings = found(posing.url)
    told = {result.probe: result.status for result in findings.results if result.group == "constraints"}
    completes = findings.status("completions") == "works"
    expected: dict[str, str] = {}
    for field in FIELDS:
        if field.server == findings.server and (completes or field.endpoint != "completions"):
            endpoint = ENDPOINTS[field.endpoint]
            place = f"{'/v1' if endpoint.in_v1 else ''}{endpoint.path} {'.'.join(field.name.split())}"
            if place in posing.pose.holds:
                expected[field.probe] = "enforced"
            elif place in posing.pose.refuses or not is_known(posing.pose, place):
                expected[field.probe] = "refused"
            else:
                expected[field.probe] = "ignored"
    assert told == expected
    assert told


def is_known(pose: Pose, place: str) -> bool:
    """Whether the server has the path of a field."""
    path = place.partition(" ")[0]
    return path.startswith("/v1") or any(held.startswith(f"{path} ") for held in pose.holds)


CHOICES = ("required", "named", "none")
CALLS: dict[str, tuple[str, ...]] = {
    # tools, tools streamed; then tool_choice required, named, none; then strict
    "vllm": ("works", "works", "enforced", "enforced", "enforced", "enforced"),
    "vllm, reasoning parser": ("works", "works", "enforced", "enforced", "enforced", "ignored"),
    "ollama": ("works", "works", "ignored", "ignored", "ignored", "ignored"),
    "ollama, no tools": ("refused",) * 6,
    "lm studio": ("works", "works", "enforced", "refused", "enforced", "ignored"),
    "calls are printed": ("ignored", "ignored", "ignored", "ignored", "ignored", "unclear"),
    "no calls in a stream": ("works", "ignored", "enforced", "enforced", "enforced", "ignored"),
    "its parser fails": ("error", "error", "error", "error", "error", "error"),
    "weak, its call is made": ("works", "works", "enforced", "enforced", "unclear", "unclear"),
    "weak, its call is printed": ("ignored", "ignored", "ignored", "ignored", "unclear", "unclear"),
    "weaker, sees the tools": ("no call", "no call", "enforced", "enforced", "unclear", "unclear"),
    "weaker, of no known dialect": ("no call", "no call", "enforced", "enforced", "unclear", "unclear"),
    "it drops the tools": ("ignored", "ignored", "ignored", "ignored", "unclear", "unclear"),
    "weaker, nothing is counted": ("unclear", "unclear", "enforced", "enforced", "unclear", "unclear"),
}


@pytest.mark.parametrize("pose", CALLS)
def test_the_servers_own_calls_are_told_as_they_come(posing: PosingServer, pose: str) -> None:
    posing.pose = POSES[pose]
    findings = found(posing.url)
    choices = [findings.status(f"tool_choice {choice}") for choice in CHOICES]
    told = (findings.status("tools"), findings.status("tools, streamed"), *choices, findings.status("strict"))
    assert told == CALLS[pose]


# The pose, then: the mode of the advice, and words of the evidence about `tools`, and of the reason for the mode.
WEAK = [
    ("weak, its call is made", "native", "when asked to repeat it", "work in a stream"),
    ("weak, its call is printed", "prompt", "the text contains a call", "makes no calls of its own"),
    ("weaker, sees the tools", "prompt", "213 tokens of prompt, 21 without them", "the model, which makes no call"),
    ("it drops the tools", "prompt", "does not see the tools (42 tokens", "makes no calls of its own"),
    ("weaker, nothing is counted", "prompt", "the server counts no tokens", "makes no calls of its own"),
]


@pytest.mark.parametrize("depth", ["all", "mode"])
@pytest.mark.parametrize(("pose", "mode", "evidence", "reason"), WEAK)
def test_a_weak_model_is_not_taken_for_a_broken_server(
    posing: PosingServer, depth: Depth, pose: str, mode: str, evidence: str, reason: str
) -> None:
    posing.pose = POSES[pose]
    findings = found(posing.url, depth=depth)
    told = {result.probe: result.evidence for result in findings.results}
    assert evidence in told["tools, streamed"]
    advised = advice(findings)
    assert advised.mode == mode
    assert reason in advised.choices["mode"].reason


def test_an_answer_cut_before_its_call_proves_nothing(posing: PosingServer) -> None:
    message = {"role": "assistant", "content": "The weather in Oslo is: the weather in Oslo is:"}
    cut = whole({"choices": [{"message": message, "finish_reason": "length"}]})
    posing.pose = Pose("m", {"/v1/models": models_of("m")}, always=cut)
    findings = found(posing.url)
    assert {findings.status(f"tool_choice {choice}") for choice in CHOICES} == {"unclear"}
    called = {"function": {"name": "get_time", "arguments": '{"city": "Os'}, "type": "function", "id": "c"}
    whole_message = {"role": "assistant", "content": "A call:", "tool_calls": [called]}
    begun = whole({"choices": [{"message": whole_message, "finish_reason": "length"}]})
    posing.pose = Pose("m", {"/v1/models": models_of("m")}, always=begun)
    assert found(posing.url).status("strict") == "unclear"


@pytest.mark.parametrize(
    "said",
    ["I would use get_weather for the city Oslo.", "get_weather tells the weather. The city is Oslo.", "Oslo: 3 °C"],
)
def test_prose_about_a_tool_is_no_call(posing: PosingServer, said: str) -> None:
    answer = whole({"choices": [{"message": {"role": "assistant", "content": said}, "finish_reason": "stop"}]})
    posing.pose = Pose("m", {"/v1/models": models_of("m")}, always=answer)
    assert found(posing.url).status("tools") == "unclear"


@pytest.mark.parametrize(
    ("pose", "reasoning", "context"),
    [
        ("vllm", "reasoning_content", 131_072),
        ("vllm, reasoning parser", "reasoning", 40_960),
        ("sglang", None, 40_960),
        ("ollama", "reasoning", 40_960),
        ("lm studio", None, None),
    ],
)
def test_reasoning_and_context_are_found(
    posing: PosingServer, pose: str, reasoning: str | None, context: int | None
) -> None:
    posing.pose = POSES[pose]
    findings = found(posing.url)
    assert (findings.reasoning, findings.context) == (reasoning, context)


def test_control_tokens_that_vanish_rule_out_mode_raw(posing: PosingServer) -> None:
    posing.pose = POSES["lm studio"]
    findings = found(posing.url)
    assert findings.status("control tokens") == "ignored"
    assert "control tokens" in advice(findings).choices["mode"].reason


def test_a_model_that_is_named_is_the_one_that_is_asked(posing: PosingServer) -> None:
    posing.pose = POSES["ollama"]
    findings = found(posing.url, model="gemma3:4b")
    assert findings.model == "gemma3:4b"
    assert {asked.body["model"] for asked in posing.asked if asked.body} == {"gemma3:4b"}


def test_choosing_a_mode_takes_few_requests(posing: PosingServer) -> None:
    for pose, most in (("vllm", 4), ("sglang", 4), ("ollama", 10), ("calls are printed", 8)):
        posing.pose = POSES[pose]
        assert found(posing.url, depth="mode").requests <= most, pose


# --- real servers ---


def test_the_gateway_itself_is_known(simulated: str) -> None:
    findings = found(simulated, model="raw-harmony")
    assert (findings.server, findings.version) == ("callwright", callwright.__version__)
    assert (findings.status("tools"), findings.status("tools, streamed")) == ("works", "works")
    assert (findings.status("tool_choice named"), findings.status("completions")) == ("enforced", "works")
    assert advice(findings).mode == "native"


@pytest.mark.processes
def test_llama_cpp_is_examined(hermes_llama: TinyLlama) -> None:
    findings = found(hermes_llama.url.removesuffix("/v1"), timeout_s=60.0)
    assert (findings.server, findings.message, findings.context, findings.llguidance) == ("llamacpp", "", 8192, True)
    assert findings.sign == "GET /models has the header 'Server: llama.cpp'"
    assert findings.dialect_reason == "its chat template writes calls as hermes does"
    statuses = {result.probe: result.status for result in findings.results}
    assert (statuses["chat"], statuses["completions"]) == ("works", "works")
    assert (statuses["control tokens"], statuses["a call in mode raw"]) == ("works", "works")
    for probe_ in ("/completion: grammar", "/completion: grammar in Lark", "chat: response_format json_schema"):
        assert statuses[probe_] == "enforced", probe_
    # Unlike on chat, it takes the field and does nothing with it.
    assert statuses["completions: response_format json_schema"] == "ignored"
    advised = advice(findings)
    assert (advised.mode, advised.dialect, advised.server) == ("raw", "hermes", "llamacpp")


@pytest.mark.processes
def test_what_llama_cpp_cannot_tell_is_left_to_text(llama: TinyLlama) -> None:
    advised = advice(found(llama.url, depth="mode", timeout_s=60.0))
    assert (advised.mode, advised.choices["dialect"].value) == ("prompt", "template")  # its own, which shows no tools


def test_transformers_without_a_cache_is_known_and_needs_the_name(posing: PosingServer) -> None:
    failed = whole("Internal Server Error", 500, "text/plain")
    posing.pose = Pose(
        "m", {"/v1/models": failed, "/models": failed, "/openapi.json": TRANSFORMERS_API}, calls="printed"
    )
    findings = found(posing.root)
    assert (findings.server, advice(findings).usable) == ("transformers", False)
    assert findings.message.startswith("The server of transformers lists the models in the cache of Hugging Face")
    advised = advice(found(posing.root, model="m"))
    assert (advised.mode, advised.dialect, advised.server) == ("prompt", "json", "transformers")


# --- servers that are none ---

PAGE = whole("<!doctype html><title>Welcome</title>", kind="text/html")
# What it answers; then the message, and the evidence, how they begin.
NONSENSE: dict[str, tuple[Any, str, str]] = {
    "a web page": (PAGE, "A web page answers, not a model server.", ""),
    "401": (whole({"error": {"message": "no key"}}, 401), "The server refuses access (HTTP 401).", "HTTP 401: no key"),
    "403": (whole("Forbidden", 403, "text/plain"), "The server refuses access (HTTP 403).", "HTTP 403: Forbidden"),
    "404": (whole("Not here", 404, "text/plain"), "The server lists no models (HTTP 404).", "HTTP 404: Not here"),
    "500": (
        whole({"detail": "out of memory"}, 500),
        "The server lists no models (HTTP 500).",
        "HTTP 500: out of memory",
    ),
    "a redirect": (
        whole("", 302, location="http://127.0.0.1:9/"),
        "The server lists no models (HTTP 302).",
        "HTTP 302",
    ),
    "garbage": (
        whole("\x00\x1b[31m{{{", kind="application/json"),
        "The server lists no models (HTTP 200).",
        "\ufffd\ufffd[31m{{{",
    ),
    "another JSON": (
        whole([1, 2, {"data": 3}]),
        "The server lists no models (HTTP 200).",
        '[1, 2, {"data": 3}]',
    ),
    "no models": (whole({"data": []}), "The server lists no models: none is loaded.", ""),
    "strange models": (
        whole({"data": [1, None, {"id": 7}, []]}),
        "The server lists no models: none is loaded.",
        "",
    ),
    "a reset": (Answer(("reset",)), "The server cannot be asked: it closed the connection", ""),
    "a cut": (Answer((b'{"data": [', "cut")), "The server cannot be asked: it closed the connection", ""),
    "silence": (Answer(("silence",)), "The server cannot be asked: silent for", ""),
    "no end": (Answer((b"x" * 100, "silence")), "The server cannot be asked: an answer without an end (100 bytes", ""),
    "too much": (
        Answer((b" " * 1_000_000,) * 5),
        "The server cannot be asked: an answer of more than 4,194,304 bytes",
        "",
    ),
}


@pytest.mark.parametrize("kind", NONSENSE)
def test_what_is_no_model_server_is_told_in_plain_words(posing: PosingServer, kind: str) -> None:
    answer, message, evidence = NONSENSE[kind]
    posing.pose = Pose("m", {"/v1/models": answer, "/models": answer})
    findings = found(posing.root, timeout_s=0.5)
    assert findings.message.startswith(message)
    assert findings.evidence.startswith(evidence)
    assert bool(findings.evidence) == bool(evidence)
    assert not [result for result in findings.results if result.status in ("works", "enforced")]
    assert not advice(findings).usable


@pytest.mark.parametrize("depth", ["all", "mode"])
@pytest.mark.parametrize("status", [401, 403, 400])
def test_a_server_that_requires_a_key_is_said_to(posing: PosingServer, status: int, depth: Depth) -> None:
    refusal = Answer((b'{"error": {"message": "bad key"}}',), status, {"content-type": "application/json"})
    posing.pose = Pose("qwen3", {"/v1/models": models_of("qwen3")}, always=refusal)
    advised = advice(found(posing.url, depth=depth))
    assert not advised.usable
    assert any("--key-env VAR" in choice.reason for choice in advised.choices.values()) == (status != 400)


@pytest.mark.parametrize("kind", ["silence", "no end", "too much", "reset", "cut", "garbage", "page"])
def test_a_server_that_breaks_behind_its_list_of_models_is_told_as_it_is(posing: PosingServer, kind: str) -> None:
    answer = PAGE if kind == "page" else next(one for name, (one, *_) in NONSENSE.items() if name.endswith(kind))
    posing.pose = Pose("qwen3", {"/v1/models": models_of("qwen3")}, always=answer)
    findings = found(posing.url, timeout_s=0.5)
    assert findings.message == f"No model answers (chat: {findings.status('chat')})."
    assert findings.evidence
    assert findings.seconds < 5
    assert {result.status for result in findings.results} <= {"error", "refused"}
    assert not advice(findings).usable
    quick = found(posing.url, timeout_s=0.5, depth="mode")
    assert not advice(quick).usable


STRANGE: tuple[Any, ...] = (
    *([], 1, "x", None, {}, [[]], {"data": {}}, {"data": [{"id": ""}]}, {"choices": {}}, {"choices": [None]}),
    *({"choices": [{"message": []}]}, {"choices": [{"text": 1}]}, {"error": [1]}, {"error": {"message": {}}}),
    {"choices": [{"message": {"content": 5, "tool_calls": [{"function": {"name": 7, "arguments": {"a": 1}}}, 1]}}]},
    {"choices": [{"delta": {"tool_calls": {}}, "finish_reason": 1}]},
    *({"model_info": [1], "version": []}, {"model_info": {"a.context_length": "b"}, "version": {}, "model_path": 1}),
    {"default_generation_settings": [], "chat_template": {}, "build_info": 7, "content": [], "message": "x"},
)


@pytest.mark.parametrize("depth", ["all", "mode"])
@pytest.mark.parametrize("server", ["vllm", "sglang", "llamacpp", "Ollama is running", "unknown"])
@pytest.mark.parametrize("number", range(len(STRANGE)))
def test_nothing_that_a_server_answers_makes_the_doctor_fail(
    posing: PosingServer, number: int, server: str, depth: Depth
) -> None:
    strange = whole(STRANGE[number])
    pages = dict.fromkeys(("/version", "/get_server_info", "/api/version", "/info", "/props"), strange)
    pages |= {"/": whole(server, kind="text/plain"), "/v1/models": models_of("qwen3", "b", owned_by=server)}
    posing.pose = Pose("qwen3", pages, always=strange)
    findings = found(posing.url, depth=depth)
    assert not advice(findings).usable
    assert not [result for result in findings.results if result.status in ("works", "enforced")]


def test_a_dead_port_is_told(closed_port: str) -> None:
    findings = found(closed_port)
    port = closed_port.removesuffix("/v1").rpartition(":")[2]
    assert findings.message == (
        f"The server cannot be asked: no connection to 127.0.0.1, port {port} (Connection refused)."
    )
    assert findings.requests == 1


@pytest.mark.parametrize("in_url", [False, True], ids=["key", "password in the URL"])
def test_keys_are_sent_and_never_told(posing: PosingServer, in_url: bool) -> None:
    echo = whole({"error": {"message": f"Incorrect API key: {KEY}"}}, 401)
    posing.pose = Pose("m", {"/v1/models": echo})
    findings = found(posing.url.replace("//", f"//user:{KEY}@")) if in_url else found(posing.url, api_key=KEY)
    sent = {name.lower(): value for name, value in posing.asked[0].headers.items()}["authorization"]
    assert sent.startswith("Basic ") if in_url else sent == f"Bearer {KEY}"
    assert KEY not in msgspec.json.encode(findings).decode()
    assert findings.url == posing.url
    assert "Incorrect API key: …" in findings.evidence
    assert "(--key-env, " in findings.message


def test_a_gateway_of_our_own_needs_no_configuration(serve: Served, tmp_path: Path) -> None:
    url = serve(ModelConfig(name="m", upstream="simulated", mode="raw", dialect="harmony"))
    page = tmp_path / "page.html"
    result = doctor(url, "--html", str(page))
    assert result.exit_code == 0
    advised = " ".join(result.stdout.split("Advice")[1].split())
    assert f"It is a Callwright gateway: clients use it directly, with the base URL {url}/v1." in advised
    assert "`callwright eval FILE`" in advised
    assert "[[models]]" not in result.stdout
    assert "It is a Callwright gateway" in page.read_text()


# Where tools go into the messages as text, there is often a better way to start the server, or to ask it.
PARSERS = {"vllm": "--enable-auto-tool-choice --tool-call-parser NAME", "sglang": "--tool-call-parser NAME"}


@pytest.mark.parametrize("server", PARSERS)
def test_where_a_server_makes_no_calls_it_is_said_how_it_would(posing: PosingServer, server: str) -> None:
    pages = {"/v1/models": models_of("served", owned_by=server, max_model_len=4096)}
    posing.pose = Pose("served", pages, calls="printed")
    advised = advice(found(posing.url))
    assert (advised.mode, advised.dialect) == ("prompt", "json")
    assert PARSERS[server] in advised.choices["mode"].reason
    assert "--dialect" in advised.choices["dialect"].reason


# --- the command ---


def test_the_command_tells_it_and_what_it_prints_is_a_configuration(posing: PosingServer, tmp_path: Path) -> None:
    posing.pose = POSES["vllm, reasoning parser"]
    result = doctor(posing.root)
    assert result.exit_code == 0
    assert result.stderr.startswith(f"Asking {posing.root} …\n")
    told = {line.strip().rpartition(": ")[0] for line in result.stderr.splitlines()[1:]}
    assert {"chat", "tools, streamed", "a call in mode raw", "chat: structured_outputs regex"} <= told
    out = result.stdout
    for text in ("vLLM 0.33.0", "Qwen/Qwen3-32B (of 2)", "40,960 tokens", "comes in reasoning", "ignored   it wrote: "):
        assert text in out
    toml = out[out.index("[[models]]") :].rpartition("\n\n")[0]
    (tmp_path / "callwright.toml").write_text(toml)
    (model,) = build_models(load_config(tmp_path / "callwright.toml")).values()
    assert (model.name, model.mode, model.dialect, model.constrain) == ("Qwen/Qwen3-32B", "raw", "hermes", False)
    assert model.requests.is_lenient


@pytest.mark.parametrize("pose", POSES)
def test_the_json_holds_everything_and_a_configuration_that_can_be(
    posing: PosingServer, tmp_path: Path, pose: str
) -> None:
    posing.pose = POSES[pose]
    result = doctor(posing.url, "--json")
    told = json.loads(result.stdout)
    assert told["findings"]["url"] == posing.url
    assert told["findings"]["results"]
    assert {"group", "probe", "status", "evidence"} == told["findings"]["results"][0].keys()
    (entry,) = tomllib.loads(told["advice"]["toml"])["models"]
    assert entry["mode"] == told["advice"]["mode"] == told["advice"]["choices"]["mode"]["value"]
    (tmp_path / "callwright.toml").write_text(told["advice"]["toml"])
    (model,) = build_models(load_config(tmp_path / "callwright.toml")).values()
    assert (model.mode, model.dialect) == (told["advice"]["mode"], told["advice"]["dialect"])


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Qwen/Qwen3-23B", "(not listed by the server. Did you mean 'Qwen/Qwen3-32B'?)"),
        ("llama", "(not listed by the server. It lists: Qwen/Qwen3-32B, "),
    ],
)
def test_a_model_that_the_server_does_not_list_is_told(posing: PosingServer, name: str, told: str) -> None:
    posing.pose = POSES["vllm, reasoning parser"]
    assert f"{name} {told}" in " ".join(doctor(posing.url, "--model", name).stdout.split())


def test_nothing_usable_is_exit_status_1(closed_port: str) -> None:
    result = doctor(closed_port)
    assert result.exit_code == 1
    assert "The server cannot be asked: no connection to 127.0.0.1, port " in result.stdout
    assert re.search(r"^1 request in \d", result.stdout, re.MULTILINE)
    told = json.loads(doctor(closed_port, "--json").stdout)
    assert told["advice"]["usable"] is False


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("localhost:8000",), "expected a URL such as http://localhost:8000/v1"),
        (("smollm2",), "got a model. Serve it with `callwright serve smollm2`, then give the URL that this prints"),
        (("some/model.gguf",), "Serve it with `callwright serve some/model.gguf`"),
        (("simulated",), "Serve it with `callwright serve simulated`"),
        (("http://127.0.0.1:9/v1", "--key-env", "NO_SUCH"), "--key-env: the environment variable NO_SUCH is not set"),
        (("http://127.0.0.1:9/v1", "--html", "/no/such/folder/x.html"), "Cannot write /no/such/folder/x.html"),
        (("http://127.0.0.1:9/v1", "--dialect", "hermez"), "Did you mean 'hermes'?"),
    ],
)
def test_mistakes_are_told(arguments: tuple[str, ...], message: str) -> None:
    result = doctor(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_page_that_cannot_be_written_takes_nothing_of_the_report(posing: PosingServer) -> None:
    result = doctor(posing.url, "--html", "/no/such/folder/x.html")
    assert result.exit_code == 2
    assert "Advice" in result.stdout


@pytest.mark.parametrize(("value", "coloured"), [("1", False), ("", True)])
def test_colours_are_left_out_where_nobody_wants_them(
    posing: PosingServer, value: str, coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", value)
    result = CliRunner().invoke(main, ("doctor", posing.url), color=True)
    assert ("\x1b[" in result.stdout) == coloured


class Seen(HTMLParser):
    """What stands in a page: its tags with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


EVIL = '<script>alert("1")</script>&amp;\x1b[2J'


def test_the_page_stands_alone_and_whatever_a_server_says_is_text(posing: PosingServer, tmp_path: Path) -> None:
    refusal = whole({"error": {"message": EVIL}}, 400)
    posing.pose = Pose(EVIL, {"/v1/models": models_of('<b onclick="x">'), "/": PAGE}, always=refusal)
    assert doctor(posing.url, "--html", str(tmp_path / "page.html")).exit_code == 1
    text = (tmp_path / "page.html").read_text()
    page = Seen(text)
    assert not page.open
    assert {"script", "b", "img", "link", "iframe"}.isdisjoint(page.tags)
    assert page.attributes <= {"lang", "charset", "name", "content", "class", "scope"}
    assert '<script>alert("1")</script>&amp;\ufffd[2J' in page.text
    assert '<b onclick="x">' in page.text
    assert "\x1b" not in text
    assert "http" not in re.sub(re.escape(posing.url), "", text).replace("HTTP", "")
    assert "prefers-color-scheme: dark" in text


@pytest.mark.parametrize("pose", POSES)
def test_the_page_tells_what_the_table_tells(posing: PosingServer, pose: str, tmp_path: Path) -> None:
    posing.pose = POSES[pose]
    told = json.loads(doctor(posing.url, "--json", "--html", str(tmp_path / "page.html")).stdout)
    page = Seen((tmp_path / "page.html").read_text())
    assert not page.open
    assert told["advice"]["toml"] in page.text
    for result in told["findings"]["results"]:
        assert f"{result['probe']}{result['status']}{result['evidence']}" in page.text


def test_no_control_character_of_a_server_reaches_the_terminal(posing: PosingServer) -> None:
    refusal = whole({"error": {"message": EVIL}}, 400)
    posing.pose = Pose("m", {"/v1/models": models_of("m\x1b[2J", "served")}, always=refusal)
    out = doctor(posing.url).stdout
    assert "\x1b" not in out
    assert "served" in out
