"""Several answers to one chat request (`n`): each a turn of its own, in one answer or one stream."""

from typing import Any, Final

import pytest

from callwright.events import Usage
from callwright.gateway.access.keys import hash_of
from callwright.gateway.config.config import KeyConfig, ModelConfig
from callwright.gateway.endpoints.chat_choices import usage_of_choices
from callwright.settings.bounds import MAX_CHOICES
from tests.conftest import WAYS, Served
from tests.support.http_client import CHAT, Live, Reply, request
from tests.support.outputs import QUESTION, TOOLS
from tests.support.servers import USAGE, Answer, ModelServer, calling, chunk, said, sse, whole
from tests.support.waiting import until

FUNCTIONS: Final = [tool["function"] for tool in TOOLS]
both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


def post(gateway: str, way: str = "native", n: int = 3, key: str = "", **fields: Any) -> Reply:
    headers = {"authorization": f"Bearer {key}"} if key else {}
    return request(gateway + CHAT, {"model": way, "messages": [QUESTION], "n": n, **fields}, headers=headers)


def joined(reply: Reply, stream: bool) -> dict[int, dict[str, Any]]:
    """The choices by their index: the text, the calls as name and arguments, and why each ended."""
    assert reply.status == 200, reply.text
    found: dict[int, dict[str, Any]] = {}
    for event in reply.events if stream else [reply.json]:
        for choice in event["choices"]:
            one = found.setdefault(choice["index"], {"content": "", "calls": {}, "role": None, "reason": None})
            message = choice["delta" if stream else "message"]
            one["content"] += message.get("content") or ""
            one["role"] = message.get("role") or one["role"]
            one["reason"] = choice["finish_reason"] or one["reason"]
            for at, call in enumerate(message.get("tool_calls") or ()):
                held = one["calls"].setdefault(call.get("index", at), ["", ""])
                held[0] += call["function"].get("name", "")
                held[1] += call["function"]["arguments"]
            if call := message.get("function_call"):
                held = one["calls"].setdefault(0, ["", ""])
                held[0] += call.get("name", "")
                held[1] += call["arguments"]
    return found


@both
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "fields",
    [{}, {"tools": TOOLS}, {"functions": FUNCTIONS}, {"response_format": {"type": "json_object"}}],
    ids=lambda fields: next(iter(fields), "text"),
)
def test_each_choice_is_what_one_alone_would_be(simulated: str, way: str, fields: dict[str, Any], stream: bool) -> None:
    (alone,) = joined(post(simulated, way, 1, **fields, stream=stream), stream).values()
    choices = joined(post(simulated, way, 3, **fields, stream=stream), stream)
    assert choices == dict.fromkeys(range(3), alone)
    assert alone["role"] == "assistant"


@both
def test_choices_differ_as_the_server_answers(gateway: str, model: ModelServer, stream: bool) -> None:
    model.plays(said("One", "."), said("Two"), calling("get_weather", '{"city":', ' "Oslo"}'))
    choices = joined(
        post(gateway, tools=TOOLS, stream=stream, stream_options={"include_usage": True} if stream else None), stream
    )
    assert sorted(one["content"] for one in choices.values()) == ["", "One.", "Two"]
    assert [list(one["calls"].values()) for one in choices.values() if one["calls"]] == [
        [["get_weather", '{"city": "Oslo"}']]
    ]
    assert sorted(one["reason"] for one in choices.values()) == ["stop", "stop", "tool_calls"]


@both
def test_the_prompt_counts_once_and_what_was_made_of_it_in_sum(gateway: str, model: ModelServer, stream: bool) -> None:
    model.plays(*[said("Hi")] * 3)
    reply = post(gateway, stream=stream, stream_options={"include_usage": True} if stream else None)
    usage = reply.events[-1]["usage"] if stream else reply.json["usage"]
    made = 3 * USAGE["completion_tokens"]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (USAGE["prompt_tokens"], made)
    assert usage["total_tokens"] == USAGE["prompt_tokens"] + made


def test_counts_of_a_turn_that_was_asked_again_are_the_larger_prompt() -> None:
    assert usage_of_choices([Usage(10, 2, 8, 1), Usage(25, 4, 20)]) == Usage(25, 6, 20, 1)
    assert usage_of_choices([]) is None


def test_the_server_is_asked_once_for_each_with_a_seed_of_its_own(gateway: str, model: ModelServer) -> None:
    model.plays(*[said("Hi")] * 3)
    post(gateway, seed=7, temperature=0.5)
    assert sorted(asked.body["seed"] for asked in model.asked) == [7, 8, 9]
    assert not [asked for asked in model.asked if "n" in asked.body]


@both
def test_log_probabilities_stay_with_their_choice(gateway: str, model: ModelServer, stream: bool) -> None:
    def told(text: str) -> Answer:
        event = chunk({"content": text})
        event["choices"][0]["logprobs"] = {"content": [{"token": text, "logprob": -0.1}]}
        return Answer(sse(event, chunk({}, "stop"), "[DONE]"))

    model.plays(told("a"), told("b"))
    reply = post(gateway, n=2, stream=stream, logprobs=True)
    choices = [choice for event in (reply.events if stream else [reply.json]) for choice in event["choices"]]
    seen = [
        (choice["delta" if stream else "message"].get("content"), choice["logprobs"]["content"][0]["token"])
        for choice in choices
        if choice.get("logprobs")
    ]
    assert sorted(seen) == [("a", "a"), ("b", "b")]


# --- failures ---


def test_the_failure_of_one_is_that_of_the_request(gateway: str, model: ModelServer) -> None:
    model.plays(said("Hi"), whole({"error": "oops"}, 500), said("Hi"))
    refused = post(gateway)
    assert (refused.status, refused.error["code"]) == (502, "upstream_status")


def test_in_a_stream_it_is_an_event_and_the_others_end(gateway: str, model: ModelServer) -> None:
    begun = sse(chunk({"role": "assistant", "content": "Hi"}))
    model.plays(Answer((*begun, "silence")), Answer((*begun, "cut")))
    *_, failure = post(gateway, n=2, stream=True).events
    assert failure["error"]["code"] == "upstream_cut"
    model.wait_until_left()


def test_when_the_client_leaves_all_are_ended(gateway: str, model: ModelServer) -> None:
    model.plays(*[Answer((*sse(chunk({"role": "assistant", "content": "Hi"})), "silence"))] * 2)
    body = b'{"model":"native","stream":true,"n":2,"messages":[{"role":"user","content":"Hi"}]}'
    with Live(gateway + CHAT, body) as live:
        next(live.events())
        until(lambda: len(model.asked) == 2)
    model.wait_until_left()


# --- limits ---


@pytest.mark.parametrize("path", [CHAT, "/v1/completions"])
def test_there_are_so_many_choices_at_most(serve: Served, path: str) -> None:
    gateway = serve(ModelConfig(name="m", upstream="simulated"))
    body = {"model": "m", "messages": [QUESTION], "prompt": "Hi"}
    assert len(request(gateway + path, {**body, "n": MAX_CHOICES}).json["choices"]) == MAX_CHOICES
    refused = request(gateway + path, {**body, "n": MAX_CHOICES + 1})
    assert (refused.status, refused.error["param"]) == (400, "n")
    assert "Expected a value <= 8" in refused.error["message"]
    none = request(gateway + path, {**body, "n": 0})
    assert (none.status, none.error["code"]) == (400, "integer_below_min_value")


def test_each_choice_is_a_request_to_the_limit_of_its_key(serve: Served) -> None:
    key = "cw-nora-" + "n" * 40
    keys = (KeyConfig(name="nora", sha256=hash_of(key), requests_per_minute=4),)
    gateway = serve(ModelConfig(name="native", upstream="simulated"), keys=keys)
    assert post(gateway, key=key).status == 200
    refused = post(gateway, key=key)
    assert (refused.status, refused.error["type"]) == (429, "requests")
