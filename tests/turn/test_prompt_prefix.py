"""A prompt begins as the one before it in the same conversation did, so that a server reads only what is new.

The requests have the shapes of real clients: a tool that is found in the middle of the work, results that come out of
order, a system message behind the user's, a list of blocks that is a text the next time.
"""

from collections.abc import Sequence
from itertools import pairwise

import pytest

from callwright.conversation import Conversation
from callwright.dialects.base import dialect_names
from callwright.turn.model import Mode, Model
from callwright.turn.plan import build_generation_request
from callwright.upstreams.base import Upstream
from callwright.upstreams.simulated.model import SimulatedUpstream
from tests.support.following_requests import SHAPES, conversations

TODAY = "2026-11-23"
# Where an answer begins, these write more than an earlier answer shows at its begin: an open or closed thought.
TAIL = 40
# Their format shows the tools behind the last words of the user; nothing before it changes.
MOVES_TOOLS = {"mistral_v3", "mistral_v11"}
# Their makers' encoder or template shows each system message at the begin, whenever it came.
MOVES_SYSTEM = {"deepseek_v4", "hy_v3"}
LATE = ("A file was changed: b.txt.", "These tools can be called now: mail.")


@pytest.fixture(scope="module")
def upstream() -> Upstream:
    return SimulatedUpstream()


def prompts(dialect: str, asked: Sequence[Conversation], upstream: Upstream) -> list[str]:
    model = Model("m", upstream, "m", mode="raw", dialect=dialect)
    requests = [build_generation_request(model, each, {}, TODAY) for each in asked]
    return [request.prompt.text for request in requests if request.prompt is not None]


def shared(before: str, after: str) -> int:
    """How many characters both begin with."""
    return next((n for n, (one, other) in enumerate(zip(before, after, strict=False)) if one != other), len(before))


@pytest.mark.parametrize("dialect", dialect_names())
@pytest.mark.parametrize("shape", SHAPES)
def test_an_earlier_prompt_is_the_begin_of_a_later_one(shape: str, dialect: str, upstream: Upstream) -> None:
    written = prompts(dialect, conversations(shape), upstream)
    assert len(written) == len(SHAPES[shape])
    for before, after in pairwise(written):
        same = shared(before, after)
        if dialect in MOVES_TOOLS:
            assert before[same:].startswith(("[AVAILABLE_TOOLS]", "AVAILABLE_TOOLS]")) or same == len(before)
        elif dialect in MOVES_SYSTEM and any(text in after and text not in before for text in LATE):
            assert after[same:].lstrip().startswith(LATE)
        else:
            assert len(before) - same <= TAIL, f"{before[same:][:80]!r}\n{after[same:][:80]!r}"


@pytest.mark.parametrize("mode", ["native", "prompt"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_server_with_a_template_of_its_own_gets_the_same_messages_and_more(
    shape: str, mode: Mode, upstream: Upstream
) -> None:
    model = Model("m", upstream, "m", mode=mode, dialect="json" if mode == "prompt" else None)
    requests = [build_generation_request(model, each, {}, TODAY) for each in conversations(shape)]
    for before, after in pairwise(requests):
        assert before.messages is not None
        assert after.messages is not None
        assert after.messages[: len(before.messages)] == before.messages
        tools = before.tools or []
        assert (after.tools or [])[: len(tools)] == tools
