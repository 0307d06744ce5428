"""The simulated model replies to the question whether it meant a call: such calls can be tried without weights."""

import asyncio

import pytest

from callwright.conversation import Conversation, FunctionTool, Message, TextPart
from callwright.events import ArgumentsDelta, CallStarted, ContentDelta, Event, Usage
from callwright.turn.model import Model
from callwright.turn.run import run_turn
from callwright.upstreams.simulated.faults import Faults
from callwright.upstreams.simulated.model import SimulatedUpstream

FERRY = FunctionTool(
    "find_ferries",
    "Finds ferries from a harbour.",
    {"type": "object", "properties": {"harbour": {"type": "string"}}, "required": ["harbour"]},
)


async def answered(faults: str, said: str) -> list[Event | Usage]:
    model = Model(
        "m", SimulatedUpstream(Faults.parse(faults)), upstream_model="m", mode="prompt", dialect="json", retries=0
    )
    asked = Conversation(items=(Message("user", (TextPart(said),)),), tools=(FERRY,))
    return [event async for batch in run_turn(model, asked, {}, today="2026-11-23") for event in batch]


@pytest.mark.parametrize("fault", ["prose_behind", "unfenced"])
def test_a_call_that_was_meant_is_run_when_the_model_is_asked(fault: str) -> None:
    events = asyncio.run(answered(f"{fault}:1", "Find ferries from the harbour Ystad."))
    assert [event.name for event in events if isinstance(event, CallStarted)] == ["find_ferries"]
    assert '"Ystad"' in "".join(event.text for event in events if isinstance(event, ArgumentsDelta))
    content = "".join(event.text for event in events if isinstance(event, ContentDelta))
    assert content == content.strip()


def test_a_call_that_was_only_shown_stays_text() -> None:
    events = asyncio.run(answered("teaches:1", "Hello there!"))
    assert not any(isinstance(event, CallStarted) for event in events)
