"""Events of which all but the text is known are read as those of which nothing is, whatever stands in them."""

import json
import random
from collections.abc import Callable, Mapping
from typing import Any, Final
from unittest.mock import patch

import pytest

from callwright.errors import UpstreamError
from callwright.upstreams.base import Delta
from callwright.upstreams.chat import ChatUpstream
from callwright.upstreams.chat_answers import ChatAnswer
from callwright.upstreams.repeated_events import RepeatedEvents
from callwright.upstreams.sse_lines import SseLines
from tests.support.examples import some

CHAT: Final[Mapping[str, Any]] = {"id": "c1", "object": "chat.completion.chunk", "created": 7, "model": "m"}
# What stands around a delta, as servers write it. Some write something else each time.
SERVERS: Final[dict[str, Callable[[random.Random, Any], dict[str, Any]]]] = {
    "plain": lambda _, choice: {**CHAT, "choices": [choice]},
    "with nulls": lambda _, choice: {**CHAT, "choices": [{**choice, "logprobs": None, "stop": None}], "usage": None},
    "a time": lambda chance, choice: {**CHAT, "created": chance.choice((1, 1, 2)), "choices": [choice]},
    "a random text": lambda chance, choice: {
        **CHAT,
        "choices": [choice],
        "obfuscation": "x" * chance.randrange(9),
    },
    "a fingerprint": lambda chance, choice: {**CHAT, "system_fingerprint": chance.choice("ab"), "choices": [choice]},
    "the text again": lambda chance, choice: {**CHAT, "model": chance.choice(("Oslo", "m")), "choices": [choice]},
}
TEXTS: Final = (
    *(
        "Oslo",
        " is",
        " wet",
        "m",
        "x",
        "c1",
        "content",
        "0",
        "",
        " ",
        "\n",
        '"',
        "\\",
        '", "b": "',
        '"error"',
        "é",
        "🌧",
    ),
    *("chat.completion.chunk", "another text", "\ud83c", "\udf27", "</s>", "a" * 20_000, '{"a": 1}'),
)
KINDS: Final[dict[str, Callable[[random.Random, str], dict[str, Any]]]] = {
    "content": lambda _, text: {"content": text},
    "reasoning": lambda _, text: {"reasoning_content": text},
    "arguments": lambda chance, text: {
        "tool_calls": [{"index": chance.choice((0, 0, 0, 1)), "function": {"arguments": text}}]
    },
    "a call": lambda chance, text: {
        "tool_calls": [{"index": chance.randrange(2), "id": chance.choice("pq"), "function": {"name": text or "f"}}]
    },
    "both": lambda _, text: {"content": text, "reasoning_content": text},
    "a role": lambda _, text: {"role": "assistant", "content": text},
}


def events(chance: random.Random, server: str) -> list[bytes]:
    """Runs of one kind, with others in between."""
    found: list[bytes] = []
    for _ in range(6):
        kind = KINDS[chance.choice(list(KINDS))]
        for _ in range(chance.randrange(1, 6)):
            choice = {"index": 0, "delta": kind(chance, chance.choice(TEXTS)), "finish_reason": None}
            data = json.dumps(SERVERS[server](chance, choice), ensure_ascii=chance.random() < 0.9).encode(
                "utf-8", "replace"
            )
            found.append(b"data: " + data + b"\n\n")
    return found


def read(written: list[bytes]) -> tuple[list[Delta], str]:
    """The deltas up to what is wrong, and what that is."""
    upstream, reader, lines = ChatUpstream("http://localhost/v1"), ChatAnswer("it", 9), SseLines()
    known: RepeatedEvents[Delta] = RepeatedEvents(lambda data: upstream._deltas_of(reader, data))
    deltas: list[Delta] = []
    for chunk in written:
        came, failure = upstream._read(lines, chunk, reader, known)
        deltas += came
        if failure is not None:
            assert isinstance(failure, UpstreamError)
            return deltas, str(failure)
    return deltas, ""


@pytest.mark.parametrize("server", SERVERS)
def test_what_is_known_of_an_event_does_not_show(server: str) -> None:
    for seed in some(range(1_500), first=len(server)):
        written = events(random.Random(seed), server)
        with patch.object(RepeatedEvents, "maybe", lambda *_: None):
            expected = read(written)
        assert read(written) == expected, seed


@pytest.mark.parametrize(
    ("server", "most"), [("plain", 6), ("with nulls", 6), ("a random text", 300)], ids=["plain", "nulls", "random"]
)
@pytest.mark.parametrize("kind", ["content", "reasoning"])
def test_of_a_plain_stream_hardly_any_event_is_read_whole(server: str, most: int, kind: str) -> None:
    chance = random.Random(1)
    written = [
        b"data: " + json.dumps(SERVERS[server](chance, {"delta": KINDS[kind](chance, f"it is {n}")})).encode() + b"\n\n"
        for n in range(200)
    ]
    count = 0
    whole_read = ChatAnswer.read

    def counted(self: ChatAnswer, event: Any, deltas: list[Delta]) -> None:
        nonlocal count
        count += 1
        whole_read(self, event, deltas)

    with patch.object(ChatAnswer, "read", counted):
        deltas, wrong = read(written)
    assert (len(deltas), wrong) == (200, "")
    assert count <= most
