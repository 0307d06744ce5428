"""Runs that wait for a person: their text is an error that names the call and the way out."""

import warnings

import pytest

from callwright import Agent, ApprovalWarning, RequestError, run_sync, tool
from callwright.agent.tools import unasked


def sail(boat: str) -> str:
    """Sail a boat."""
    return boat


def test_a_run_that_waits_has_no_text_and_names_the_call_and_the_way_out() -> None:
    result = run_sync(Agent(model="simulated", tools=[tool(approve=True)(sail)]), 'Sail the boat "Anna"')
    assert result.stop == "pending"
    for name in ("text", "output"):
        with pytest.raises(RequestError, match=r"'sail' waits for approval.*resume\(.*approve=False.*readOnlyHint"):
            getattr(result, name)
    assert isinstance(result.last_text, str)


def test_an_approval_that_the_program_did_not_ask_for_is_warned_of() -> None:
    agent = Agent(model="simulated", tools=[tool(approve=unasked)(sail)])
    with pytest.warns(ApprovalWarning, match="'sail' waits for approval"):
        result = run_sync(agent, 'Sail the boat "Anna"')
    assert result.pending is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        decided = run_sync(agent, result, decisions={call["id"]: True for call in result.pending["calls"]})
    assert decided.stop == "completed"
    assert decided.text
