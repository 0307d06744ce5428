"""Secrets in records: masked wherever they are, however they arrived, and nothing else."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.errors import ConfigError
from callwright.gateway.config.hooks import RedactConfig
from callwright.gateway.observability.redaction import Redactor
from callwright.turn.records import Record, RecordedAttempt

KNOWN = {
    "aws": "AKIA" + "Q7" * 8,
    "github": "ghp_" + "a1B2" * 9,
    "gitlab": "glpat-" + "x9" * 10,
    "openai": "sk-proj-" + "Zz9_" * 10,
    "jwt": "eyJhbGciOiJ9.eyJzdWIiOiIx.c2lnbmF0dXJl",
    "bearer": "Bearer " + "abcd1234" * 3,
    "private": "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabcd\n-----END RSA PRIVATE KEY-----",
}
ALL = Redactor(RedactConfig())


def record(pieces: list[str], text: str) -> Record:
    deltas = [(0.1, {"type": "TextDelta", "text": piece}) for piece in pieces]
    attempt = RecordedAttempt("native", "whole", deltas=deltas, messages=[{"role": "user", "content": text}])
    return Record(1, "1", "now", "m", "u", "m", [attempt], request={"messages": [{"content": [{"text": text}]}]})


@pytest.mark.parametrize("kind", KNOWN)
@given(cuts=st.lists(st.integers(0, 200), max_size=6))
def test_a_known_key_is_masked_in_each_piece_and_nothing_around_it(kind: str, cuts: list[int]) -> None:
    text = f"The key is {KNOWN[kind]} and that is all."
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = [text[begin:end] for begin, end in pairwise(places)]
    masked = ALL.record(record(pieces, text))
    (attempt,) = masked.attempts
    arrived = "".join(delta["text"] for _, delta in attempt.deltas)
    assert [len(delta["text"]) for _, delta in attempt.deltas] == [len(piece) for piece in pieces]
    expected = text.replace(KNOWN[kind], "*" * len(KNOWN[kind]))
    assert arrived == expected
    assert attempt.messages == [{"role": "user", "content": expected}]
    assert masked.request == {"messages": [{"content": [{"text": expected}]}]}


@pytest.mark.parametrize("before", ["\n", "\t", "\r", "\b", "\f", "\x1f", " ", '"', "é"])
@pytest.mark.parametrize("kind", [kind for kind in KNOWN if kind != "private"])
def test_a_known_key_behind_an_escape_of_json_is_masked(kind: str, before: str) -> None:
    text = {"content": f"A=1{before}{KNOWN[kind]}"}
    for _ in range(3):  # JSON in JSON
        text = {"arguments": json.dumps(text)}
        assert KNOWN[kind] not in ALL.text(text["arguments"])


@given(st.text(alphabet=st.characters(exclude_characters="*", codec="utf-8"), min_size=4, max_size=40))
def test_a_secret_that_a_hook_names_is_masked_without_any_setting(secret: str) -> None:
    given_text = f"before {secret} after"
    assert secret not in Redactor(None).text(given_text, (secret,))
    assert Redactor(None).text(given_text) == given_text


@pytest.mark.parametrize("text", ["ask-me", "sk-short", "task-list-of-things", "AKIA", "a bearer of news", "eyJ.eyJ."])
def test_words_that_only_look_alike_are_unchanged(text: str) -> None:
    assert ALL.text(text) == text


def test_own_patterns_are_masked_and_a_broken_one_is_named() -> None:
    assert Redactor(RedactConfig(known=False, patterns=("E-[0-9]+",))).text("id E-123 x") == "id ***** x"
    with pytest.raises(ConfigError, match=r"redact\.patterns\[0\]"):
        Redactor(RedactConfig(patterns=("(",)))
