"""Secrets in records: masked wherever they are, however they arrived, and nothing else."""

import json
import time
from collections.abc import Callable
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
    "openai": "sk-proj-" + "Zz9aB_" * 3 + "T3BlbkFJ4x9QwErTy0",
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


# Secrets, and a function that writes each as some encoder of JSON does.
SECRETS = ("a/b/c/d", 'say "open"', "C:\\keys\\mine", "two\nlines", "<tag>&'x'", "schön/\U0001f511", "\\/\\/", '"""""')
ENCODERS: dict[str, Callable[[str], str]] = {
    "ASCII": json.dumps,
    "Unicode": lambda text: json.dumps(text, ensure_ascii=False),
    "slashes escaped": lambda text: json.dumps(text).replace("/", "\\/"),
    "for HTML": lambda text: json.dumps(text).replace("<", "\\u003C").replace(">", "\\u003e").replace("&", "\\u0026"),
    "all escaped": lambda text: (
        '"' + "".join(f"\\u{unit:04x}" for unit in memoryview(text.encode("utf-16-le")).cast("H")) + '"'
    ),
}


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("inner", ENCODERS)
@pytest.mark.parametrize("outer", ENCODERS)
def test_a_secret_is_masked_however_json_spells_it(secret: str, inner: str, outer: str) -> None:
    text = f"before {secret} after"
    for depth in range(5):
        masked = Redactor(None).text(text, (secret,))
        for _ in range(depth):
            masked = json.loads(masked)
        stars = masked.removeprefix("before ").removesuffix(" after")
        assert set(stars) == {"*"}
        text = ENCODERS[inner if depth % 2 else outer](text)
        if len(text) > 10_000:  # with all escaped, each level has six times the length
            return


@given(st.text(alphabet='ab\\"/u0041n', max_size=60), st.text(alphabet='ab\\"/', min_size=4, max_size=6))
def test_a_mask_hides_all_of_a_secret_and_as_much_as_it_replaces(text: str, secret: str) -> None:
    masked = Redactor(None).text(text, (secret,))
    assert len(masked) == len(text)
    assert secret not in masked
    assert all(new in (old, "*") for old, new in zip(text, masked, strict=True))


WORDS = (
    "ask-me",
    "sk-short",
    "task-list-of-things",
    "AKIA",
    "a bearer of news",
    "eyJ.eyJ.",
    "sk-learn-compatible-estimators",
    "sk-learn_compatible_estimators_v2",
    "sk-image-processing-2026-11-29-tutorial",
    "sk-3d-models-for-2-wheeled-bicycles",
    "sk-LearnCompatibleEstimatorsAndMore",
    "sk-SK-Telecom-and-others-in-Slovakia",
    "xoxo-hugs-and-kisses-to-all-of-you",
    "bearer authentication-and-authorization",
)
KEYS = (
    "sk-" + "4x9QwErTy0abCDeF" * 3,  # OpenAI, the first form
    "sk-proj-" + "aB3dE5gH7jK9mN1p" * 8,
    "sk-proj-" + "aB3dE5gH-7jK9mN1p_qR3tU5wX7zA9" * 4,
    "sk-svcacct-" + "aB3dE5gH7jK9mN1p" * 8,
    "sk-ant-api03-" + "xY2z_4bC6dE8fG0hJ2kL" * 4 + "-4bC6dE8fG0hJAA",
    "sk-or-v1-" + "0f1e2d3c4b5a6978" * 4,
    "sk-" + "0f1e2d3c4b5a6978" * 2,  # DeepSeek
    "xoxb-123456789012-1234567890123-aB3dE5gH7jK9mN1pqR3tU5wX",
    "xoxa-2-123456789012-1234567890123-aB3dE5gH7jK9mN1p",
    "Bearer my-token-7-of-this-service",
)


@pytest.mark.parametrize("text", WORDS)
def test_words_that_only_look_alike_are_unchanged(text: str) -> None:
    assert ALL.text(text) == text


@pytest.mark.parametrize("key", KEYS)
def test_keys_of_each_form_are_masked(key: str) -> None:
    assert ALL.text(f"key={key}; next") == f"key={'*' * len(key)}; next"


@pytest.mark.parametrize("begin", ["sk-", "sk-a-", "xoxb-1", "bearer ", "bearer a", "eyJa", "AKIA", "\\u0073k-"])
def test_a_text_full_of_beginnings_takes_linear_time(begin: str) -> None:
    def seconds(times: int) -> float:
        began = time.perf_counter()
        ALL.text(begin * times, ("secret",))
        return time.perf_counter() - began

    assert min(seconds(40_000) for _ in range(3)) < 10 * min(seconds(10_000) for _ in range(3)) + 0.05


def test_own_patterns_are_masked_and_a_broken_one_is_named() -> None:
    assert Redactor(RedactConfig(known=False, patterns=("E-[0-9]+",))).text("id E-123 x") == "id ***** x"
    with pytest.raises(ConfigError, match=r"redact\.patterns\[0\]"):
        Redactor(RedactConfig(patterns=("(",)))
