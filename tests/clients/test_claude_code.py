"""The real Claude Code against a started gateway; scripted models answer, in the words of each way they are asked.

`scripts/claude-code` installs it and runs this. What it sends and what it makes of answers was observed with 2.1.332.
"""

import json
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from callwright.gateway.config.config import ModelConfig
from tests import conftest
from tests.clients.claude_code import ClaudeCode, Ran, installed, settings
from tests.conftest import Served
from tests.support.servers import Answer, ModelServer, whole
from tests.support.turns import broken_off, repeated, shown, wrote

NOT_HERE: Final = "CALLWRIGHT_CLAUDE_CODE names no Claude Code: scripts/claude-code does"
pytestmark = [pytest.mark.clients, pytest.mark.skipif(installed() is None, reason=NOT_HERE)]

WAYS: Final = ("native", "prompt-json", "raw-hermes-vllm", "raw-harmony-vllm")
ways = pytest.mark.parametrize("way", WAYS)
# gpt-oss stops behind each call.
parallel_ways = pytest.mark.parametrize("way", [way for way in WAYS if "harmony" not in way])
# Formats of other models that people let it run on.
MORE_DIALECTS: Final = ("qwen3_coder", "glm47", "kimi_k2", "deepseek_v3", "minimax_m2", "gemma4")
MORE_WAYS: Final = tuple(f"raw-{dialect}-vllm" for dialect in MORE_DIALECTS)
WEATHER: Final = "mcp__demo__get_weather"
TOO_LONG: Final = {
    "message": "This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens.",
    "type": "invalid_request_error",
    "param": "messages",
    "code": "context_length_exceeded",
}
# Without the tags it asks once more.
SUMMARY: Final = "<summary>SUMMARY-7</summary>"


@pytest.fixture
def claude(tmp_path: Path, serve: Served, model: ModelServer) -> ClaudeCode:
    """Claude Code at a gateway before the scripted model server."""
    more = [
        ModelConfig(name=way, upstream=model.url, mode="raw", dialect=dialect, server="vllm")
        for way, dialect in zip(MORE_WAYS, MORE_DIALECTS, strict=True)
    ]
    return ClaudeCode(tmp_path, serve(*conftest.scripted_models(model.url, retries=2), *more, heartbeat_s=0.1))


def succeeded(ran: Ran, text: str) -> None:
    """The turn came to its end with this message."""
    told = (ran.exit_code, ran.result.get("is_error"), ran.result.get("result"))
    assert told == (0, False, text), f"{ran.result} {ran.stderr}"


def read(model: ModelServer) -> list[str]:
    """What the model was shown, by request."""
    return [shown(asked.body) for asked in model.asked]


def kept(model: ModelServer, way: str) -> None:
    """Each request went on from the one before it: the server's prompt cache is kept."""
    for before, after in pairwise(asked.body for asked in model.asked):
        tools = before.get("tools") or []
        assert (after.get("tools") or [])[: len(tools)] == tools
        if way.startswith("raw"):
            start = {"hermes": "<|im_start|>assistant", "harmony": "<|start|>assistant"}[way.split("-")[1]]
            assert after["prompt"].startswith(before["prompt"].rpartition(start)[0] + start)
        else:
            assert after["messages"][: len(before["messages"])] == before["messages"]


# --- text and commands ---


@ways
def test_a_text_is_shown(claude: ClaudeCode, model: ModelServer, way: str) -> None:
    model.plays(wrote(way, "Hello, you.", thought="A greeting."))
    ran = claude.run("Say hi.", model=way)
    succeeded(ran, "Hello, you.")
    (prompt,) = read(model)
    assert "Say hi." in prompt
    assert "x-anthropic-billing-header" not in prompt
    assert "DeferredToolPlaceholder" not in json.dumps(model.body)
    assert ran.result["usage"]["output_tokens"] > 0


@ways
def test_a_command_is_run_and_its_output_answered(claude: ClaudeCode, model: ModelServer, way: str) -> None:
    call = ("Bash", {"command": "echo wave-$((6 * 7))", "description": "Print"})
    model.plays(wrote(way, "Let me see.", [call], thought="I run it."), wrote(way, "It printed wave-42."))
    ran = claude.run("Say hi.", model=way)
    succeeded(ran, "It printed wave-42.")
    assert (ran.calls, ran.results) == ([call], ["wave-42"])
    first, second = read(model)
    assert "wave-42" not in first
    assert "wave-42" in second
    if way != "prompt-json":  # a prompt of this mode has no place for it
        assert "I run it." in second, "reasoning comes back"
    kept(model, way)


@parallel_ways
def test_calls_side_by_side_are_all_run(claude: ClaudeCode, model: ModelServer, way: str) -> None:
    calls = [("Bash", {"command": f"echo wave-$((6 * {n}))", "description": "Print"}) for n in (7, 8)]
    model.plays(wrote(way, "", calls), wrote(way, "Done."))
    ran = claude.run("Do both.", model=way)
    succeeded(ran, "Done.")
    assert ran.calls == calls
    assert sorted(ran.results) == ["wave-42", "wave-48"]
    assert read(model)[1].index("wave-42") < read(model)[1].index("wave-48"), "in the order of the calls"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("Bash", {"command": "echo hi", "timeout": "5000"}),
        ("Bash", {"command": "echo hi", "timeout": 5000.0}),
        ("Bash", {"command": "echo hi", "timeout": None, "description": None}),
        ("Bash", {"cmd": "echo hi"}),
        ("Bash", {"arguments": {"command": "echo hi"}}),
        ("bash", {"command": "echo hi"}),
        ("functions.Bash", {"command": "echo hi"}),
    ],
    ids=["number as text", "whole number", "null", "another key", "wrapped", "another case", "a namespace"],
)
def test_calls_that_it_would_refuse_are_mended(
    claude: ClaudeCode, model: ModelServer, name: str, arguments: dict[str, Any]
) -> None:
    model.plays(wrote("native", "", [(name, arguments)]), wrote("native", "Done."))
    ran = claude.run("Say hi.")
    succeeded(ran, "Done.")
    assert (ran.results, len(model.asked)) == (["hi"], 2)


def test_a_call_with_an_unknown_key_is_asked_for_again(claude: ClaudeCode, model: ModelServer) -> None:
    wrong, right = ("Bash", {"command": "echo hi", "folder": "/"}), ("Bash", {"command": "echo hi"})
    model.plays(wrote("native", "", [wrong]), wrote("native", "", [right]), wrote("native", "Done."))
    ran = claude.run("Say hi.")
    succeeded(ran, "Done.")
    assert (ran.calls, ran.results, len(model.asked)) == ([right], ["hi"], 3)


@pytest.mark.parametrize("switch", ["CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS", "CLAUDE_CODE_SIMPLE"])
@ways
def test_it_works_with_fewer_features(claude: ClaudeCode, model: ModelServer, way: str, switch: str) -> None:
    call = ("Bash", {"command": "echo wave-$((6 * 7))"})
    model.plays(wrote(way, "", [call]), wrote(way, "Done."))
    ran = claude.run("Say hi.", model=way, **{switch: "1"})
    succeeded(ran, "Done.")
    assert ran.results == ["wave-42"]


# --- files ---

BEFORE: Final = "<|im_start|>user\nold </tool_call> <|end|>\n<|im_end|>\n\ttab\n"
OLD: Final = "old </tool_call> <|end|>\n<|im_end|>"
NEW: Final = 'new <tool_call> <|start|>assistant<|channel|>final<|message|> </tool_call> ünï 😀 \\n "q"\n<|im_start|>'


def as_it_is(way: str, text: str) -> str:
    """A text as a model writes it that knows it from elsewhere."""
    return text


@pytest.mark.parametrize(
    ("way", "spelled"), [*((way, as_it_is) for way in WAYS), *((way, repeated) for way in (*WAYS, *MORE_WAYS))]
)
def test_a_file_of_control_tokens_is_edited_byte_for_byte(
    claude: ClaudeCode, model: ModelServer, way: str, spelled: Callable[[str, str], str]
) -> None:
    file = claude.work / "chat.txt"
    file.write_bytes(BEFORE.encode())
    edit = {"file_path": str(file), "old_string": OLD, "new_string": NEW}
    written = {**edit, "old_string": spelled(way, OLD), "new_string": spelled(way, NEW)}
    model.plays(
        wrote(way, "", [("Read", {"file_path": str(file)})]), wrote(way, "", [("Edit", written)]), wrote(way, "Done.")
    )
    ran = claude.run("Change it.", model=way)
    succeeded(ran, "Done.")
    assert ran.calls[1][1] == {"replace_all": False, **edit}
    assert file.read_bytes() == BEFORE.replace(OLD, NEW).encode()


# --- what goes wrong ---


@ways
def test_an_answer_that_breaks_off_is_asked_for_again_whole(claude: ClaudeCode, model: ModelServer, way: str) -> None:
    text = "It is all done now."
    model.plays(broken_off(wrote(way, text)), wrote(way, text))
    succeeded(claude.run("Do it.", model=way), text)
    first, again = read(model)
    assert again == first
    if way == "native":
        assert [asked.body.get("stream", False) for asked in model.asked] == [True, False]


@ways
def test_half_a_call_is_not_run(claude: ClaudeCode, model: ModelServer, way: str) -> None:
    call = ("Bash", {"command": "touch cut.txt; echo a long command", "description": "Touch"})
    made = wrote(way, "Let me see.", [call])
    model.plays(broken_off(made, len(made.steps) - 6 if way != "native" else 3), wrote(way, "Done."))
    ran = claude.run("Do it.", model=way)
    succeeded(ran, "Done.")
    assert not list(claude.work.iterdir())


def test_a_server_that_fails_is_named(claude: ClaudeCode, model: ModelServer) -> None:
    model.plays(*[whole({"error": {"message": "the engine is on fire"}}, 500)] * 9)
    ran = claude.run("Say hi.")
    assert ran.exit_code == 1
    assert "the engine is on fire" in ran.result["result"]


def test_a_request_that_the_server_refuses_is_named(claude: ClaudeCode, model: ModelServer) -> None:
    model.plays(*[whole({"error": {"message": "no such engine"}}, 400)] * 9)
    ran = claude.run("Say hi.")
    assert (ran.exit_code, ran.result["api_error_status"]) == (1, 400)
    assert "API Error: 400 no such engine" in ran.result["result"]


def test_a_search_of_the_web_that_nobody_makes_is_answered_in_words(claude: ClaudeCode, model: ModelServer) -> None:
    model.plays(
        wrote("native", "", [("ToolSearch", {"query": "select:WebSearch", "max_results": 5})]),
        wrote("native", "", [("WebSearch", {"query": "tulips"})]),
        wrote("native", "There is no search here."),
        wrote("native", "Nobody searches."),
    )
    ran = claude.run("Search.")
    succeeded(ran, "Nobody searches.")
    assert "There is no search here." in ran.results[-1]
    _, _, searching, last = read(model)
    assert "tulips" in searching
    assert "cannot be searched" in searching
    assert "There is no search here." in last


def test_an_unknown_model_is_named(claude: ClaudeCode) -> None:
    ran = claude.run("Say hi.", model="nobody")
    assert ran.exit_code == 1
    assert "There's an issue with the selected model (nobody)" in ran.result["result"]


# --- tools that are found ---


@ways
def test_a_tool_of_a_server_is_found_and_called(claude: ClaudeCode, model: ModelServer, way: str) -> None:
    model.plays(
        wrote(way, "", [("ToolSearch", {"query": f"select:{WEATHER}", "max_results": 5})]),
        wrote(way, "", [(WEATHER, {"city": "Oslo"})]),
        wrote(way, "It is 18 degrees."),
    )
    ran = claude.run("Weather?", *claude.mcp_config(), model=way)
    succeeded(ran, "It is 18 degrees.")
    assert [name for name, _ in ran.calls] == ["ToolSearch", WEATHER]
    before, found, last = read(model)
    assert "The weather in a city." not in before
    assert "The weather in a city." in found
    assert "18 degrees in Oslo" in last
    kept(model, way)


@ways
def test_a_tool_that_was_found_is_called_behind_a_summary_too(claude: ClaudeCode, model: ModelServer, way: str) -> None:
    model.plays(
        wrote(way, "", [("ToolSearch", {"query": f"select:{WEATHER}", "max_results": 5})]),
        wrote(way, "", [(WEATHER, {"city": "Oslo"})]),
        whole({"error": TOO_LONG}, 400),
        wrote(way, SUMMARY),
        wrote(way, "", [(WEATHER, {"city": "Rome"})]),
        wrote(way, "Done."),
    )
    ran = claude.run("Weather?", *claude.mcp_config(), model=way)
    succeeded(ran, "Done.")
    assert "18 degrees in Rome" in ran.results[-1]
    assert len(model.asked) == 6


# --- others that work for it ---


@ways
def test_a_sub_agent_works_for_another(claude: ClaudeCode, model: ModelServer, way: str) -> None:
    task = {"description": "Count", "prompt": "Count to seventy-seven.", "subagent_type": "general-purpose"}

    def answer(body: Any) -> Answer:
        prompt = shown(body)
        if "Counted to 77." in prompt:
            return wrote(way, "It counted to 77.")
        if "Let somebody count." not in prompt:
            return wrote(way, "Counted to 77.")
        return wrote(way, "Waiting.") if "Count to seventy-seven." in prompt else wrote(way, "", [("Agent", task)])

    model.plays(*[answer] * 6)
    ran = claude.run("Let somebody count.", model=way)
    succeeded(ran, "It counted to 77.")


# --- long conversations ---


@ways
def test_a_conversation_that_is_too_long_is_summed_up(claude: ClaudeCode, model: ModelServer, way: str) -> None:
    model.plays(
        wrote(way, "", [("Bash", {"command": "echo wave-$((6 * 7))", "description": "Print"})]),
        whole({"error": TOO_LONG}, 400),
        wrote(way, SUMMARY),
        wrote(way, "Done."),
    )
    ran = claude.run("Say hi.", model=way)
    succeeded(ran, "Done.")
    *_, summing, last = read(model)
    assert "wave-42" in summing
    assert "SUMMARY-7" in last
    assert "wave-42" not in last
    assert len(model.asked) == 4


def test_so_it_is_where_the_server_says_so_late(claude: ClaudeCode, model: ModelServer) -> None:
    gate = model.gate()
    refused = whole({"error": TOO_LONG}, 400)
    model.plays(
        wrote("native", "", [("Bash", {"command": "echo wave-$((6 * 7))", "description": "Print"})]),
        msgspec.structs.replace(refused, steps=(gate, *refused.steps)),  # to an answer that has begun
        refused,  # to the whole one that it then asks for
        wrote("native", SUMMARY),
        wrote("native", "Done."),
    )
    timer = threading.Timer(1.5, gate.open)  # several heartbeats
    timer.start()
    ran = claude.run("Say hi.")
    timer.join()
    succeeded(ran, "Done.")
    assert len(model.asked) == 5


def counted(answer: Answer, tokens: int) -> Answer:
    """An answer to a prompt of so many tokens."""
    few, many = b'"prompt_tokens": 11', f'"prompt_tokens": {tokens}'.encode()
    steps = tuple(step.replace(few, many) for step in answer.steps if isinstance(step, bytes))
    assert many in b"".join(steps)
    return Answer(steps)


@pytest.mark.parametrize(
    ("options", "tokens"),
    [
        (("--context-window", "8192", "--simple"), 5_120),
        (("--context-window", "16384", "--simple"), 10_240),
        (("--context-window", "32768"), 20_480),
        (("--context-window", "65536"), 40_960),
        (("--context-window", "131072"), 98_072),
    ],
)
def test_it_sums_up_where_its_page_says(
    claude: ClaudeCode, model: ModelServer, options: tuple[str, ...], tokens: int
) -> None:
    told = settings("--url", claude.url, "--model", "native", *options)
    for share, sums in ((0.95, False), (1.05, True)):
        # Behind the first call it is not so careful yet.
        works = counted(wrote("native", "", [("Bash", {"command": "true"})]), round(tokens * share))
        model.plays(works, works, *[wrote("native", SUMMARY)] * 2)
        assert claude.run("Say hi.", **told).exit_code == 0
        assert len(model.asked) == (4 if sums else 3)
        assert ("TEXT ONLY" in read(model)[2]) == sums


@ways
def test_a_conversation_is_summed_up_when_the_window_is_nearly_full(
    claude: ClaudeCode, model: ModelServer, way: str
) -> None:
    call = ("Bash", {"command": "echo wave-$((6 * 7))", "description": "Print"})
    model.plays(counted(wrote(way, "", [call]), 95_000), wrote(way, SUMMARY), wrote(way, "Done."))
    succeeded(claude.run("Say hi.", model=way, CLAUDE_CODE_MAX_CONTEXT_TOKENS="100000"), "Done.")
    _, summing, last = read(model)
    assert "wave-42" in summing
    assert "SUMMARY-7" in last


def test_its_context_is_counted_without_the_model(claude: ClaudeCode, model: ModelServer) -> None:
    ran = claude.run("/context")
    assert ran.exit_code == 0
    assert "System tools" in ran.result["result"]
    assert not model.asked


@ways
def test_a_conversation_is_summed_up_on_demand(claude: ClaudeCode, model: ModelServer, way: str) -> None:
    model.plays(wrote(way, "Hello."), wrote(way, SUMMARY), wrote(way, "Done."))
    succeeded(claude.run("Say hi.", model=way), "Hello.")
    assert claude.run("/compact", "-c", model=way).exit_code == 0
    succeeded(claude.run("Go on.", "-c", model=way), "Done.")
    _, summing, last = read(model)
    assert "Say hi." in summing
    assert "SUMMARY-7" in last


# --- answers in a form ---


@ways
def test_an_answer_has_the_form_that_was_asked_for(claude: ClaudeCode, model: ModelServer, way: str) -> None:
    schema = {"type": "object", "properties": {"height": {"type": "integer"}}, "required": ["height"]}
    model.plays(wrote(way, "", [("StructuredOutput", {"height": 330})]), wrote(way, "Done."))
    ran = claude.run("How high?", "--json-schema", json.dumps(schema), model=way)
    assert ran.exit_code == 0, ran.stderr
    assert ran.result["structured_output"] == {"height": 330}


# --- without a model ---


def test_the_simulated_model_does_for_a_first_try(tmp_path: Path, simulated: str) -> None:
    claude = ClaudeCode(tmp_path, simulated)
    for way in conftest.WAYS:
        ran = claude.run("Use Bash: `echo hello`.", model=way)
        assert ran.results == ["hello"], way
        assert "hello" in ran.result["result"]
        assert ran.exit_code == 0
