"""Results of nested runs, kept while another run of the same call waits for a person, and given again after it.

Their tools have run, and do not run once more. What only a program can read of them (`calls`, `problems`) is not kept.
"""

from collections.abc import Mapping
from typing import Any

from callwright.agent.agent import Agent
from callwright.agent.annotations import RunContext
from callwright.agent.events import RunResult
from callwright.agent.hooks import apply
from callwright.agent.nested import CallRuns, Done, NeedsDecision
from callwright.conversation import Conversation
from callwright.openai_format.messages import read_messages, write_messages

__all__ = ["call_runs", "replayed"]


def call_runs(waiting: NeedsDecision) -> CallRuns:
    """The nested runs of a call that waits, as plain data."""
    done = {str(number): _done(asked, result) for number, (asked, result) in waiting.done.items()}
    return CallRuns(waiting.number, waiting.agent, done)


def _done(asked: str, result: RunResult[Any]) -> Done:
    messages = write_messages(Conversation(result.items))
    return Done(asked, result.agent, result.text, result.stop, result.detail, result.turns, result.usage, messages)


async def replayed(agent: Agent[Any], done: Done, hidden: Mapping[str, Any]) -> RunResult[Any]:
    """The result that a run of this agent had. Its output is read again, and its hooks asked about it."""
    answered = agent.member(done.agent)
    items = tuple(read_messages(done.messages))
    output: Any = None
    if done.stop == "completed":
        output = done.text if answered.output is None else answered.output.read(done.text)
        output = await apply(answered.hooks, "after_output", output, RunContext(answered.name, items, hidden))
    return RunResult(
        text=done.text,
        items=items,
        stop=done.stop,  # type: ignore[arg-type]  # it was one
        detail=done.detail,
        usage=done.usage,
        turns=done.turns,
        maybe_output=output,
        agent=done.agent,
    )
