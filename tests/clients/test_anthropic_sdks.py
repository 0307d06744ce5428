"""Anthropic's packages for Python and JavaScript against a started gateway, whole and streamed."""

import json
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
import pytest

from callwright.gateway.access.keys import hash_of
from callwright.gateway.config.config import KeyConfig
from tests import conftest
from tests.clients.anthropic_sdks import NAMES, Sdk, SdkError, opened
from tests.conftest import Served
from tests.support.outputs import TEXT
from tests.support.servers import Answer, ModelServer, whole
from tests.support.turns import broken_off, shown, wrote

pytestmark = pytest.mark.clients

WAYS: Final = ("native", "prompt-json", "raw-hermes-vllm", "raw-harmony-vllm")
ways = pytest.mark.parametrize("way", WAYS)
# gpt-oss stops behind each call.
parallel_ways = pytest.mark.parametrize("way", [way for way in WAYS if "harmony" not in way])
both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
QUESTION: Final = {"role": "user", "content": "What is the weather in Paris and in Rome?"}
WEATHER: Final = {
    "name": "get_weather",
    "description": "The weather in a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
PARIS, ROME = (("get_weather", {"city": city}) for city in ("Paris", "Rome"))


@pytest.fixture(scope="module")
def _opened() -> Iterator[dict[tuple[str, str], Sdk]]:
    found: dict[tuple[str, str], Sdk] = {}
    yield found
    for sdk in found.values():
        sdk.close()


@pytest.fixture
def url(serve: Served, model: ModelServer) -> str:
    return serve(*conftest.scripted_models(model.url, retries=2))


@pytest.fixture(params=NAMES)
def sdk_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def sdk(sdk_name: str, url: str, _opened: dict[tuple[str, str], Sdk]) -> Sdk:
    """A package at a gateway before the scripted model server."""
    return found(_opened, sdk_name, url)


def found(known: dict[tuple[str, str], Sdk], name: str, url: str) -> Sdk:
    """The package at this gateway, opened once."""
    if (name, url) not in known:
        known[name, url] = opened(name, url)
    return known[name, url]


def asked(way: str, *messages: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A request with the question, and the messages behind it."""
    return {"model": way, "max_tokens": 500, "messages": [QUESTION, *messages], **more}


def said(message: Mapping[str, Any]) -> list[Any]:
    """The content of a message without what is made by chance."""
    hidden = ("id", "signature", "citations", "caller", "parsed_output")
    return [{key: value for key, value in block.items() if key not in hidden} for block in message["content"]]


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def calls(*named: tuple[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{"type": "tool_use", "name": name, "input": arguments} for name, arguments in named]


# --- text, tools ---


@both
@ways
def test_a_text(sdk: Sdk, model: ModelServer, way: str, stream: bool) -> None:
    model.plays(wrote(way, "It is 18 °C in Paris."))
    made = sdk.do("ask", asked(way), stream=stream)
    assert said(made) == [text("It is 18 °C in Paris.")]
    assert (made["role"], made["model"], made["stop_reason"]) == ("assistant", way, "end_turn")
    assert made["id"].startswith("msg_")
    assert (made["usage"]["input_tokens"], made["usage"]["output_tokens"]) == (11, 7)


@both
@ways
def test_a_call_and_its_result(sdk: Sdk, model: ModelServer, way: str, stream: bool) -> None:
    model.plays(wrote(way, "One moment.", [PARIS]), wrote(way, "It is 18 °C."))
    made = sdk.do("ask", asked(way, tools=[WEATHER]), stream=stream)
    assert said(made) == [text("One moment."), *calls(PARIS)]
    assert made["stop_reason"] == "tool_use"
    result = {"type": "tool_result", "tool_use_id": made["content"][1]["id"], "content": "18 °C, sunny"}
    request = asked(way, *answered(made, result), tools=[WEATHER])
    assert said(sdk.do("ask", request, stream=stream)) == [text("It is 18 °C.")]
    assert "18 °C, sunny" in shown(model.asked[1].body)


def answered(made: Mapping[str, Any], *results: Mapping[str, Any]) -> list[dict[str, Any]]:
    """An answer as it came, and what its tools told."""
    return [{"role": "assistant", "content": made["content"]}, {"role": "user", "content": list(results)}]


@both
@parallel_ways
def test_calls_side_by_side_and_results_in_another_order(sdk: Sdk, model: ModelServer, way: str, stream: bool) -> None:
    model.plays(wrote(way, "", [PARIS, ROME]), wrote(way, "Warm."))
    made = sdk.do("ask", asked(way, tools=[WEATHER]), stream=stream)
    assert said(made) == calls(PARIS, ROME)
    first, second = (block["id"] for block in made["content"])
    failed = {"type": "tool_result", "tool_use_id": second, "content": "no such town", "is_error": True}
    fine = {"type": "tool_result", "tool_use_id": first, "content": [text("18 °C")]}
    request = asked(way, *answered(made, failed, fine, text("Hurry.")), tools=[WEATHER])
    assert said(sdk.do("ask", request, stream=stream)) == [text("Warm.")]
    prompt = shown(model.asked[1].body)
    places = [prompt.rindex(words) for words in ("18 °C", "Error: no such town", "Hurry.")]
    assert places == sorted(places), "in the order of the calls"


@both
@parallel_ways
def test_one_call_at_a_time_where_the_client_wants_it(sdk: Sdk, model: ModelServer, way: str, stream: bool) -> None:
    model.plays(*[wrote(way, "", [PARIS, ROME])] * 3)
    choice = {"type": "auto", "disable_parallel_tool_use": True}
    made = sdk.do("ask", asked(way, tools=[WEATHER], tool_choice=choice), stream=stream)
    assert said(made) == calls(PARIS)


# --- thinking ---

THOUGHT: Final = "I have to look it up."
# A prompt of mode prompt has no place for what was thought before.
thinking_ways = pytest.mark.parametrize("way", [way for way in WAYS if "prompt" not in way])


@both
@thinking_ways
@pytest.mark.parametrize("display", ["summarized", "omitted"])
def test_thinking_comes_and_goes_back(sdk: Sdk, model: ModelServer, way: str, display: str, stream: bool) -> None:
    model.plays(wrote(way, "", [PARIS], thought=THOUGHT), wrote(way, "Warm."))
    request = asked(way, tools=[WEATHER], thinking={"type": "adaptive", "display": display})
    made = sdk.do("ask", request, stream=stream)
    assert said(made)[0] == {"type": "thinking", "thinking": THOUGHT if display == "summarized" else ""}
    assert said(made)[1:] == calls(PARIS)
    result = {"type": "tool_result", "tool_use_id": made["content"][1]["id"], "content": "18 °C"}
    sdk.do("ask", {**request, "messages": [QUESTION, *answered(made, result)]}, stream=stream)
    assert THOUGHT in shown(model.asked[1].body)


@both
@ways
def test_thinking_is_not_shown_unasked(sdk: Sdk, model: ModelServer, way: str, stream: bool) -> None:
    model.plays(wrote(way, "Warm.", thought=THOUGHT))
    assert said(sdk.do("ask", asked(way), stream=stream)) == [text("Warm.")]


# --- ends ---


@both
@ways
def test_a_stop_sequence_ends_the_text(sdk: Sdk, model: ModelServer, way: str, stream: bool) -> None:
    model.plays(wrote(way, "<block>no</block> and more"))
    made = sdk.do("ask", asked(way, stop_sequences=["</never>", "</block>"]), stream=stream)
    assert said(made) == [text("<block>no")]
    assert (made["stop_reason"], made["stop_sequence"]) == ("stop_sequence", "</block>")


@both
def test_the_limit_ends_the_text(sdk: Sdk, model: ModelServer, stream: bool) -> None:
    model.plays(wrote("native", "It is 18", finish="length"))
    made = sdk.do("ask", asked("native"), stream=stream)
    assert (said(made), made["stop_reason"]) == ([text("It is 18")], "max_tokens")


# --- what goes wrong ---

TOO_LONG: Final = "This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens."
FIRE: Final = whole({"error": {"message": "the engine is on fire"}}, 500)
# By what the server does: the class in Python and in JavaScript, the status, the type, words of the message.
REFUSED: Final[Mapping[str, tuple[Answer, tuple[str, str], int, str, str]]] = {
    "it fails": (FIRE, ("InternalServerError", "InternalServerError"), 500, "api_error", "the engine is on fire"),
    "it has no place": (
        whole({"error": {"message": "later"}}, 429),
        ("RateLimitError", "RateLimitError"),
        429,
        "rate_limit_error",
        "later",
    ),
    "the window is too small": (
        whole({"error": {"message": TOO_LONG, "code": "context_length_exceeded"}}, 400),
        ("BadRequestError", "BadRequestError"),
        400,
        "invalid_request_error",
        "prompt is too long: 5000 tokens > 4096 maximum",
    ),
}


@both
@pytest.mark.parametrize("what", REFUSED)
def test_an_error_before_the_first_byte(sdk: Sdk, model: ModelServer, what: str, stream: bool) -> None:
    answer, kinds, status, type_, words = REFUSED[what]
    model.plays(*[answer] * 3)
    with pytest.raises(SdkError) as raised:
        sdk.do("ask", asked("native"), stream=stream)
    failed = raised.value
    assert failed.kind in kinds
    assert (failed.status, failed.type) == (status, type_)
    assert words in failed.message


@both
@ways
def test_an_error_in_the_middle(sdk: Sdk, model: ModelServer, way: str, stream: bool) -> None:
    model.plays(broken_off(wrote(way, TEXT)))
    with pytest.raises(SdkError, match="closed the connection in the middle") as raised:
        sdk.do("ask", asked(way), stream=stream)
    assert raised.value.type == "api_error"
    if not stream:
        assert raised.value.status == 500


@pytest.fixture
def slow(sdk_name: str, serve: Served, model: ModelServer, _opened: dict[tuple[str, str], Sdk]) -> Sdk:
    """A package at a gateway with a quick heart."""
    return found(_opened, sdk_name, serve(*conftest.scripted_models(model.url), heartbeat_s=0.05))


def late(model: ModelServer, answer: Answer) -> Answer:
    """An answer that begins when several heartbeats have gone out."""
    gate = model.gate()
    threading.Timer(0.3, gate.open).start()
    return msgspec.structs.replace(answer, steps=(gate, *answer.steps))


@both
def test_a_model_that_is_slow_is_waited_for(slow: Sdk, model: ModelServer, stream: bool) -> None:
    model.plays(late(model, wrote("native", "Warm.", [PARIS])))
    assert said(slow.do("ask", asked("native", tools=[WEATHER]), stream=stream)) == [text("Warm."), *calls(PARIS)]


@both
def test_an_error_behind_heartbeats(slow: Sdk, model: ModelServer, stream: bool) -> None:
    model.plays(late(model, FIRE))
    with pytest.raises(SdkError, match="the engine is on fire") as raised:
        slow.do("ask", asked("native"), stream=stream)
    assert raised.value.type == "api_error"


def test_an_unknown_model(sdk: Sdk) -> None:
    with pytest.raises(SdkError, match="nobody") as raised:
        sdk.do("ask", asked("nobody"))
    assert (raised.value.kind, raised.value.status, raised.value.type) == ("NotFoundError", 404, "not_found_error")


def test_a_request_that_is_wrong(sdk: Sdk, model: ModelServer) -> None:
    with pytest.raises(SdkError, match=r"messages\[0\]\.content") as raised:
        sdk.do("ask", asked("native", messages=[{"role": "user", "content": [{"type": "text"}]}]))
    assert (raised.value.status, raised.value.type) == (400, "invalid_request_error")
    assert not model.asked


# --- helpers ---

SIGHT: Final = {"place": "Eiffel Tower", "height": 330}


@both
@ways
def test_an_answer_is_parsed(sdk: Sdk, model: ModelServer, way: str, stream: bool) -> None:
    model.plays(wrote(way, f"```json\n{json.dumps(SIGHT)}\n```"))
    assert sdk.do("parse", asked(way), stream=stream) == SIGHT


@both
@ways
def test_an_answer_that_does_not_fit_is_asked_for_again(sdk: Sdk, model: ModelServer, way: str, stream: bool) -> None:
    model.plays(wrote(way, "The Eiffel Tower has 330 m."), wrote(way, json.dumps(SIGHT)))
    assert sdk.do("parse", asked(way), stream=stream) == SIGHT
    assert len(model.asked) == 2


@both
@ways
def test_the_tool_runner_goes_on_with_the_whole_history(sdk: Sdk, model: ModelServer, way: str, stream: bool) -> None:
    model.plays(wrote(way, "", [PARIS]), wrote(way, "", [ROME]), wrote(way, "Warm."))
    made = sdk.do("run_tools", asked(way), stream=stream)
    assert made["cities"] == ["Paris", "Rome"]
    assert said(made["message"]) == [text("Warm.")]
    assert len(model.asked) == 3
    last = shown(model.asked[2].body)
    for words in (QUESTION["content"], "18 °C in Paris", "18 °C in Rome"):
        assert words in last


# --- models, tokens ---


def test_models_are_listed_and_shown(sdk: Sdk, url: str) -> None:
    listed = {found["id"]: found for found in sdk.do("models", {})}
    assert set(WAYS) <= listed.keys()
    assert sdk.do("model", {"model": "native"}) == listed["native"]
    assert (listed["native"]["type"], listed["native"]["display_name"]) == ("model", "native")
    with pytest.raises(SdkError) as raised:
        sdk.do("model", {"model": "nobody"})
    assert (raised.value.status, raised.value.type) == (404, "not_found_error")


def test_tokens_are_counted(sdk: Sdk, model: ModelServer) -> None:
    request = {"model": "native", "messages": [QUESTION]}
    few, many = sdk.do("count", request), sdk.do("count", {**request, "tools": [WEATHER]})
    assert 0 < few < many
    assert not model.asked


@pytest.mark.parametrize("name", NAMES)
def test_a_key_is_taken_and_another_refused(serve: Served, model: ModelServer, name: str) -> None:
    url = serve(*conftest.scripted_models(model.url), keys=(KeyConfig(name="ann", sha256=hash_of("sk-ann")),))
    for key, fits in (("sk-ann", True), ("sk-bob", False)):
        sdk = opened(name, url, key)
        try:
            if fits:
                model.plays(wrote("native", "Hello."))
                assert said(sdk.do("ask", asked("native"))) == [text("Hello.")]
            else:
                with pytest.raises(SdkError) as raised:
                    sdk.do("ask", asked("native"))
                failed = raised.value
                assert (failed.kind, failed.status) == ("AuthenticationError", 401)
                assert failed.type == "authentication_error"
        finally:
            sdk.close()


# --- without a model ---


@both
@pytest.mark.parametrize("name", NAMES)
def test_the_simulated_model_calls_and_answers(simulated: str, name: str, stream: bool) -> None:
    sdk = opened(name, simulated)
    try:
        for way in conftest.WAYS:
            request = {"model": way, "max_tokens": 500, "messages": [{"role": "user", "content": "Weather in Paris?"}]}
            made = sdk.do("run_tools", request, stream=stream)
            assert made["cities"] == ["Paris"], way
            assert "18 °C in Paris" in said(made["message"])[0]["text"]
    finally:
        sdk.close()
