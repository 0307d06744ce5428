"""The real Codex CLI against a started gateway, as `callwright launch codex` configures it; scripted models answer.

`scripts/test` installs Codex with CALLWRIGHT_CLIENTS=1. What Codex sends and what it makes of answers was observed
with 0.171.0.
"""

import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

import callwright
from callwright.gateway.config.config import ModelConfig
from tests import conftest
from tests.clients.codex import HTTP, WEBSOCKET, Codex, Ran
from tests.conftest import Served
from tests.support.outputs import spoken
from tests.support.servers import Answer, Asked, ModelServer, call_deltas, calling, chat, chunk, said, sse, whole

pytestmark = pytest.mark.clients

RETRIES = 2
transports = pytest.mark.parametrize("transport", [HTTP, WEBSOCKET], ids=["http", "websocket"])
ways = pytest.mark.parametrize(
    "way", ["native", "prompt-json", "raw-hermes-vllm", "raw-harmony-vllm", "raw-harmony-llamacpp"]
)


@pytest.fixture
def url(serve: Served, model: ModelServer) -> str:
    """A gateway before the scripted model server, which it asks in every way, and natively under any other name."""
    models = conftest.scripted_models(model.url, RETRIES)
    return serve(*models, ModelConfig(name="*", upstream=model.url), heartbeat_s=0.1) + "/v1"


@pytest.fixture
def codex(tmp_path: Path, url: str) -> Codex:
    """Codex on the model `native` of the gateway."""
    codex = Codex(tmp_path)
    codex.configure("--url", url, "--model", "native")
    return codex


def on(codex: Codex, url: str, name: str) -> Codex:
    """Codex on another model."""
    codex.configure("--url", url, "--model", name)
    return codex


# --- what models say, and what they are asked ---


def makes(way: str, name: str, arguments: Mapping[str, Any]) -> Answer:
    """A call of a model that is asked in this way."""
    text = json.dumps(arguments, ensure_ascii=False)
    if way == "native":
        return calling(name, text)
    tools = [{"type": "function", "function": {"name": name}}]
    call = {"name": name, "arguments": text}
    return spoken(way, callwright.write([call], tools=tools, dialect=way.split("-")[1]))


def says(way: str, text: str) -> Answer:
    """A text of a model that is asked in this way."""
    if way == "native":
        return said(text)
    harmony = f"<|channel|>final<|message|>{text}<|return|>"
    return spoken(way, harmony if "harmony" in way else text)


def shown(asked: Asked) -> str:
    """All that the model was shown."""
    return str(asked.body.get("prompt") or json.dumps(asked.body["messages"], ensure_ascii=False))


def names(asked: Asked) -> list[str]:
    """The tools that the model was shown."""
    return [tool["function"]["name"] for tool in asked.body.get("tools", ())]


def turns(asked: Asked) -> Iterator[tuple[str, list[str]]]:
    """The messages behind the question: their roles, and the tools that they call."""
    messages = asked.body["messages"]
    question = max(number for number, message in enumerate(messages) if message["role"] == "user")
    for message in messages[question + 1 :]:
        yield message["role"], [call["function"]["name"] for call in message.get("tool_calls") or ()]


def succeeded(ran: Ran, *texts: str) -> None:
    """The turn came to its end with these messages, and without a word of warning."""
    assert (ran.exit_code, ran.failure, ran.said, ran.warnings) == (0, None, list(texts), []), ran.stderr


# --- commands ---


@transports
@ways
def test_a_command_is_run_and_its_output_answered(
    codex: Codex, url: str, model: ModelServer, way: str, transport: str
) -> None:
    model.plays(makes(way, "exec_command", {"cmd": "echo wave-$((6 * 7))"}), says(way, "It printed wave-42."))
    ran = on(codex, url, way).run("Say hi.", transport)
    succeeded(ran, "It printed wave-42.")
    (command,) = ran.items("command_execution")
    assert (command["aggregated_output"], command["exit_code"]) == ("wave-42\n", 0)
    first, second = map(shown, model.asked)
    assert "wave-42" not in first
    assert "wave-42" in second


@transports
def test_two_commands_of_one_answer_are_both_run(codex: Codex, model: ModelServer, transport: str) -> None:
    both = [
        *call_deltas("exec_command", '{"cmd": "echo one"}'),
        *call_deltas("exec_command", '{"cmd": "echo two"}', index=1, id_="call_up_1"),
    ]
    model.plays(chat(*both, finish="tool_calls"), said("Done."))
    ran = codex.run("Do both.", transport)
    succeeded(ran, "Done.")
    assert {item["aggregated_output"] for item in ran.items("command_execution")} == {"one\n", "two\n"}
    assert list(turns(model.asked[1])) == [("assistant", ["exec_command"] * 2), ("tool", []), ("tool", [])]
    assert [message["tool_call_id"] for message in model.asked[1].body["messages"][-2:]] == ["call_up_0", "call_up_1"]


@transports
def test_commands_of_one_answer_after_the_other_stay_apart(codex: Codex, model: ModelServer, transport: str) -> None:
    answers = [chat(*call_deltas("exec_command", f'{{"cmd": "echo {n}"}}', id_=f"call_{n}")) for n in "ab"]
    model.plays(*answers, said("Done."))
    succeeded(codex.run("Do one, then the other.", transport), "Done.")
    assert list(turns(model.asked[2])) == [("assistant", ["exec_command"]), ("tool", [])] * 2
    before, after = (asked.body["messages"] for asked in model.asked[1:])
    assert after[: len(before)] == before, "the server's prompt cache is kept"


@pytest.mark.parametrize(
    "arguments",
    [
        '{"cmd": "echo hi", "yield_time_ms": "500"}',
        '{"cmd": "echo hi", "yield_time_ms": 500,}',
        '{"command": "echo hi"}',
        '{"arguments": {"cmd": "echo hi"}}',
    ],
    ids=["number as text", "trailing comma", "another name", "wrapped"],
)
def test_arguments_that_codex_would_refuse_are_mended(codex: Codex, model: ModelServer, arguments: str) -> None:
    model.plays(calling("exec_command", arguments), said("Done."))
    ran = codex.run("Say hi.")
    succeeded(ran, "Done.")
    assert [item["aggregated_output"] for item in ran.items("command_execution")] == ["hi\n"]
    assert len(model.asked) == 2


@transports
def test_reasoning_is_shown_and_comes_back(codex: Codex, model: ModelServer, transport: str) -> None:
    call = call_deltas("exec_command", '{"cmd": "true"}')
    model.plays(chat({"reasoning_content": "I should look."}, *call, finish="tool_calls"), said("Done."))
    ran = codex.run("Look.", transport)
    succeeded(ran, "Done.")
    assert [item["text"] for item in ran.items("reasoning")] == ["I should look."]
    assert model.asked[1].body["messages"][-2]["reasoning_content"] == "I should look."


# --- patches ---

BEFORE: Final = {"old.py": b"# keep\ndef f():\n    return 1\n", "gone.txt": b"x\n"}
PATCH: Final = """\
*** Begin Patch
*** Add File: notes/a.txt
+Hello, "world" \\n ünï 😀 \\
+
+\ttab and blanks  \x20
+{"input": "x"}
+```
*** Update File: old.py
@@ def f():
-    return 1
+    return {"a": [1, 2]}
*** Delete File: gone.txt
*** End Patch
"""
AFTER: Final = {
    "notes/a.txt": 'Hello, "world" \\n ünï 😀 \\\n\n\ttab and blanks   \n{"input": "x"}\n```\n'.encode(),
    "old.py": b'# keep\ndef f():\n    return {"a": [1, 2]}\n',
}


def json_of(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


# The arguments as a server hands them on.
WRITTEN: Final[Mapping[str, str]] = {
    "right": json_of({"input": PATCH}),
    "escaped": json.dumps({"input": PATCH}),
    "without a line feed at its end": json_of({"input": PATCH.rstrip()}),
    "blank lines around": json_of({"input": f"\n\n{PATCH}\n"}),
    "under another name": json_of({"patch": PATCH}),
    "JSON in JSON": json_of({"input": json_of({"input": PATCH})}),
    "JSON of another name in JSON": json_of({"input": json_of({"patch": PATCH})}),
    "object in JSON": json_of({"input": {"patch": PATCH}}),
    "fence": json_of({"input": f"```\n{PATCH}```"}),
    "fence with a word": json_of({"input": f"```diff\n{PATCH}```\n"}),
    "JSON in a fence": json_of({"input": f"```json\n{json_of({'input': PATCH})}\n```"}),
    "shell command": json_of({"input": f"apply_patch <<'EOF'\n{PATCH}EOF\n"}),
    "lines of Windows": json_of({"input": PATCH.replace("\n", "\r\n")}),
    "bare": PATCH,
    "bare JSON string": json_of(PATCH),
}


def patched(codex: Codex, *settings: str) -> Ran:
    """Let Codex work in a folder with the files that the patch is for."""
    for name, content in BEFORE.items():
        (codex.work / name).write_bytes(content)
    return codex.run("Patch it.", *settings)


@pytest.mark.parametrize("arguments", WRITTEN.values(), ids=WRITTEN)
def test_a_patch_is_applied_however_it_is_wrapped(codex: Codex, model: ModelServer, arguments: str) -> None:
    model.plays(calling("apply_patch", arguments), said("Done."))
    ran = patched(codex)
    succeeded(ran, "Done.")
    assert ran.files == AFTER
    assert len(model.asked) == 2


@transports
@ways
def test_a_patch_is_applied_in_every_dialect(
    codex: Codex, url: str, model: ModelServer, way: str, transport: str
) -> None:
    model.plays(makes(way, "apply_patch", {"input": PATCH}), says(way, "Done."))
    ran = patched(on(codex, url, way), transport)
    succeeded(ran, "Done.")
    assert ran.files == AFTER
    assert "Success. Updated the following files" in shown(model.asked[1])


@pytest.mark.parametrize(
    ("way", "text"),
    [
        ("raw-harmony-vllm", f"<|channel|>commentary to=functions.apply_patch<|message|>{PATCH}<|call|>"),
        (
            "raw-harmony-vllm",
            f"<|channel|>commentary to=functions.apply_patch <|constrain|>json<|message|>{PATCH}<|call|>",
        ),
        ("raw-hermes-vllm", f'<tool_call>\n{{"name": "apply_patch", "arguments": {json_of(PATCH)}}}\n</tool_call>'),
        ("raw-hermes-vllm", f'<tool_call>\n{{"name": "apply_patch", "input": {json_of(PATCH)}}}\n</tool_call>'),
    ],
    ids=["harmony, bare", "harmony, bare though marked JSON", "hermes, text for arguments", "hermes, other key"],
)
def test_a_patch_is_applied_as_models_really_write_it(
    codex: Codex, url: str, model: ModelServer, way: str, text: str
) -> None:
    model.plays(spoken(way, text), says(way, "Done."))
    ran = patched(on(codex, url, way))
    succeeded(ran, "Done.")
    assert ran.files == AFTER


WRONG: Final = PATCH.replace("*** End Patch\n", "")


@transports
def test_a_wrong_patch_is_asked_for_again_before_codex_sees_it(
    codex: Codex, model: ModelServer, transport: str
) -> None:
    answers = [calling("apply_patch", json_of({"input": text})) for text in (WRONG, PATCH)]
    model.plays(*answers, said("Done."))
    ran = patched(codex, transport)
    succeeded(ran, "Done.")
    assert ran.files == AFTER
    assert len(ran.items("file_change")) == 1
    _, again, last = model.asked
    assert "does not fit its grammar: line 13, column 1" in again.body["messages"][-1]["content"]
    assert list(turns(last)) == [("assistant", ["apply_patch"]), ("tool", [])]
    call = last.body["messages"][-2]["tool_calls"][0]
    assert json.loads(call["function"]["arguments"]) == {"input": PATCH}


def test_a_patch_that_is_never_right_is_not_applied(codex: Codex, model: ModelServer) -> None:
    wrong = [calling("apply_patch", json_of({"input": WRONG + "x" * number})) for number in range(RETRIES + 1)]
    model.plays(*wrong)
    ran = patched(codex, HTTP, "model_providers.callwright.stream_max_retries=0")
    assert ran.exit_code == 1
    assert "the input of 'apply_patch' does not fit its grammar" in (ran.failure or "")
    assert ran.files == BEFORE
    assert len(model.asked) == RETRIES + 1


# --- tools of MCP servers ---

WEATHER: Final = "mcp__demo__get_weather"


@transports
def test_a_tool_of_a_namespace_is_called(codex: Codex, model: ModelServer, transport: str) -> None:
    codex.add_mcp_server()
    model.plays(calling(WEATHER, '{"city": "Oslo"}'), said("It is 18 degrees."))
    ran = codex.run("Weather?", transport, options=("-m", "not-in-the-catalogue"))
    assert (ran.exit_code, ran.said) == (0, ["It is 18 degrees."])
    (call,) = ran.items("mcp_tool_call")
    assert (call["server"], call["tool"], call["arguments"]) == ("demo", "get_weather", {"city": "Oslo"})
    assert WEATHER in names(model.asked[0])
    assert "18 degrees in Oslo" in shown(model.asked[1])


def test_a_namespace_may_hold_any_number_of_tools(codex: Codex, model: ModelServer) -> None:
    codex.add_mcp_server(others=150)
    model.plays(calling(WEATHER, '{"city": "Oslo"}'), said("It is 18 degrees."))
    ran = codex.run("Weather?", options=("-m", "not-in-the-catalogue"))
    assert (ran.exit_code, ran.said) == (0, ["It is 18 degrees."])
    assert {WEATHER, "mcp__demo__twin_149"} <= set(names(model.asked[0]))


@transports
@pytest.mark.parametrize("way", ["native", "raw-hermes-vllm", "raw-harmony-vllm"])
def test_a_tool_that_a_search_found_is_called(
    codex: Codex, url: str, model: ModelServer, way: str, transport: str
) -> None:
    on(codex, url, way).add_mcp_server()
    model.plays(
        makes(way, "tool_search", {"query": "weather"}),
        makes(way, WEATHER, {"city": "Oslo"}),
        says(way, "It is 18 degrees."),
    )
    ran = codex.run("Weather?", transport)
    succeeded(ran, "It is 18 degrees.")
    (call,) = ran.items("mcp_tool_call")
    assert (call["server"], call["tool"], call["status"]) == ("demo", "get_weather", "completed")
    before, found, last = model.asked
    if way == "native":
        assert WEATHER not in names(before)
        assert WEATHER in names(found)
    assert WEATHER not in shown(before)
    assert WEATHER in shown(found)
    assert "18 degrees in Oslo" in shown(last)


@transports
def test_a_sub_agent_works_for_another(codex: Codex, model: ModelServer, transport: str) -> None:
    def answer(body: Any) -> Answer:
        messages = body["messages"]
        steps = [message for message in messages if message["role"] == "tool"]
        if "Count." in messages[-1]["content"]:
            return said("Counted to 77.")
        if not steps:
            return calling("tool_search", '{"query": "spawn agent"}')
        if len(steps) == 1:
            return chat(*call_deltas("multi_agent_v1__spawn_agent", '{"message": "Count."}', id_="call_spawn"))
        if len(steps) == 2:
            agent = json.loads(steps[-1]["content"])["agent_id"]
            waits = {"targets": [agent], "timeout_ms": 30_000}
            return chat(*call_deltas("multi_agent_v1__wait_agent", json_of(waits), id_="call_wait"))
        return said("It counted to 77." if "Counted to 77." in str(messages) else "It did not count.")

    model.plays(*[answer] * 8)
    succeeded(codex.run("Let somebody count.", transport), "It counted to 77.")


# --- models that Codex knows by name ---


@transports
@pytest.mark.parametrize("name", ["exec", "functions.exec"])
def test_a_model_with_all_its_tools_in_the_input_runs_scripts(
    codex: Codex, model: ModelServer, name: str, transport: str
) -> None:
    config = codex.home / "config.toml"
    lines = config.read_text().splitlines(keepends=True)
    config.write_text("".join(line for line in lines if not line.startswith("model_catalog_json")))
    script = 'const ran = await tools.exec_command({cmd: "echo six > six.txt; cat six.txt"});\ntext(ran.output);\n'
    model.plays(calling(name, json_of({"input": script})), said("Done."))
    ran = codex.run("Run it.", transport, options=("-m", "gpt-6-sol"))
    succeeded(ran, "Done.")
    assert ran.files == {"six.txt": b"six\n"}
    assert "six" in model.asked[1].body["messages"][-1]["content"]
    assert model.asked[0].body["parallel_tool_calls"] is False
    assert {"clock__sleep", "collaboration__spawn_agent"} <= set(names(model.asked[0]))


# --- what goes wrong ---


def test_a_server_that_fails_is_named(codex: Codex, model: ModelServer) -> None:
    model.plays(*[whole({"error": {"message": "the engine is on fire"}}, 500)] * 3)
    ran = codex.run("Say hi.", HTTP)
    assert ran.exit_code == 1
    assert "502 Bad Gateway" in (ran.failure or "")
    assert "answered 500: the engine is on fire" in (ran.failure or "")
    assert len(model.asked) == 3  # as `callwright launch codex` configures it; without it Codex makes 30 requests


def test_a_server_that_fails_is_named_over_websocket_too(codex: Codex, model: ModelServer) -> None:
    model.plays(*[whole({"error": {"message": "the engine is on fire"}}, 500)] * 6)
    ran = codex.run("Say hi.", WEBSOCKET)
    assert ran.exit_code == 1
    assert "answered 500: the engine is on fire" in (ran.failure or "")
    (warning,) = ran.warnings
    assert "Falling back from WebSockets" in warning
    assert "the engine is on fire" in warning


BROKEN: Final = Answer((*sse(chunk({"role": "assistant", "content": "It "}), chunk({"content": "is"})), "cut"))


@transports
def test_a_server_that_breaks_off_is_asked_again(codex: Codex, model: ModelServer, transport: str) -> None:
    model.plays(BROKEN, said("It is done."))
    ran = codex.run("Do it.", transport)
    assert (ran.exit_code, ran.failure) == (0, None)
    assert ran.said[-1] == "It is done."
    assert len(model.asked) == 2


def test_a_server_that_breaks_off_again_and_again_is_named(codex: Codex, model: ModelServer) -> None:
    model.plays(*[BROKEN] * 3)
    ran = codex.run("Do it.", HTTP)
    assert ran.exit_code == 1
    assert (ran.failure or "").startswith("stream disconnected before completion: The upstream at")
    assert "closed the connection in the middle" in (ran.failure or "")


@transports
def test_a_call_that_is_cut_is_not_run(codex: Codex, model: ModelServer, transport: str) -> None:
    cut = Answer((*sse(*map(chunk, call_deltas("exec_command", '{"cmd": "touch cut.txt; echo', " a"))), "cut"))
    model.plays(cut, said("Done."))
    ran = codex.run("Do it.", transport)
    succeeded(ran, "Done.")
    assert not ran.items("command_execution")
    assert not ran.files


TOO_LONG: Final = {
    "message": "This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens.",
    "type": "invalid_request_error",
    "param": "messages",
    "code": "context_length_exceeded",
}


@transports
def test_a_conversation_that_is_too_long_is_told_as_such(codex: Codex, model: ModelServer, transport: str) -> None:
    model.plays(*[whole({"error": TOO_LONG}, 400)] * 2)
    ran = codex.run("Go on.", transport)
    assert ran.exit_code == 1
    assert (ran.failure or "").startswith("Codex ran out of room in the model's context window.")
    assert len(model.asked) == 1


@transports
def test_a_model_that_thinks_for_long_is_waited_for(codex: Codex, model: ModelServer, transport: str) -> None:
    gate = model.gate()
    answer = said("Done.")
    model.plays(Answer((gate, *answer.steps)))
    timer = threading.Timer(2.0, gate.open)  # twice as long as Codex bears silence
    timer.start()
    ran = codex.run("Think.", transport, "model_providers.callwright.stream_idle_timeout_ms=1000")
    timer.join()
    succeeded(ran, "Done.")
    assert len(model.asked) == 1


# --- long conversations ---


@transports
def test_codex_sums_up_when_the_window_is_full(codex: Codex, model: ModelServer, transport: str) -> None:
    model.plays(calling("exec_command", '{"cmd": "echo hi"}'), said("SUMMARY-7"), said("Done."))
    ran = codex.run("Say hi.", transport, "model_auto_compact_token_limit=10")
    succeeded(ran, "Done.")
    _, summing, last = model.asked
    assert not names(summing)
    assert list(turns(summing)) == []
    assert "exec_command" in shown(summing)
    assert "SUMMARY-7" in last.body["messages"][-1]["content"]
    assert "apply_patch" in names(last)


# --- the command ---


def test_codex_takes_every_field_that_the_command_writes(codex: Codex, url: str) -> None:
    codex.configure("--url", url, "--model", "native", "--context-window", "65536", "--images")
    written = json.loads((codex.home / "callwright-models.json").read_text())
    done = codex.call("debug", "models")
    assert done.returncode == 0, done.stderr
    theirs = {model["slug"]: model for model in json.loads(done.stdout)["models"]}
    assert written["models"]
    for ours in written["models"]:
        assert {key: theirs[ours["slug"]][key] for key in ours} == ours


def test_codex_offers_what_the_catalogue_promises(codex: Codex, model: ModelServer) -> None:
    model.plays(said("Done."))
    succeeded(codex.run("Say hi."), "Done.")
    assert {"exec_command", "apply_patch", "tool_search"} <= set(names(model.asked[0]))
    tool = next(tool for tool in model.body["tools"] if tool["function"]["name"] == "apply_patch")
    assert 'begin_patch: "*** Begin Patch" LF' in tool["function"]["parameters"]["properties"]["input"]["description"]
    assert "You are a coding agent." in shown(model.asked[0])


def test_the_simulated_model_does_for_a_first_try(tmp_path: Path, simulated: str) -> None:
    codex = Codex(tmp_path)
    for way in conftest.WAYS:
        codex.configure("--url", f"{simulated}/v1", "--model", way)
        ran = codex.run("Run the command `echo hello`.")
        assert [item["aggregated_output"] for item in ran.items("command_execution")] == ["hello\n"], way
        assert "hello" in ran.said[-1]
        assert ran.exit_code == 0


# --- what a server and Codex make of it ---


def test_what_instructs_is_one_system_message(codex: Codex, model: ModelServer) -> None:
    model.plays(said("One."), said("Two."))
    succeeded(codex.run("First."), "One.")
    done = codex.call("exec", "resume", "--last", "--json", "--skip-git-repo-check", "Second.")
    assert done.returncode == 0, done.stderr
    for asked in model.asked:
        roles = [message["role"] for message in asked.body["messages"]]
        assert roles[0] == "system"
        assert set(roles[1:]) <= {"user", "assistant"}


@transports
def test_half_a_message_does_not_come_back(codex: Codex, model: ModelServer, transport: str) -> None:
    model.plays(BROKEN, said("It is done."))
    succeeded(codex.run("Do it.", transport), "It is done.")
    first, again = model.asked
    assert again.body["messages"] == first.body["messages"]


HALF: Final = call_deltas("exec_command", '{"cmd": "touch cut.txt; echo', " a")


@transports
@pytest.mark.parametrize(
    "half",
    [Answer((*sse(*map(chunk, HALF)), "cut")), chat(*HALF, finish="length")],
    ids=["the server breaks off", "the limit is reached"],
)
def test_half_a_call_is_not_run(codex: Codex, model: ModelServer, half: Answer, transport: str) -> None:
    model.plays(half, said("Done."))
    # Without apply_patch nothing is held back: the arguments flow.
    ran = codex.run("Do it.", transport, options=("-m", "not-in-the-catalogue"))
    assert "failed to parse function arguments" not in ran.stderr
    assert all(asked.body["messages"] == model.asked[0].body["messages"] for asked in model.asked)


@transports
def test_a_patch_that_is_never_right_is_not_asked_for_again_and_again(
    codex: Codex, model: ModelServer, transport: str
) -> None:
    model.plays(*[calling("apply_patch", json_of({"input": WRONG + "x" * number})) for number in range(20)])
    ran = patched(codex, transport)
    assert "the input of 'apply_patch' does not fit its grammar" in (ran.failure or "")
    assert len(model.asked) == RETRIES + 1
