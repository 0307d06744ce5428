"""Results of nested runs, kept while another run of the same call waits for a person, and given again after it.

Their tools have run, and do not run once more; neither do hooks, which have judged the answer: what one made of it is
kept as JSON. What only a program can read of them (`calls`, `problems`, an output without a form in JSON) is not kept.
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
    """The result that a run of this agent had."""
    answered = agent.member(done.agent)
    output: Any = None
    if done.stop == "completed":
        output = _read(answered, done.text) if done.output is None else _made(answered, done.output)
    return RunResult(
        last_text=done.text,
        items=tuple(read_messages(done.messages)),
        stop=done.stop,  # type: ignore[arg-type]  # it was one
        detail=done.detail,
        usage=done.usage,
        turns=done.turns,
        call_count=done.call_count,
        maybe_output=output,
        agent=done.agent,
    )


def _is_told(answered: Agent[Any], result: RunResult[Any]) -> bool:
    """Whether the output is what the text says."""
    try:
        return bool(_read(answered, result.last_text) == result.maybe_output)
    except MisfitError:
        return False


def _read(answered: Agent[Any], text: str) -> Any:
    """The output that a text says."""
    return text if answered.output is None else answered.output.read(text)


def _made(answered: Agent[Any], output: str) -> Any:
    """The output that a hook made: of the type of the answers if it fits that, else as plain JSON."""
    plain = decode(output)
    try:
        return plain if answered.output is None else answered.output.value_of(plain)
    except MisfitError:
        return plain
