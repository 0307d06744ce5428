"""Token counts that contradict each other: a part is at most its whole."""

from typing import Any

import pytest

from callwright.gateway.config.config import ModelConfig
from tests.conftest import Served
from tests.support.http_client import CHAT, request
from tests.support.messages_client import MESSAGES
from tests.support.outputs import QUESTION
from tests.support.responses_client import RESPONSES
from tests.support.servers import ModelServer, whole

# The counts of the server (prompt, cached, completion, reasoning), and those of the answer.
COUNTS = {
    "a part": ((100, 40, 20, 5), (100, 40, 20, 5)),
    "all of it": ((100, 100, 20, 20), (100, 100, 20, 20)),
    "more than all": ((100, 500, 20, 21), (100, 100, 20, 20)),
    "of nothing": ((0, 5, 0, 5), (0, 0, 0, 0)),
}
BODIES: dict[str, dict[str, Any]] = {
    CHAT: {"messages": [QUESTION]},
    RESPONSES: {"input": "hi"},
    MESSAGES: {"messages": [QUESTION], "max_tokens": 50},
}


def counts_of(path: str, usage: dict[str, Any]) -> tuple[int, ...]:
    """The counts in an answer: prompt, cached, completion, reasoning."""
    if path == MESSAGES:
        cached = usage["cache_read_input_tokens"]
        reasoning = usage["output_tokens_details"]["thinking_tokens"]
        return usage["input_tokens"] + cached, cached, usage["output_tokens"], reasoning
    first, second = ("prompt", "completion") if path == CHAT else ("input", "output")
    return (
        usage[f"{first}_tokens"],
        usage[f"{first}_tokens_details"]["cached_tokens"],
        usage[f"{second}_tokens"],
        usage[f"{second}_tokens_details"]["reasoning_tokens"],
    )


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize(("sent", "answered"), COUNTS.values(), ids=COUNTS)
def test_a_part_is_no_more_than_the_whole(
    serve: Served, model: ModelServer, sent: tuple[int, ...], answered: tuple[int, ...], path: str
) -> None:
    prompt, cached, completion, reasoning = sent
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }
    message = {"role": "assistant", "content": "Hi"}
    answer = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}
    model.plays(whole(answer))
    url = serve(ModelConfig(name="m", upstream=model.url))
    reply = request(url + path, {"model": "m", **BODIES[path]})
    assert counts_of(path, reply.json["usage"]) == answered
