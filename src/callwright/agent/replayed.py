"""Stores results of nested runs while another run of the same call waits for a person, and restores them later.

Their tools and hooks do not run again: an output that a hook changed is stored as JSON. Data for programs only
(`calls`, `problems`, an output without a JSON form) is dropped.
"""

from typing import Any

from callwright.agent.agent import Agent
from callwright.agent.events import RunResult
from callwright.agent.nested import CallRuns, Done, NeedsDecision
from callwright.agent.output import MisfitError
from callwright.agent.results import json_text
from callwright.conversation import Conversation
from callwright.openai_format.messages import read_messages, write_messages
from callwright.tolerant_json.codec import decode


def call_runs(waiting: NeedsDecision) -> CallRuns:
    """The nested runs of a call that waits, as plain data."""
    done = {str(number): _done(asked, result) for number, (asked, result) in waiting.done.items()}
    return CallRuns(waiting.number, waiting.agent, done)


def _done(asked: Agent[Any], result: RunResult[Any]) -> Done:
    output: str | None = None
    if result.stop == "completed" and not _is_told(asked.member(result.agent), result):
        try:
            output = json_text(result.maybe_output)
        except TypeError:
            output = None
    return Done(
        asked.name,
        result.agent,
        result.last_text,
        result.stop,
        result.detail,
        result.turns,
        result.usage,
        write_messages(Conversation(result.items)),
        result.call_count,
        output,
    )


def replayed(agent: Agent[Any], done: Done) -> RunResult[Any]:
    """Rebuild the result of a finished run of this agent."""
    answered = agent.member(done.agent)
    output: Any = None
    if done.stop == "completed":
        output = _read(answered, done.text) if done.output is None else _restore_output(answered, done.output)
    return RunResult(
        last_text=done.text,
        items=tuple(read_messages(done.messages)),
        stop=done.stop,  # type: ignore[arg-type]  # it was written from one
        detail=done.detail,
        usage=done.usage,
        turns=done.turns,
        call_count=done.call_count,
        maybe_output=output,
        agent=done.agent,
    )


def _is_told(answered: Agent[Any], result: RunResult[Any]) -> bool:
    """Whether the output equals the parsed text."""
    try:
        return bool(_read(answered, result.last_text) == result.maybe_output)
    except MisfitError:
        return False


def _read(answered: Agent[Any], text: str) -> Any:
    """Parse the output from a text."""
    return text if answered.output is None else answered.output.read(text)


def _restore_output(answered: Agent[Any], output: str) -> Any:
    """Restore an output that a hook changed: as the output type if it fits, else as plain JSON."""
    plain = decode(output)
    try:
        return plain if answered.output is None else answered.output.value_of(plain)
    except MisfitError:
        return plain
