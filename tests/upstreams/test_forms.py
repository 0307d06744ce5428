"""What model servers send that is odd and means something: it comes out as OpenAI's API would have sent it."""

from typing import Any

import pytest

from tests.support.http_client import ask
from tests.support.outputs import ARGUMENTS, QUESTION, TOOLS, block
from tests.support.servers import Answer, ModelServer, call_deltas, calling, chat, chunk, said, sse, whole

both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


def body(way: str, **fields: Any) -> dict[str, Any]:
    return {"model": way, "messages": [QUESTION], "tools": TOOLS, **fields}


WHOLE_CALL = {"id": "call_a", "type": "function", "function": {"name": "get_weather", "arguments": ARGUMENTS}}
ROME = '{"city": "Rome"}'
SECOND = {"id": "call_b", "type": "function", "function": {"name": "get_weather", "arguments": ROME}}
PARIS_CALL = ("get_weather", {"city": "Paris"})
ROME_CALL = ("get_weather", {"city": "Rome"})


def without_index(call: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in call.items() if key != "index"}


def calls(*given: dict[str, Any]) -> dict[str, Any]:
    return {"tool_calls": list(given)}


def answered(message: dict[str, Any], reason: str = "stop") -> Answer:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}
    return whole({"id": "x", "object": "chat.completion", "choices": [choice]})


ODD: dict[str, tuple[Answer, list[tuple[str, Any]]]] = {
    "a whole call in one chunk": (chat(calls({"index": 0, **WHOLE_CALL})), [PARIS_CALL]),
    "a whole call in the last chunk": (
        Answer(sse(chunk(calls({"index": 0, **WHOLE_CALL}), "tool_calls"), "[DONE]")),
        [PARIS_CALL],
    ),
    "two whole calls in one chunk": (
        chat(calls({"index": 0, **WHOLE_CALL}, {"index": 1, **SECOND})),
        [PARIS_CALL, ROME_CALL],
    ),
    "no index": (chat(calls(WHOLE_CALL)), [PARIS_CALL]),
    "no index, two calls in one chunk": (chat(calls(WHOLE_CALL, SECOND)), [PARIS_CALL, ROME_CALL]),
    "no index, two calls in two chunks": (chat(calls(WHOLE_CALL), calls(SECOND)), [PARIS_CALL, ROME_CALL]),
    "no index, a call in pieces": (
        chat(
            *(
                calls(without_index(d["tool_calls"][0]))
                for d in call_deltas("get_weather", ARGUMENTS[:6], ARGUMENTS[6:])
            )
        ),
        [PARIS_CALL],
    ),
    "no index, the id in every piece": (
        chat(
            *(
                calls({"id": "a", **without_index(d["tool_calls"][0])})
                for d in call_deltas("get_weather", ARGUMENTS[:6], ARGUMENTS[6:], id_="a")
            )
        ),
        [PARIS_CALL],
    ),
    "no index and no id": (
        chat(calls({"function": WHOLE_CALL["function"]}), calls({"function": SECOND["function"]})),
        [PARIS_CALL, ROME_CALL],
    ),
    "index null": (chat(calls({"index": None, **WHOLE_CALL})), [PARIS_CALL]),
    "index 0 for every whole call": (
        chat(calls({"index": 0, **WHOLE_CALL}), calls({"index": 0, **SECOND})),
        [PARIS_CALL, ROME_CALL],
    ),
    "index 0 for every call of one chunk": (
        chat(calls({"index": 0, **WHOLE_CALL}, {"index": 0, **SECOND})),
        [PARIS_CALL, ROME_CALL],
    ),
    "two calls in turns": (
        chat(
            *(
                d
                for pair in zip(
                    call_deltas("get_weather", ARGUMENTS[:6], ARGUMENTS[6:]),
                    call_deltas("get_weather", ROME[:6], ROME[6:], index=1, id_="b"),
                    strict=True,
                )
                for d in pair
            )
        ),
        [PARIS_CALL, ROME_CALL],
    ),
    "indexes from 1": (
        chat(*call_deltas("get_weather", ARGUMENTS, index=1), *call_deltas("get_weather", ROME, index=2, id_="b")),
        [PARIS_CALL, ROME_CALL],
    ),
    "the name in every piece": (
        chat(
            *(
                calls({"index": 0, "id": "a", "function": {"name": "get_weather", "arguments": a}})
                for a in ("", ARGUMENTS[:5], ARGUMENTS[5:])
            )
        ),
        [PARIS_CALL],
    ),
    "the name behind the id": (
        chat(
            calls({"index": 0, "id": "a", "function": {"arguments": ""}}),
            calls({"index": 0, "function": {"name": "get_weather", "arguments": ARGUMENTS}}),
        ),
        [PARIS_CALL],
    ),
    "the arguments before the name": (
        chat(
            calls({"index": 0, "id": "a", "function": {"arguments": ARGUMENTS}}),
            calls({"index": 0, "function": {"name": "get_weather"}}),
        ),
        [PARIS_CALL],
    ),
    "no name for the first of two": (
        chat(
            calls({"index": 0, "id": "a", "function": {"arguments": ARGUMENTS}}),
            calls({"index": 1, **SECOND}),
        ),
        [ROME_CALL],
    ),
    "name and arguments null in turn": (
        chat(
            calls({"index": 0, "id": "a", "function": {"name": "get_weather", "arguments": None}}),
            calls({"index": 0, "id": None, "type": None, "function": {"name": None, "arguments": ARGUMENTS}}),
        ),
        [PARIS_CALL],
    ),
    "arguments as an object": (
        chat(calls({"index": 0, "id": "a", "function": {"name": "get_weather", "arguments": {"city": "Paris"}}})),
        [PARIS_CALL],
    ),
    "the old function_call": (
        chat(
            {"function_call": {"name": "get_weather", "arguments": ""}},
            {"function_call": {"arguments": ARGUMENTS}},
            finish="function_call",
        ),
        [PARIS_CALL],
    ),
    "the finish reason stop behind a call": (calling("get_weather", ARGUMENTS, finish="stop"), [PARIS_CALL]),
    "the finish reason tool_calls in a chunk of its own without choices behind": (
        Answer(sse(chunk(calls({"index": 0, **WHOLE_CALL})), chunk({}, "tool_calls"), {"choices": []}, "[DONE]")),
        [PARIS_CALL],
    ),
    "not streamed": (
        answered({"content": None, "tool_calls": [WHOLE_CALL, SECOND]}, "tool_calls"),
        [PARIS_CALL, ROME_CALL],
    ),
    "not streamed, the old function_call": (
        answered({"content": None, "function_call": WHOLE_CALL["function"]}, "function_call"),
        [PARIS_CALL],
    ),
    "not streamed, arguments as an object": (
        answered({"tool_calls": [{"function": {"name": "get_weather", "arguments": {"city": "Paris"}}}]}),
        [PARIS_CALL],
    ),
    "tool_calls null beside content": (chat({"content": "Hi", "tool_calls": None, "function_call": None}), []),
}


@both
@pytest.mark.parametrize("odd", ODD)
def test_calls_are_read_whatever_form_a_server_gives_them(
    gateway: str, model: ModelServer, odd: str, stream: bool
) -> None:
    answer, expected = ODD[odd]
    model.plays(answer)
    got = ask(gateway, body("native"), stream=stream)
    assert got.calls == expected
    assert got.finish_reason == ("tool_calls" if expected else "stop")
    ids = [call["id"] for call in got.message.get("tool_calls", ())]
    assert all(ids)
    assert len(set(ids)) == len(ids)


TEXTS: dict[str, tuple[Answer, dict[str, Any]]] = {
    "reasoning_content": (chat({"reasoning_content": "Hm."}, {"content": "Hi"}), {"content": "Hi", "reasoning": "Hm."}),
    "reasoning": (chat({"reasoning": "Hm."}, {"content": "Hi"}), {"content": "Hi", "reasoning": "Hm."}),
    "both names of reasoning": (
        chat({"reasoning": "Hm.", "reasoning_content": "Hm."}, {"content": "Hi"}),
        {"content": "Hi", "reasoning": "Hm."},
    ),
    "reasoning null": (chat({"reasoning": None, "content": "Hi"}), {"content": "Hi"}),
    "reasoning and content in one chunk": (
        chat({"reasoning": "Hm.", "content": "Hi"}),
        {"content": "Hi", "reasoning": "Hm."},
    ),
    "not streamed": (answered({"content": "Hi", "reasoning_content": "Hm."}), {"content": "Hi", "reasoning": "Hm."}),
    "CRLF line ends": (
        Answer(tuple(step.replace(b"\n", b"\r\n") for step in said("Hi").steps if isinstance(step, bytes))),
        {"content": "Hi"},
    ),
    "comments": (Answer((b": ping\n\n", *said("Hi").steps, b": bye\n\n")), {"content": "Hi"}),
    "no space behind data": (
        Answer(tuple(step.replace(b"data: ", b"data:") for step in said("Hi").steps if isinstance(step, bytes))),
        {"content": "Hi"},
    ),
    "event types and ids": (
        Answer(tuple(b"event: message\nid: 1\n" + step for step in said("Hi").steps if isinstance(step, bytes))),
        {"content": "Hi"},
    ),
    "no end mark": (said("Hi", done=False), {"content": "Hi"}),
    "no token counts": (said("Hi", usage=False), {"content": "Hi"}),
    "all in one write": (
        Answer((b"".join(step for step in said("H", "i").steps if isinstance(step, bytes)),)),
        {"content": "Hi"},
    ),
    "byte by byte": (Answer(tuple(bytes([byte]) for byte in said("Grüße 👋").text.encode())), {"content": "Grüße 👋"}),
    "no line end behind the last event": (
        Answer((*sse(chunk({"content": "Hi"})), sse(chunk({}, "stop"))[0].strip())),
        {"content": "Hi"},
    ),
    "an event over a megabyte": (said("x" * 1_500_000), {"content": "x" * 1_500_000}),
}


@both
@pytest.mark.parametrize("odd", TEXTS)
def test_text_is_read_whatever_form_a_server_gives_it(gateway: str, model: ModelServer, odd: str, stream: bool) -> None:
    answer, expected = TEXTS[odd]
    model.plays(answer)
    got = ask(gateway, body("native"), stream=stream)
    assert {"content": got.message["content"], "reasoning": got.message.get("reasoning")} == {
        "reasoning": None,
        **expected,
    }
    assert got.finish_reason == "stop"


def test_an_answer_of_a_completion_server_that_does_not_stream_is_read(gateway: str, model: ModelServer) -> None:
    text = block("get_weather", ARGUMENTS)
    model.plays(
        whole({"choices": [{"index": 0, "text": text, "finish_reason": "stop"}], "usage": {"prompt_tokens": 1}}),
        whole({"content": text, "stop": True, "stop_type": "eos", "tokens_predicted": 5, "tokens_evaluated": 9}),
    )
    for way in ("raw-hermes-vllm", "raw-hermes-llamacpp"):
        assert ask(gateway, body(way), stream=False).calls == [PARIS_CALL]


@both
@pytest.mark.parametrize("stop", [None, "STOP", ["<END>", "STOP"]], ids=["none", "one", "several"])
def test_the_word_at_which_llamacpp_stopped_is_part_of_the_answer_but_a_clients_own_is_not(
    gateway: str, model: ModelServer, stop: object, stream: bool
) -> None:
    written = f"<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{ARGUMENTS}"
    end = {"content": "", "stop": True, "stop_type": "word", "tokens_predicted": 5, "tokens_evaluated": 9}
    asked = body("raw-harmony-llamacpp") | ({"stop": stop} if stop else {})
    model.plays(Answer(sse({"content": written, "stop": False}, {**end, "stopping_word": "<|call|>"})))
    assert ask(gateway, asked, stream=stream).calls == [PARIS_CALL]
    if stop:
        model.plays(Answer(sse({"content": "Well, ", "stop": False}, {**end, "stopping_word": "STOP"})))
        assert ask(gateway, asked, stream=stream).message["content"] == "Well, "


@both
@pytest.mark.parametrize("way", ["prompt-hermes", "prompt-json"])
def test_in_prompt_mode_calls_that_the_server_has_read_count_too(
    gateway: str, model: ModelServer, way: str, stream: bool
) -> None:
    read = call_deltas("get_weather", ARGUMENTS)
    rome = (
        block("get_weather", ROME)
        if way == "prompt-hermes"
        else f'```json\n{{"tool": "get_weather", "arguments": {ROME}}}\n```'
    )
    model.plays(chat(*read, finish="tool_calls"), chat({"content": rome}, *read), chat(*read, {"content": rome}))
    alone, behind, before = (ask(gateway, body(way), stream=stream) for _ in range(3))
    assert alone.calls == [PARIS_CALL]
    assert sorted(behind.calls, key=str) == sorted(before.calls, key=str) == [PARIS_CALL, ROME_CALL]


@both
def test_of_several_answers_one_is_given(gateway: str, model: ModelServer, stream: bool) -> None:
    texts = [{"choices": [{"index": index, "text": text}]} for index, text in ((0, "One"), (1, "two"), (0, "."))]
    end = [{"choices": [{"index": index, "text": "", "finish_reason": "stop"}]} for index in (1, 0)]
    model.plays(Answer(sse(*texts, *end, "[DONE]")))
    assert (
        ask(gateway, {"model": "raw-hermes-vllm", "messages": [QUESTION]}, stream=stream).message["content"] == "One."
    )


@pytest.mark.parametrize("finish", ["stop", "tool_calls"])
def test_a_call_whose_arguments_never_began_is_unfinished_where_something_is_required(
    gateway: str, model: ModelServer, finish: str
) -> None:
    model.plays(chat(*call_deltas("get_weather"), finish=finish))
    answer = ask(gateway, body("native"), stream=True)
    assert answer.finish_reason == "length"
    assert [call["function"]["arguments"] for call in answer.message["tool_calls"]] == [""]
