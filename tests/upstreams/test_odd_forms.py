"""Odd forms of answers: read where the meaning is plain, refused by name otherwise, and what is left out is told."""

import json
import logging
from typing import Any

import pytest
from msgspec import Struct

from tests.support.http_client import CHAT, ask, request
from tests.support.odd_answers import (
    NAME,
    ROME_ARGUMENTS,
    WHOLE,
    beside,
    body,
    call,
    ended_by,
    in_both_forms,
    whole_calls,
)
from tests.support.outputs import ARGUMENTS
from tests.support.servers import Answer, ModelServer, chat, chunk, said, sse, whole

both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
WAVES = "Hi \N{WAVING HAND SIGN}!"


def halves(event: str) -> Answer:
    """A stream in which the character in an event is cut between the halves of its surrogate pair. `event` is JSON with
    `%s` where the text goes on.
    """
    texts = ["Hi \\ud83d", "\\udc4b!"]
    events = [event % text for text in texts]
    return Answer(sse(*events, chunk({}, "stop"), "[DONE]"))


class Text(Struct, frozen=True):
    """An answer, and what is read of it."""

    answer: Answer
    content: str | None = "Hi"
    reasoning: str | None = None
    finish_reason: str = "stop"


def parts(*given: Any) -> Answer:
    return chat({"content": list(given)})


def finishing(reason: Any) -> Answer:
    return said("Hi", finish=reason)


def with_usage(**usage: Any) -> Answer:
    return Answer(sse(chunk({"content": "Hi"}), chunk({}, "stop"), {"choices": [], "usage": usage}, "[DONE]"))


TEXTS: dict[str, Text] = {
    "a byte order mark": Text(Answer((b"\xef\xbb\xbf", *said("Hi").steps))),
    "carriage returns": Text(
        Answer(tuple(step.replace(b"\n", b"\r") for step in said("Hi").steps if isinstance(step, bytes)))
    ),
    "data of several lines": Text(
        Answer(
            tuple(
                b"".join(b"data: %b\n" % line.encode() for line in json.dumps(event, indent=2).splitlines()) + b"\n"
                for event in (chunk({"content": "Hi"}), chunk({}, "stop"))
            )
        )
    ),
    "comments and other fields": Text(Answer((b"retry: 5\nid: 1\n: hi\n\n", *said("Hi").steps))),
    "events without an empty line between": Text(
        Answer(tuple(step.replace(b"\n\n", b"\n") for step in said("H", "i").steps if isinstance(step, bytes)))
    ),
    "a character cut in two": Text(halves('{"choices":[{"index":0,"delta":{"content":"%s"}}]}'), WAVES),
    "a character cut in two in reasoning": Text(
        halves('{"choices":[{"index":0,"delta":{"reasoning_content":"%s"}}]}'), None, WAVES
    ),
    "half a character": Text(
        Answer(sse('{"choices":[{"index":0,"delta":{"content":"Hi\\ud83d"}}]}', chunk({}, "stop"), "[DONE]")),
        "Hi\ufffd",
    ),
    "half a character in the middle": Text(
        Answer(sse('{"choices":[{"index":0,"delta":{"content":"H\\ud83di"}}]}', chunk({}, "stop"), "[DONE]")),
        "H\ufffdi",
    ),
    "the other half of a character": Text(
        Answer(sse('{"choices":[{"index":0,"delta":{"content":"\\udc4bHi"}}]}', chunk({}, "stop"), "[DONE]")),
        "\ufffdHi",
    ),
    "content in parts": Text(parts({"type": "text", "text": "H"}, {"type": "text", "text": "i"})),
    "content in parts without types": Text(parts({"text": "Hi"})),
    "content in no parts": Text(chat({"content": []}, {"content": "Hi"})),
    "reasoning in parts": Text(
        parts({"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, {"type": "text", "text": "Hi"}),
        "Hi",
        "Hm.",
    ),
    "reasoning in two parts": Text(
        parts(*({"type": "thinking", "thinking": text} for text in ("Hm.", "So.")), {"type": "text", "text": "Hi"}),
        "Hi",
        "Hm.\nSo.",
    ),
    "parts of reasoning between parts of content": Text(
        parts(
            {"type": "thinking", "thinking": "Hm."},
            {"type": "text", "text": "H"},
            {"type": "thinking", "thinking": "So."},
            {"type": "text", "text": "i"},
        ),
        "Hi",
        "Hm.\nSo.",
    ),
    "reasoning between content": Text(
        chat({"reasoning": "H"}, {"reasoning": "m."}, {"content": "H"}, {"reasoning": "So."}, {"content": "i"}),
        "Hi",
        "Hm.\nSo.",
    ),
    "a message beside an empty delta": Text(beside({"content": "Hi"}, {})),
    "a message beside a delta with the role": Text(beside({"content": "Hi"}, {"role": "assistant", "content": ""})),
    "messages beside deltas that say the same": Text(
        Answer(
            sse(
                *(
                    {"choices": [{"index": 0, "delta": {"content": text}, "message": {"content": text}}]}
                    for text in ("", "", None)
                ),
                chunk({"content": "Hi"}, "stop"),
                "[DONE]",
            )
        )
    ),
    "a piece of a call that says nothing": Text(chat({"content": "Hi"}, call(None, index=0))),
    "a chunk without choices": Text(Answer((*sse({"id": "x"}, {"choices": None}, {"choices": []}), *said("Hi").steps))),
    "a delta null": Text(Answer((*sse({"choices": [{"index": 0, "delta": None}]}), *said("Hi").steps))),
    "an empty finish_reason before the last": Text(
        Answer(sse(chunk({"content": "Hi"}, ""), chunk({}, "stop"), "[DONE]"))
    ),
    **{f"finish_reason {reason}": Text(finishing(reason)) for reason in ("eos", "end_turn", "STOP", "<|eot_id|>")},
    **{f"finish_reason {r}": Text(finishing(r), finish_reason="length") for r in ("max_tokens", "MAX_TOKENS")},
    **{f"finish_reason {r}": Text(finishing(r), finish_reason="content_filter") for r in ("SAFETY", "sensitive")},
}


@both
@pytest.mark.parametrize("odd", TEXTS)
def test_texts(gateway: str, model: ModelServer, odd: str, stream: bool, caplog: pytest.LogCaptureFixture) -> None:
    model.plays(TEXTS[odd].answer)
    got = ask(gateway, body(), stream=stream)
    read = Text(TEXTS[odd].answer, got.message["content"], got.message.get("reasoning"), got.finish_reason)
    assert read == TEXTS[odd]
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@both
@pytest.mark.parametrize(
    ("event", "way"),
    [
        ('{"choices":[{"index":0,"text":"%s","finish_reason":null}]}', "raw-hermes-openai"),
        ('{"index":0,"content":"%s","stop":false}', "raw-hermes-llamacpp"),
    ],
    ids=["completions", "llama.cpp"],
)
def test_a_character_cut_in_two_in_a_completion(
    gateway: str, model: ModelServer, event: str, way: str, stream: bool
) -> None:
    texts = ["Hi \\ud83d", "\\udc4b!"]
    end = {"choices": [{"index": 0, "text": "", "finish_reason": "stop"}], "content": "", "stop": True}
    model.plays(Answer(sse(*(event % text for text in texts), end)))
    assert ask(gateway, body(way), stream=stream).message["content"] == WAVES


class Told(Struct, frozen=True):
    """An answer of which something is left out or read as something else, and how the log names it."""

    answer: Answer
    told: str
    content: str | None = "Hi"
    usage: tuple[int, int] | None = None


def two_choices(fields: dict[str, Any], kind: str) -> Answer:
    """An event, or a whole answer, with two choices, for both of which `fields` hold."""
    return whole(
        {
            "choices": [
                {**fields, kind: {"role": "assistant", "content": text}, "finish_reason": "stop"}
                for text in ("Hi", "No")
            ]
        }
    )


TOLD: dict[str, Told] = {
    "a further choice": Told(
        Answer(
            sse(
                chunk({"content": "Hi"}),
                {"choices": [{"index": 1, "delta": {"content": "No"}}]},
                chunk({}, "stop"),
                {"choices": [{"index": 1, "delta": {}, "finish_reason": "length"}]},
                "[DONE]",
            )
        ),
        "a further answer, which is left out; its index: 1",
    ),
    "a further choice of a whole answer, without indexes": Told(
        two_choices({}, "message"), "a further answer, which is left out; its index: None"
    ),
    "a further choice of a whole answer, of the same index": Told(
        two_choices({"index": 0}, "message"), "a further answer, which is left out; its index: 0"
    ),
    "a further choice of an event, without indexes": Told(
        two_choices({}, "delta"), "a further answer, which is left out; its index: None"
    ),
    "a call in both forms": Told(
        chat(*in_both_forms(ARGUMENTS[:6], ARGUMENTS[6:]), finish="tool_calls"),
        f"a function_call that a call beside it says, too: '{NAME}'",
        content=None,
    ),
    "a call of a whole answer in both forms": Told(
        whole(
            {
                "choices": [
                    {
                        "message": {"tool_calls": [WHOLE], "function_call": WHOLE["function"]},
                        "finish_reason": "tool_calls",
                    }
                ]
            }
        ),
        f"a function_call that a call beside it says, too: '{NAME}'",
        content=None,
    ),
    "the id of another call": Told(
        whole_calls(id="a"), "the id of one call for another, which gets a new one: 'a'", content=None
    ),
    "the id of a call that is over": Told(
        chat(
            call(NAME, ARGUMENTS, index=0, id="a"),
            call(NAME, ROME_ARGUMENTS, index=1, id="b"),
            call(NAME, ARGUMENTS, index=0, id="a"),
            finish="tool_calls",
        ),
        "the id of one call for another, which gets a new one: 'a'",
        content=None,
    ),
    "the id of two other calls": Told(
        chat(
            *(call(NAME, ARGUMENTS, index=0, id=id_) for id_ in ("a", "b", "a", "b")),
            finish="tool_calls",
        ),
        "the id of one call for another, which gets a new one: 'a'",
        content=None,
    ),
    "an unknown finish_reason": Told(finishing("tired"), "a finish_reason that nobody knows, read as 'stop': 'tired'"),
    "a message that repeats its deltas": Told(
        ended_by({"content": "Hi"}, {"content": "H"}, {"content": "i"}),
        "a message after its pieces, read only for fields that they left empty; it has: 'content'",
    ),
    "negative counts": Told(
        with_usage(prompt_tokens=-3, completion_tokens=2), "a token count that is none, read as 0: -3", usage=(0, 2)
    ),
    "counts that are no whole numbers": Told(
        with_usage(prompt_tokens=3, completion_tokens=2.5), "a token count that is none, read as 0: 2.5", usage=(3, 0)
    ),
}


@both
@pytest.mark.parametrize("odd", TOLD)
def test_what_is_left_out_is_told(
    gateway: str, model: ModelServer, odd: str, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    expected = TOLD[odd]
    model.plays(expected.answer)
    got = ask(gateway, body(), stream=stream)
    assert got.message["content"] == expected.content
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == [
        f"{model.url} sent {expected.told}"
    ]
    if expected.usage:
        assert got.usage is not None
        assert (got.usage["prompt_tokens"], got.usage["completion_tokens"]) == expected.usage


@both
@pytest.mark.parametrize("fields", [{}, {"index": 0}], ids=["without indexes", "of one index"])
def test_of_two_completions_in_one_answer_the_first_is_read(
    gateway: str, model: ModelServer, fields: dict[str, Any], stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    choices = [{**fields, "text": text, "finish_reason": "stop"} for text in ("Hi", "No")]
    model.plays(whole({"choices": choices}))
    assert ask(gateway, body("raw-hermes-openai"), stream=stream).message["content"] == "Hi"
    assert "a further answer, which is left out" in caplog.text


@both
@pytest.mark.parametrize(
    ("counts", "read"),
    [
        ({"prompt_tokens": None, "completion_tokens": None}, (0, 0)),
        ({"prompt_tokens": 3.0, "completion_tokens": 2, "prompt_tokens_details": None}, (3, 2)),
    ],
    ids=["null", "floats"],
)
def test_token_counts(
    gateway: str, model: ModelServer, counts: dict[str, Any], read: tuple[int, int], stream: bool
) -> None:
    model.plays(with_usage(**counts))
    usage = ask(gateway, body(), stream=stream).usage
    assert usage is not None
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == read


REFUSED: dict[str, tuple[Answer, str]] = {
    "content that is no text": (
        parts({"type": "image_url", "image_url": {"url": "https://x.test"}}),
        "sent content of a type other than text: 'image_url'",
    ),
    "a call of no function": (
        chat({"tool_calls": [{"index": 0, "id": "a", "type": "custom", "custom": {"name": NAME, "input": "Hi"}}]}),
        "sent a call of a type other than function: 'custom'",
    ),
    "an answer that was given up": (finishing("abort"), "gave up its answer (finish_reason 'abort')"),
    "a network error": (finishing("network_error"), "gave up its answer (finish_reason 'network_error')"),
    "an error by its type": (
        Answer((b'event: error\ndata: {"message": "It broke."}\n\n',)),
        "reports an error: It broke.",
    ),
    "an error by its type that is no JSON": (
        Answer((b"event: error\ndata: it broke\n\n",)),
        "reports an error: it broke.",
    ),
    "an error by its object": (
        Answer(sse({"object": "error", "message": "CUDA is out", "code": 500})),
        "reports an error: CUDA is out.",
    ),
    "an error of many levels": (
        Answer(sse('{"error":' + "[" * 500 + "]" * 500 + "}")),
        "reports an error: …",
    ),
    "an error that is no message": (
        Answer(sse({"error": {"loc": 5, "msg": {"a": 1}}})),
        'reports an error: {"error":{"loc":5,"msg":{"a":1}}}',
    ),
    "a whole answer without a finish_reason": (
        whole({"choices": [{"index": 0, "message": {"content": "Hi"}}]}),
        "answered without saying why its model stopped (no `finish_reason`).",
    ),
    "a whole answer without choices": (
        whole({"choices": None}),
        "answered without saying why its model stopped (no `finish_reason`).",
    ),
}


@both
@pytest.mark.parametrize("odd", REFUSED)
def test_what_has_no_plain_meaning_is_refused_by_name(gateway: str, model: ModelServer, odd: str, stream: bool) -> None:
    answer, told = REFUSED[odd]
    model.plays(answer)
    reply = request(gateway + CHAT, body(stream=stream))
    error = reply.events[-1]["error"] if stream and reply.status == 200 else reply.error
    assert reply.status in ((200, 502) if stream else (502,))
    assert f"The upstream at {model.url} {told}" in error["message"]


@pytest.mark.parametrize(
    ("said_", "handed_on"),
    [
        *(("7", "7"), (" 7 ", "7"), ("1.5", "2"), ("0", "0"), ("86400", "86400")),
        ("Fri, 31 Dec 2027 23:59:59 GMT", "Fri, 31 Dec 2027 23:59:59 GMT"),
        *((wrong, None) for wrong in ("-5", "86401", "99999999999999", "soon", "", "NaN", "1e9", "7, 8", "١")),
    ],
)
def test_only_a_wait_that_is_one_is_handed_on(
    gateway: str, model: ModelServer, said_: str, handed_on: str | None
) -> None:
    model.plays(whole({"error": {"message": "Slow down."}}, 429, retry_after=said_))
    assert request(gateway + CHAT, body()).headers.get("retry-after") == handed_on
