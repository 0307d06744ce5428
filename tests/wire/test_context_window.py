"""What servers say of a request that is too long, read as numbers."""

import pytest

from callwright.wire.context_window import read_overflow

# The words, the window, what was asked for in all, the prompt alone.
SAID: list[tuple[str, tuple[int, int | None, int | None] | None]] = [
    (
        (
            "This model's maximum context length is 8192 tokens. However, you requested 9300 tokens (1300 in the "
            "messages, 8000 in the completion). Please reduce the length of the messages or completion."
        ),
        (8192, 9300, 1300),
    ),
    (
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is "
            "8192 tokens and your request has 1000 input tokens (32000 > 8192 - 1000)."
        ),
        (8192, None, 1000),
    ),
    (
        (
            "The decoder prompt (length 9001) is longer than the maximum model length of 8192. Make sure that "
            "`max_model_len` is no smaller than the number of text tokens."
        ),
        None,
    ),
    (
        (
            "This model's maximum context length is 8192 tokens. However, your request has 9001 input tokens. "
            "Please reduce the length of the input messages."
        ),
        (8192, 9001, 9001),
    ),
    (
        (
            "Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a "
            "total of 33000 tokens: 1000 tokens from the input messages and 32000 tokens for the completion."
        ),
        (8192, 33000, 1000),
    ),
    ("The input (9001 tokens) is longer than the model's context length (8192 tokens).", (8192, 9001, 9001)),
    ("request (9001 tokens) exceeds the available context size (8192 tokens), try increasing it", (8192, 9001, 9001)),
    ("the request exceeds the available context size. try increasing the context size or enable context shift", None),
    (
        "This model's maximum context length is 128,000 tokens. However, your messages resulted in 131,500 tokens.",
        (128000, 131500, None),
    ),
    ("prompt is too long: 40000 tokens > 32768 maximum", (32768, 40000, None)),
    (
        "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 100 `max_new_tokens`",
        (4096, 5000, 5000),
    ),
    ("`inputs` must have less than 4096 tokens. Given: 5000", (4096, 5000, 5000)),
    ("there is no such model", None),
]


@pytest.mark.parametrize(("words", "numbers"), SAID, ids=range(len(SAID)))
def test_the_numbers_are_found(words: str, numbers: tuple[int, int | None, int | None] | None) -> None:
    found = read_overflow(words)
    assert (found and (found.window, found.total, found.prompt)) == numbers


@pytest.mark.parametrize(("words", "numbers"), SAID, ids=range(len(SAID)))
def test_there_is_room_only_where_the_prompt_fits(
    words: str, numbers: tuple[int, int | None, int | None] | None
) -> None:
    found = read_overflow(words)
    room = found.room() if found is not None else None
    assert room is None or (numbers is not None and numbers[2] is not None and room == numbers[0] - numbers[2] > 0)
