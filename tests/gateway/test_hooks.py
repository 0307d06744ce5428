"""Hooks at each place, with each verdict, over each wire, whole and streamed, in modes native and raw."""

import asyncio
import json
import time
from contextlib import suppress
from typing import Any, Final

import msgspec
import pytest

from callwright.conversation import Conversation
from callwright.errors import ConfigError
from callwright.gateway.app import create_app
from callwright.gateway.config.config import Config, ModelConfig, ServerConfig
from callwright.gateway.config.hooks import HookConfig, PolicyConfig
from callwright.gateway.hooks.judge import HookFailed, JudgingHook
from callwright.gateway.hooks.ways import OwnHook
from callwright.hooks import HookInput, Place, RequestInput
from tests.conftest import Hooked
from tests.gateway.test_fallback import WIRES
from tests.support import hook_functions
from tests.support.http_client import request
from tests.support.outputs import ARGUMENTS, TOOLS
from tests.support.servers import Answer, Gateway, ModelServer, call_deltas, calling, chat, completion, said, whole

RAW: Final = "raw-hermes-vllm"
MODES: Final = ("native", RAW)
RAW_CALL: Final = f'<tool_call>\n{{"name": "get_weather", "arguments": {ARGUMENTS}}}\n</tool_call>'
CALLS: Final[dict[str, Answer]] = {"native": calling("get_weather", ARGUMENTS), RAW: completion(RAW_CALL)}
ALL: Final[tuple[Place, ...]] = ("request", "prompt", "call", "result")


def hook(name: str, *places: Any, **more: Any) -> HookConfig:
    return HookConfig(name=name, function=f"tests.support.hook_functions:{name}", places=places or ALL, **more)


def asked(gateway: Gateway, wire: str, model: str, *, stream: bool = False, **more: Any) -> Any:
    path, body = WIRES[wire]
    free = {"type": "auto"} if wire == "messages" else "auto"
    return request(gateway.url + path, {"model": model, "stream": stream, **body, "tool_choice": free, **more})


def values(reply: Any) -> list[Any]:
    """The objects of an answer, streamed or whole."""
    if not reply.headers["content-type"].startswith("text/event-stream"):
        return [reply.json]
    lines = [line.removeprefix("data: ") for line in reply.text.splitlines() if line.startswith("data: {")]
    return [json.loads(line) for line in lines]


def called(reply: Any) -> list[str]:
    """The arguments of the calls of an answer, streamed or whole."""
    found: dict[Any, str] = {}
    for one in values(reply):
        match one:
            case {"choices": [{"delta": {"tool_calls": calls}}]} | {"choices": [{"message": {"tool_calls": calls}}]}:
                for number, call in enumerate(calls or ()):
                    index = call.get("index", number)
                    found[index] = found.get(index, "") + call["function"].get("arguments", "")
            case {"type": "response.completed", "response": {"output": output}} | {"output": output}:
                found |= {n: item["arguments"] for n, item in enumerate(output) if item["type"] == "function_call"}
            case {"type": "content_block_delta", "index": index, "delta": {"partial_json": text}}:
                found[index] = found.get(index, "") + text
            case {"type": "message", "content": content}:
                found |= {n: json.dumps(one["input"]) for n, one in enumerate(content) if one["type"] == "tool_use"}
    return list(found.values())


def finish_of(reply: Any) -> list[str]:
    """The reasons why an answer ended, streamed or whole."""
    found = []
    for one in values(reply):
        for choice in one.get("choices", ()):
            found.append(choice["finish_reason"])
        delta = one.get("delta")
        found.append(delta.get("stop_reason") if isinstance(delta, dict) else one.get("stop_reason"))
    return [reason for reason in found if reason]


# --- places and verdicts ---


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("place", ["request", "prompt"])
def test_a_denied_request_is_an_error_with_the_hooks_words(
    hooked: Hooked, model: ModelServer, place: str, mode: str, wire: str, stream: bool
) -> None:
    model.plays(CALLS[mode])
    gateway = hooked(hook("deny", place))
    reply = asked(gateway, wire, mode, stream=stream)
    assert reply.status == 403
    assert "Not here." in reply.text
    assert model.asked == []


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("mode", MODES)
def test_a_denied_call_is_left_out_and_the_answer_says_why(
    hooked: Hooked, model: ModelServer, mode: str, wire: str, stream: bool
) -> None:
    model.plays(CALLS[mode])
    gateway = hooked(hook("deny", "call"))
    reply = asked(gateway, wire, mode, stream=stream)
    assert reply.status == 200, reply.text
    assert called(reply) == []
    assert "The call of 'get_weather' was not made: Not here." in reply.text
    assert "tool_calls" not in finish_of(reply)
    assert stream or wire == "responses" or reply.headers["x-callwright-problems"] == "call_denied=1"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", WIRES)
def test_a_required_call_that_is_denied_is_an_error(
    hooked: Hooked, model: ModelServer, wire: str, stream: bool
) -> None:
    model.plays(CALLS["native"])
    gateway = hooked(hook("deny", "call"))
    must = {"type": "any"} if wire == "messages" else "required"
    reply = asked(gateway, wire, "native", stream=stream, tool_choice=must)
    assert called(reply) == [] if reply.status == 200 else reply.status == 403
    assert "Not here." in reply.text
    assert "error" in reply.text


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("mode", MODES)
def test_a_changed_call_has_the_new_arguments(
    hooked: Hooked, model: ModelServer, mode: str, wire: str, stream: bool
) -> None:
    model.plays(CALLS[mode])
    gateway = hooked(hook("change", "call"))
    (arguments,) = called(asked(gateway, wire, mode, stream=stream))
    assert json.loads(arguments) == {"city": "Oslo"}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("mode", MODES)
def test_with_a_hook_that_allows_all_the_answer_is_that_without_hooks(
    hooked: Hooked, model: ModelServer, mode: str, wire: str, stream: bool
) -> None:
    for answer in (CALLS[mode], said("Fine.") if mode == "native" else completion("Fine.")):
        replies = []
        for hooks in ([], [hook("allow"), hook("allow_async")]):
            model.plays(answer)
            replies.append(asked(hooked(*hooks), wire, mode, stream=stream))
        assert called(replies[0]) == called(replies[1])
        assert replies[0].status == replies[1].status == 200
        assert ("Fine." in replies[0].text) == ("Fine." in replies[1].text)
        assert finish_of(replies[0]) == finish_of(replies[1])


def test_of_parallel_calls_only_the_denied_one_is_left_out(hooked: Hooked, model: ModelServer) -> None:
    two = [*call_deltas("get_weather", '{"city": "Rome"}'), *call_deltas("get_weather", ARGUMENTS, index=1, id_="b")]
    model.plays(chat({"content": "Two. "}, *two, finish="tool_calls"))
    arguments = {"properties": {"city": {"const": "Rome"}}, "required": ["city"]}
    gateway = hooked(policies=(PolicyConfig(action="deny", arguments=arguments),))
    reply = asked(gateway, "chat", "native", stream=True)
    assert called(reply) == [ARGUMENTS]
    indices = {
        call["index"]
        for event in reply.events
        for choice in event.get("choices", ())
        for call in choice["delta"].get("tool_calls") or ()
    }
    assert indices == {0}
    assert finish_of(reply) == ["tool_calls"]


# --- results ---


def test_a_result_is_changed_for_the_model_each_time_and_judged_once(hooked: Hooked, model: ModelServer) -> None:
    history = [
        {"role": "user", "content": "Weather?"},
        {
            "role": "assistant",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": ARGUMENTS}}
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "rain"},
    ]
    gateway = hooked(hook("allow", "result"), hook("change", "result"))
    for _ in range(2):
        model.plays(said("It rains."))
        assert asked(gateway, "chat", "native", messages=history).status == 200
        assert model.body["messages"][-1]["content"] == "checked: rain"
    (seen,) = hook_functions.ASKED
    assert (seen.name, seen.text, seen.call.arguments) == ("get_weather", "rain", ARGUMENTS)  # type: ignore[union-attr]


# --- bad hooks ---


@pytest.mark.parametrize("bad", ["crash", "end", "nonsense", "wait", "forge"])
@pytest.mark.parametrize("on_failure", ["closed", "open"])
def test_a_hook_that_fails_denies_or_allows_as_it_is_set_and_the_log_has_no_content(
    hooked: Hooked, model: ModelServer, caplog: pytest.LogCaptureFixture, bad: str, on_failure: Any
) -> None:
    model.plays(CALLS["native"])
    gateway = hooked(hook(bad, "call", on_failure=on_failure, deadline_s=0.2))
    reply = asked(gateway, "chat", "native")
    assert reply.status == 200
    assert called(reply) == ([ARGUMENTS] if on_failure == "open" else [])
    (told,) = [text for text in caplog.messages if text.startswith(f"hook {bad} failed at the place call: ")]
    assert json.loads(ARGUMENTS)["city"] not in told


def test_a_hook_that_never_returns_holds_no_other_model_and_is_then_not_asked(
    hooked: Hooked, model: ModelServer
) -> None:
    gateway = hooked(hook("wait", "request", models=(RAW,), deadline_s=0.1, max_parallel=2))
    codes = [asked(gateway, "chat", RAW).json["error"]["code"] for _ in range(6)]
    assert codes == ["hook_failed"] * 6
    began = time.monotonic()
    assert asked(gateway, "chat", RAW).status == 503
    assert time.monotonic() - began < 0.1  # it rests, and no deadline is waited for
    model.plays(CALLS["native"])
    assert called(asked(gateway, "chat", "native")) == [ARGUMENTS]


def test_failures_of_one_key_do_not_pause_a_hook_for_others() -> None:
    asked_for: list[str] = []

    def fails(given: HookInput) -> None:
        asked_for.append(given.key)
        if given.key == "anna":
            raise ValueError

    async def judged() -> None:
        judge = JudgingHook("own", OwnHook(fails), places=ALL, judged=lambda *_: None)
        for key in ["anna"] * 7 + ["ben"]:
            given = RequestInput(conversation=Conversation(()), key=key, model="native", request_id="1")
            with suppress(HookFailed):
                await judge.judge(given)

    asyncio.run(judged())
    assert asked_for == ["anna"] * 5 + ["ben"]


# --- over HTTP ---


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (whole({"action": "allow"}), "allowed"),
        (whole("", 204), "allowed"),
        (whole({"action": "deny", "message": "No."}), "denied"),
        (whole({"action": "replace", "arguments": {"city": "Oslo"}}), "changed"),
        (whole({"action": "replace", "arguments": [1]}), "denied"),
        (whole({"action": "perhaps"}), "denied"),
        (whole({"allow": True}), "denied"),
        (whole("x" * 5_000_000), "denied"),
        (whole({}, 500), "denied"),
        (Answer(("reset",)), "denied"),
        (Answer(("silence",)), "denied"),
    ],
    ids=["allow", "empty", "deny", "replace", "forged", "unknown", "other", "huge", "status", "reset", "silent"],
)
def test_a_hook_over_http(hooked: Hooked, model: ModelServer, answer: Answer, outcome: str) -> None:
    judge = ModelServer()
    judge.plays(answer)
    model.plays(CALLS["native"])
    gateway = hooked(HookConfig(name="far", url=f"{judge.url}/chat/completions", places=("call",), deadline_s=1))
    reply = asked(gateway, "chat", "native")
    expected = {"allowed": [{"city": "Paris"}], "changed": [{"city": "Oslo"}], "denied": []}[outcome]
    assert [json.loads(arguments) for arguments in called(reply)] == expected
    assert judge.body["call"]["arguments"] == {"city": "Paris"}
    assert judge.body["place"] == "call"
    judge.stop()


@pytest.mark.parametrize(
    ("answer", "got"),
    [
        (whole({"action": "Paris"}), "got 'action' (str)"),
        (whole({"action": "deny", "message": ["Paris"]}), "got 'action' (str), 'message' (list)"),
        (whole({"allow": "Paris"}), "got 'allow' (str)"),
        (whole(["Paris"]), "got list"),
        (whole("Paris"), "got no JSON"),
    ],
    ids=["action", "message", "field", "list", "text"],
)
def test_the_log_has_no_content_of_an_invalid_answer(
    hooked: Hooked, model: ModelServer, caplog: pytest.LogCaptureFixture, answer: Answer, got: str
) -> None:
    judge = ModelServer()
    judge.plays(answer)
    model.plays(CALLS["native"])
    gateway = hooked(HookConfig(name="far", url=f"{judge.url}/chat/completions", places=("call",)))
    assert called(asked(gateway, "chat", "native")) == []
    judge.stop()
    (told,) = [text for text in caplog.messages if text.startswith("hook far failed at the place call: expected an ")]
    assert told.endswith(got)
    assert "Paris" not in told


# --- policies ---


@pytest.mark.parametrize(
    ("rules", "allowed"),
    [
        ([PolicyConfig(tools=("get_*",)), PolicyConfig(action="deny")], True),
        ([PolicyConfig(tools=("put_*",)), PolicyConfig(action="deny")], False),
        ([PolicyConfig(action="deny", keys=("other",))], True),
        ([PolicyConfig(action="ask", models=("nat*",))], False),
        ([PolicyConfig(action="deny", arguments={"properties": {"city": {"pattern": "^Par"}}})], False),
        ([PolicyConfig(action="deny", arguments={"properties": {"city": {"pattern": "^Ber"}}})], True),
    ],
)
def test_the_first_rule_that_matches_decides(
    hooked: Hooked, model: ModelServer, rules: list[PolicyConfig], allowed: bool
) -> None:
    model.plays(CALLS["native"])
    reply = asked(hooked(policies=tuple(rules)), "chat", "native")
    assert called(reply) == ([ARGUMENTS] if allowed else [])


# --- configuration ---


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"function": "no.such.module:f"}, "name its folder in PYTHONPATH"),
        ({"function": "json:no_such_name"}, "cannot be loaded"),
        ({"function": "json:__doc__"}, "expected a function"),
        ({"function": "no_entry_point"}, "entry point"),
        ({}, "expected a function or a url, got neither"),
        ({"function": "json:loads", "url": "http://h/x"}, "got both"),
        ({"url": "ftp://h"}, "http://"),
        ({"url": "http://h/x", "secret_env": "CALLWRIGHT_NOT_SET"}, "is not set"),
        ({"function": "json:loads", "secret_env": "X"}, "is for a url"),
    ],
)
def test_a_hook_that_cannot_be_is_named(given: dict[str, Any], words: str) -> None:
    config = Config(models=(ModelConfig(name="m", upstream="simulated", mode="native"),), server=ServerConfig())
    hooks = (HookConfig(name="mine", places=("call",), **given),)
    with pytest.raises(ConfigError, match="mine") as caught:
        create_app(msgspec.structs.replace(config, hooks=hooks))
    assert words in str(caught.value)


@pytest.mark.parametrize("place", ["request", "prompt", "call"])
@pytest.mark.parametrize("mode", MODES)
def test_a_secret_that_a_hook_names_is_on_no_page(hooked: Hooked, model: ModelServer, mode: str, place: str) -> None:
    gateway = hooked(hook("hide", place), server=ServerConfig(inspect="full"))
    model.plays(CALLS[mode])
    said = [{"role": "user", "content": "My word is open sesame."}]
    assert (
        request(gateway.url + "/v1/chat/completions", {"model": mode, "messages": said, "tools": TOOLS}).status == 200
    )
    rows = request(f"{gateway.url}/ui/api/turns", method="GET").text
    (row,) = json.loads(rows)["rows"]
    shown = request(f"{gateway.url}/ui/api/turns/{row['id']}", method="GET").text
    assert "My word is" in rows
    assert "My word is" in shown
    assert "sesame" not in rows + shown
