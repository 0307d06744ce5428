"""Chat Completions over HTTP: what the choice of tools allows to leave, and the API before tools."""

from typing import Any

import pytest

from tests.support.http_client import CHAT, ask, request
from tests.support.outputs import ARGUMENTS, FEW_WAYS, QUESTION, TOOLS, block, played, spoken
from tests.support.servers import ModelServer, calling

both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
few_ways = pytest.mark.parametrize("way", FEW_WAYS)


def body(way: str, **fields: Any) -> dict[str, Any]:
    return {"model": way, "messages": [QUESTION], "tools": TOOLS, **fields}


# --- the choice ---


@both
@few_ways
def test_under_the_choice_none_no_call_leaves(gateway: str, model: ModelServer, way: str, stream: bool) -> None:
    model.plays(played(way, "call"))
    answer = ask(gateway, body(way, tool_choice="none"), stream=stream)
    assert "tool_calls" not in answer.message
    assert answer.finish_reason == "stop"


NAMED = {"type": "function", "function": {"name": "get_weather"}}
MAIL = '{"to": "a@b.c", "text": "Hi"}'


@both
@pytest.mark.parametrize(
    ("way", "choice", "rest"),
    [
        ("raw-hermes-vllm", NAMED, f"{ARGUMENTS}}}\n</tool_call><|im_end|>"),
        ("raw-hermes-vllm", "required", f'get_weather", "arguments": {ARGUMENTS}}}\n</tool_call><|im_end|>'),
        ("raw-harmony-vllm", NAMED, f"{ARGUMENTS}<|call|>"),
        ("raw-harmony-vllm", "required", f".get_weather <|constrain|>json<|message|>{ARGUMENTS}<|call|>"),
        ("raw-harmony-llamacpp", NAMED, f"{ARGUMENTS}<|call|>"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 40 else "",
)
def test_a_call_that_the_prompt_has_begun_comes_out_whole(
    gateway: str, model: ModelServer, way: str, choice: Any, rest: str, stream: bool
) -> None:
    model.plays(spoken(way, rest))
    answer = ask(gateway, body(way, tool_choice=choice), stream=stream)
    assert answer.calls == [("get_weather", {"city": "Paris"})]
    assert answer.finish_reason == "tool_calls"
    assert not answer.message["content"]


@both
def test_under_a_named_choice_the_calls_finish_reason_is_still_tool_calls(
    gateway: str, model: ModelServer, stream: bool
) -> None:
    model.plays(calling("get_weather", ARGUMENTS, finish="stop"))
    answer = ask(gateway, body("native", tool_choice=NAMED), stream=stream)
    assert answer.calls == [("get_weather", {"city": "Paris"})]
    assert answer.finish_reason == "tool_calls"


@both
@pytest.mark.parametrize("way", ["native", "prompt-json", "prompt-hermes"])
def test_under_a_named_choice_no_other_call_leaves(gateway: str, model: ModelServer, way: str, stream: bool) -> None:
    other = {
        "native": calling("send_mail", MAIL),
        "prompt-json": spoken("prompt", f'```json\n{{"tool": "send_mail", "arguments": {MAIL}}}\n```'),
        "prompt-hermes": spoken("prompt", block("send_mail", MAIL)),
    }
    model.plays(*[other[way]] * 3)  # it may be asked again
    reply = request(gateway + CHAT, body(way, tool_choice=NAMED, stream=stream))
    assert "send_mail" not in reply.text


@both
@pytest.mark.parametrize("way", ["native", "prompt-json", "raw-hermes-vllm"])
def test_without_parallel_calls_at_most_one_leaves(gateway: str, model: ModelServer, way: str, stream: bool) -> None:
    model.plays(played(way, "two_calls"))
    answer = ask(gateway, body(way, parallel_tool_calls=False), stream=stream)
    assert answer.calls == [("get_weather", {"city": "Paris"})]
    assert answer.finish_reason == "tool_calls"


def allowed(mode: str, *names: str, flat: bool = False) -> dict[str, Any]:
    """The choice that allows some tools, in the Chat shape or the flat one."""
    tools = [{"type": "function", **({"name": name} if flat else {"function": {"name": name}})} for name in names]
    inner = {"mode": mode, "tools": tools}
    return {"type": "allowed_tools", **(inner if flat else {"allowed_tools": inner})}


@both
@pytest.mark.parametrize("flat", [False, True], ids=["chat shape", "flat shape"])
@pytest.mark.parametrize("way", ["native", "prompt-json", "raw-hermes-vllm"])
def test_only_allowed_tools_are_called(gateway: str, model: ModelServer, way: str, flat: bool, stream: bool) -> None:
    model.plays(played(way, "call"))
    answer = ask(gateway, body(way, tool_choice=allowed("auto", "send_mail", flat=flat)), stream=stream)
    assert (answer.calls, answer.finish_reason) == ([], "stop")
    sent = str(model.body.get("messages") or model.body.get("prompt")) + str(model.body.get("tools"))
    assert "get_weather" in sent, "all tools stay visible"
    model.plays(played(way, "call"))
    answer = ask(gateway, body(way, tool_choice=allowed("auto", "get_weather", "send_mail", flat=flat)), stream=stream)
    assert answer.calls == [("get_weather", {"city": "Paris"})]


@both
def test_one_of_the_allowed_tools_may_be_demanded(gateway: str, model: ModelServer, stream: bool) -> None:
    model.plays(played("native", "call"))
    answer = ask(gateway, body("native", tool_choice=allowed("required", "get_weather", "send_mail")), stream=stream)
    assert answer.calls == [("get_weather", {"city": "Paris"})]
    assert model.body["tool_choice"] == "required"
    model.plays(calling("send_mail", MAIL))
    reply = request(gateway + CHAT, body("native", tool_choice=allowed("required", "get_weather"), stream=stream))
    assert reply.status == 502
    assert model.body["tool_choice"] == NAMED


@both
def test_a_call_of_an_unknown_tool_is_not_dropped(gateway: str, model: ModelServer, stream: bool) -> None:
    model.plays(calling("get_wether", ARGUMENTS))
    answer = ask(gateway, body("native"), stream=stream)
    assert answer.calls == [("get_wether", {"city": "Paris"})]


# --- the API before tools ---


def legacy(way: str, **fields: Any) -> dict[str, Any]:
    functions = [tool["function"] for tool in TOOLS]
    return {"model": way, "messages": [QUESTION], "functions": functions, **fields}


@both
@few_ways
def test_who_offers_functions_gets_a_function_call(gateway: str, model: ModelServer, way: str, stream: bool) -> None:
    model.plays(played(way, "call"))
    answer = ask(gateway, legacy(way), stream=stream)
    assert answer.message["function_call"] == {"name": "get_weather", "arguments": ARGUMENTS}
    assert "tool_calls" not in answer.message
    assert answer.finish_reason == "function_call"


@both
@pytest.mark.parametrize("way", ["native", "prompt-json", "raw-hermes-vllm"])
def test_who_offers_functions_gets_one_call_at_most(gateway: str, model: ModelServer, way: str, stream: bool) -> None:
    model.plays(played(way, "two_calls"))
    answer = ask(gateway, legacy(way), stream=stream)
    assert answer.message["function_call"] == {"name": "get_weather", "arguments": ARGUMENTS}


def test_a_function_call_is_streamed_in_pieces_without_an_id(gateway: str, model: ModelServer) -> None:
    model.plays(played("native", "call"))
    events = request(gateway + CHAT, legacy("native", stream=True)).events
    deltas = [choice["delta"] for event in events for choice in event["choices"]]
    pieces = [delta["function_call"] for delta in deltas if "function_call" in delta]
    assert pieces[0] == {"name": "get_weather", "arguments": ""}
    assert [set(piece) for piece in pieces[1:]] == [{"arguments"}] * (len(pieces) - 1)
    assert "".join(piece["arguments"] for piece in pieces) == ARGUMENTS


@both
def test_a_function_may_be_switched_off_the_old_way(gateway: str, model: ModelServer, stream: bool) -> None:
    model.plays(played("native", "call"))
    answer = ask(gateway, legacy("native", function_call="none"), stream=stream)
    assert "function_call" not in answer.message
    assert answer.finish_reason == "stop"
