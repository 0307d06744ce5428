"""The commands that an agent's loop yields, and their results:

AskModel(conversation)   -> Turn, Usage | None    a checked turn of the model
Instruct(agent, items)   -> str                   its instructions, if they are a function
CheckOutput(value, …)    -> value, str | None     the answer, and why it was refused
Approve(calls)           -> set of indices        which of them a person must decide on
RunCalls(calls)          -> [ToolEnded, …]        one for each, in the same order
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from callwright.agent.agent import Agent, Limits
from callwright.agent.answers import AnswerCheck
from callwright.agent.calls import ReadyCall
from callwright.agent.events import RunEvent, Stop, ToolEnded
from callwright.agent.nested import Resumed
from callwright.conversation import Conversation, Item
from callwright.reading.collect import Turn


class AskModel(Struct, frozen=True):
    """Ask the model of an agent. `answer` checks the run's answer. `items` are the conversation's items as the history
    stores them: without the instructions, and with the parts that only a program can read.
    """

    conversation: Conversation
    answer: AnswerCheck | None = None
    agent: Agent[Any] | None = None
    items: tuple[Item, ...] = ()


class Compact(Struct, frozen=True):
    """Have the model of an agent summarize the conversation."""

    conversation: Conversation
    agent: Agent[Any]


class Instruct(Struct, frozen=True):
    """Compute the instructions of an agent. `items` is the conversation so far."""

    agent: Agent[Any]
    items: tuple[Item, ...]


class Approve(Struct, frozen=True):
    """Find the calls that a person must decide on."""

    calls: tuple[ReadyCall, ...]


class RunCalls(Struct, frozen=True):
    """Run calls. `items` is the conversation that they may see, `left` the limits for nested runs, `resumed` the nested
    runs that waited, by call.
    """

    calls: tuple[ReadyCall, ...]
    items: tuple[Item, ...]
    agent: Agent[Any] | None = None
    left: Limits = Limits()
    resumed: Mapping[str, Resumed] = {}


class CheckOutput(Struct, frozen=True):
    """Ask the hooks of an agent about its answer."""

    agent: Agent[Any]
    value: Any
    items: tuple[Item, ...]


class Interrupt(Exception):  # noqa: N818  # not always an error
    """The run ends here. `turn` is the model's answer so far, `ended` the outcomes of the calls."""

    def __init__(
        self,
        stop: Stop,
        detail: str,
        turn: Turn | None = None,
        ended: Sequence[ToolEnded] = (),
        *,
        is_whole: bool = False,
    ) -> None:
        super().__init__(detail)
        self.stop: Stop = stop
        self.detail = detail
        self.turn = turn
        self.ended = ended
        self.is_whole = is_whole


Command: TypeAlias = AskModel | Compact | Instruct | Approve | RunCalls | CheckOutput
Step: TypeAlias = Command | RunEvent
