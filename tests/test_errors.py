"""Which known name a misspelled one is near to."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from callwright.errors import did_you_mean, nearest
from callwright.gateway.config.config import ModelConfig, ServerConfig

MODEL = ModelConfig.__struct_fields__
SERVER = ServerConfig.__struct_fields__


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("retrys", MODEL, "retries"),
        ("retry", MODEL, "retries"),
        ("retrie", MODEL, "retries"),
        ("retry-s", MODEL, "retry_s"),
        ("modes", MODEL, "mode"),
        ("header", MODEL, "headers"),
        ("alias", MODEL, "aliases"),
        ("temprature", ("temperature", "top_p"), "temperature"),
        ("api_key", MODEL, "api_key_env"),
        ("context", MODEL, "context_length"),
        ("queue", MODEL, "queue_s"),
        ("requests_max", MODEL, "max_requests"),
        ("body", SERVER, "max_body_bytes"),
        ("timeout", MODEL, None),  # of which there are two
        ("nope", ("openai",), None),
        ("", MODEL, None),
    ],
)
def test_a_misspelled_name_is_near_to_the_one_that_was_meant(word: str, known: tuple[str, ...], meant: str) -> None:
    assert nearest(word, known) == meant
    assert did_you_mean(word, known) == (f" Did you mean {meant!r}?" if meant else "")


@given(st.sampled_from(MODEL), st.data())
def test_a_plural_or_another_order_of_words_is_the_same_name(name: str, data: st.DataObject) -> None:
    words = [word for word in name.split("_") if word]
    assume(all(len(word) > 2 for word in words))
    shuffled = data.draw(st.permutations(words))
    plural = [
        f"{word[:-1]}ies" if word.endswith("y") else word if word.endswith("s") else f"{word}s" for word in shuffled
    ]
    assert nearest("_".join(data.draw(st.sampled_from((shuffled, plural)))), MODEL) == name
