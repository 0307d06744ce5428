"""A prompt that ends in the begin of its answer, in every dialect."""

import pytest

from callwright.api import Parser
from callwright.conversation import Conversation, Message, TextPart
from callwright.dialects.base import dialect_names, get_dialect
from callwright.events import ContentDelta
from callwright.turn.model import Model
from callwright.turn.plan import build_generation_request
from callwright.upstreams.simulated.model import SimulatedUpstream

BEGUN = "The answer is ("


@pytest.mark.parametrize("dialect", dialect_names())
def test_what_follows_is_read_as_more_of_the_text(dialect: str) -> None:
    asked = Conversation((Message("user", (TextPart("A or B?"),)),), prefill=BEGUN)
    model = Model("m", SimulatedUpstream(), "m", mode="raw", dialect=dialect)
    prompt = build_generation_request(model, asked, {}, "2026-11-23").prompt
    assert prompt is not None
    assert prompt.text.endswith(BEGUN)
    parser = Parser(dialect=get_dialect(dialect), start=prompt.start)
    events = [*parser.feed(prompt.prefill), *parser.feed("B) for sure"), *parser.finish()]
    said = "".join(event.text for event in events if isinstance(event, ContentDelta))
    assert said.strip() == "The answer is (B) for sure"
