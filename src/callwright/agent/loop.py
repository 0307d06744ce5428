"""The loop of an agent as a generator: no I/O, no clock, no async.

It yields the commands of `callwright.agent.commands`, whose results it gets by `.send()`, and events, which have none.
`Interrupt`, thrown in at any point, ends it: each open call gets an output, so that the conversation can continue. The
last event is always `RunEnded`.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from callwright.agent.agent import Agent, Limits
from callwright.agent.answers import AnswerCheck
from callwright.agent.batches import Batches, Ended
from callwright.agent.budget import Budget
from callwright.agent.commands import AskModel, CheckOutput, Compact, Instruct, Interrupt, Step
from callwright.agent.compaction import Compaction
from callwright.agent.events import (
    Compacted,
    HandedOver,
    RunEnded,
    RunResult,
    Stop,
    ToolEnded,
    TurnEnded,
)
from callwright.agent.output import FINAL_TOOL
from callwright.agent.state import State, open_calls
from callwright.calls.custom_tools import input_arguments
from callwright.calls.history import as_readable
from callwright.calls.tool_search import SEARCH_TOOL
from callwright.conversation import (
    Call,
    Conversation,
    Message,
    NamedTool,
    Reasoning,
    TextPart,
)
from callwright.reading.collect import Turn
from callwright.tolerant_json.codec import decode

_Steps: TypeAlias = Generator[Step, Any, Ended | None]

_CUT: Final = "\n\n[interrupted]"

_NUDGE: Final = "Your last answer was empty or cut off. Answer in text, or make the call again."
_MAX_NUDGES: Final = 3
# Why the run ends with a turn that was stopped before the model's own end, if it has no call.
_CUT_OFF: Final[Mapping[str | None, Ended]] = {
    "length": ("tokens", "the model was cut off at its limit of tokens"),
    "content_filter": ("failed", "a content filter stopped the model"),
}


class Loop:
    """One run, or the rest of one. `decisions` are for the calls that wait, by id; None: the run is a new one. Without
    `compaction` the conversation is never shortened. `limits` default to the first agent's. `seconds` returns the run's
    duration since it started or was resumed.
    """

    def __init__(
        self,
        agent: Agent[Any],
        state: State,
        decisions: Mapping[str, Any] | None = None,
        answer_of: Callable[[Agent[Any]], AnswerCheck] = lambda _: AnswerCheck(None, "text", 0),
        compaction: Compaction | None = None,
        limits: Limits | None = None,
        seconds: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._compaction = compaction
        self._seconds = seconds
        self._state = state
        self._counts = state.counts
        self._budget = Budget(limits or agent.limits, state.counts)
        self._batches = Batches(agent, state, self._budget, decisions)
        self._is_resumed = decisions is not None
        self._answer_of = answer_of
        self._nudges = 0
        self._seen: int  # the number of items already scanned for tool searches
        self._take_over(agent.member(state.counts.agent))

    def _take_over(self, agent: Agent[Any]) -> None:
        """Make this agent the current one. Instructions from a function are computed before its first request."""
        self._agent = agent
        self._instructions: str | None = agent.instructions if isinstance(agent.instructions, str) else None
        self._answer_check = self._answer_of(agent)
        self._found: dict[str, None] = {}  # the deferred tools that the model may call, in the order found
        self._seen = 0
        self._allowed = agent.allowed_tools
        if isinstance(agent.tool_choice, NamedTool):
            self._find([agent.tool_choice.name])  # a named tool needs no search
        if self._allowed is not None:
            more = (*agent.handoffs, *([SEARCH_TOOL.name] if SEARCH_TOOL.name in agent.tools else []))
            self._allowed = (*self._allowed, *(name for name in more if name not in self._allowed))

    def steps(self) -> Generator[Step, Any, None]:
        """Run it; see the module."""
        try:
            stop, detail = yield from self._turns()
        except Interrupt as interrupt:
            self._interrupted(interrupt)
            stop, detail = interrupt.stop, interrupt.detail
        yield RunEnded(self._result(stop, detail))

    def _result(self, stop: Stop, detail: str) -> RunResult:
        state = self._state
        self._counts.seconds += self._seconds()
        waiting = [{"id": one.id, "name": one.name, "arguments": one.arguments} for one in self._batches.waiting]
        return RunResult(
            last_text=state.text,
            items=tuple(state.items),
            stop=stop,
            detail=detail,
            pending=state.to_pending(waiting) if stop == "pending" else None,
            usage=self._counts.usage,
            turns=self._counts.turns,
            problems=tuple(state.problems),
            calls=tuple(self._batches.ended),
            call_count=self._counts.calls,
            maybe_output=self._answer_check.value if stop == "completed" else None,
            agent=self._agent.name,
        )

    # --- turns ---

    def _turns(self) -> Generator[Step, Any, Ended]:
        ended: Ended | None = None
        if self._is_resumed:
            ended = yield from self._batch(list(enumerate(open_calls(self._state.items))))
        while ended is None:
            ended = self._budget.used_up()
            if ended is None:
                turn = yield from self._ask()
                ended = yield from self._read(turn)
        return ended

    def _ask(self) -> Generator[Step, Any, Turn]:
        """Ask the model for its next turn, and count it."""
        if self._instructions is None:
            self._instructions = yield Instruct(self._agent, tuple(self._state.items))
        conversation = yield from self._fitting(self._conversation())
        turn: Turn
        turn, usage = yield AskModel(conversation, self._answer_check, self._agent, tuple(self._state.items))
        if self._compaction is not None:
            self._compaction.note(len(self._state.items), usage)
        self._budget.add_turn(usage)
        self._state.problems += turn.problems
        yield TurnEnded(self._counts.turns, turn.content or "", len(_complete(turn)), turn.finish_reason, usage)
        return turn

    def _read(self, turn: Turn) -> _Steps:
        """Run the calls of a turn, or take its answer. Returns why the run ends, or None to ask again."""
        check, calls, text = self._answer_check, _complete(turn), turn.content or ""
        is_cut_off = turn.finish_reason in _CUT_OFF
        if not calls and not is_cut_off and (turn.calls or not text.strip()):
            return self._nudge()
        answer = next((call for _, call in calls if check.by_call and call.name == FINAL_TOOL), None)
        if answer is not None:
            others = [(index, call) for index, call in calls if call.name != FINAL_TOOL]
            return (yield from self._take_final(turn, answer, others))
        if not calls and not is_cut_off and not (check.take_text(text) and (yield from self._agreed(text))):
            return self._failed_answer()
        return (yield from self._run_calls(turn, calls))

    def _nudge(self) -> Ended | None:
        """Ask the model again after an empty or incomplete answer."""
        self._nudges += 1
        if self._nudges > _MAX_NUDGES:
            return "failed", "the model made no call and said nothing, however often it was asked"
        return None

    def _take_final(self, turn: Turn, answer: Call, others: Sequence[tuple[int, Call]]) -> _Steps:
        """Take the call that is the answer. If it is refused, the `others` of its turn are run."""
        if self._answer_check.take_call(answer) and (yield from self._agreed(answer.arguments)):
            self._batches.answer(self._take(turn, others), [])
            self._state.items.append(Message("assistant", (TextPart(answer.arguments),)))
            self._state.text = answer.arguments
            return "completed", ""
        ended = self._failed_answer()
        if ended or not others:
            return ended
        return (yield from self._run_calls(turn, others))

    def _failed_answer(self) -> Ended | None:
        """Why the model is asked for no other answer than the refused one, if it is not."""
        why = self._answer_check.maybe_end
        return ("failed", why) if why else None

    def _run_calls(self, turn: Turn, calls: Sequence[tuple[int, Call]]) -> _Steps:
        """Run the calls of a turn; the run ends with a turn that has none."""
        taken = self._take(turn, calls)
        if not taken:
            return _CUT_OFF.get(turn.finish_reason, ("completed", ""))
        self._counts.released = True
        return (yield from self._batch(taken))

    def _fitting(self, conversation: Conversation) -> Generator[Step, Any, Conversation]:
        """The conversation, compacted if it is too long."""
        compaction, state = self._compaction, self._state
        if compaction is None or not compaction.is_due(conversation, state.items):
            return conversation
        summary, usage = yield Compact(conversation, self._agent)
        self._budget.add(usage)
        before = len(state.items)
        state.items = compaction.shortened(state.items, summary)
        self._seen = 0
        yield Compacted(summary, before + 1 - len(state.items))
        return self._conversation()

    def _agreed(self, said: str) -> Generator[Step, Any, bool]:
        """Whether the agent's hooks accept the answer; `said` is its text."""
        check = self._answer_check
        if not any(hooks.after_output for hooks in self._agent.hooks):
            return True
        check.value, wrong = yield CheckOutput(self._agent, check.value, tuple(self._state.items))
        if wrong is not None:
            check.refuse(wrong, said)
        return wrong is None

    def _conversation(self) -> Conversation:
        agent = self._agent
        agent.take_new_tools()
        items = [*self._state.items]
        for item in items[self._seen :]:
            if isinstance(item, Call) and item.name == SEARCH_TOOL.name in agent.tools:
                call = as_readable(item)
                if isinstance(call, Call):
                    self._find(agent.search(_query(call.arguments)))
        self._seen = len(items)
        told = "\n\n".join(filter(None, (self._instructions, self._answer_check.words)))
        if told:
            items.insert(0, Message("system", (TextPart(told),)))
        if self._nudges:
            items.append(Message("user", (TextPart(_NUDGE),)))
        forced = agent.tool_choice not in ("auto", "none") and not self._counts.released
        asked = Conversation(
            items=tuple(items),
            tools=agent.definitions(self._found),
            tool_choice="none" if agent.tool_choice == "none" else agent.tool_choice if forced else "auto",
            allowed_tools=self._allowed,
            parallel_tool_calls=agent.parallel_tool_calls,
        )
        return self._answer_check.shaped(asked, may_end=not forced)

    def _find(self, names: Iterable[str]) -> None:
        """Show these deferred tools from now on, after those already shown."""
        self._found |= {name: None for name in names if self._agent.tools[name].options.deferred}

    def _take(self, turn: Turn, calls: Sequence[tuple[int, Call]]) -> list[tuple[int, Call]]:
        """Append a turn to the conversation. Returns its calls, each with a unique id."""
        self._nudges = 0
        items = self._state.items
        self._state.text = turn.content or ""
        if turn.reasoning and (turn.content or calls):
            items.append(Reasoning(turn.reasoning))
        if turn.content:
            items.append(Message("assistant", (TextPart(turn.content),)))
        taken: list[tuple[int, Call]] = []
        for index, call in calls:
            arguments = input_arguments(call.arguments) if call.kind == "custom" else call.arguments
            mine = Call(call.name, arguments, self._state.new_id(call.id))
            items.append(mine)
            taken.append((index, mine))
        return taken

    def _batch(self, calls: Sequence[tuple[int, Call]]) -> _Steps:
        outcome = yield from self._batches.run(self._agent, calls)
        if isinstance(outcome, tuple):
            return outcome
        yield from self._hand_over(outcome)
        return None

    def _hand_over(self, answered: Sequence[ToolEnded]) -> Generator[Step, Any, None]:
        """Give the conversation to the agent that a call handed it to."""
        before = self._agent
        target = next((one.name for one in answered if one.status == "ok" and one.name in before.handoffs), None)
        if target is not None:
            self._take_over(before.handoffs[target])
            self._counts.agent, self._counts.released = self._agent.name, False
            yield HandedOver(before.name, self._agent.name)

    # --- the end, before its time ---

    def _interrupted(self, interrupt: Interrupt) -> None:
        """Leave a conversation in which each call has its output."""
        state = self._state
        turn = interrupt.turn
        if turn is not None:
            content = turn.content + _CUT if turn.content and not interrupt.is_whole else turn.content
            self._take(msgspec.structs.replace(turn, content=content), _complete(turn))
            state.text = turn.content or ""
            state.problems += turn.problems
            self._counts.turns += 1
        self._batches.close(interrupt)


def _complete(turn: Turn) -> list[tuple[int, Call]]:
    """The complete calls of a turn, each with its index."""
    return [(index, call) for index, call in enumerate(turn.calls) if call.complete]


def _query(arguments: str) -> str:
    """The query of a search; its arguments are those of a readable call."""
    return str(decode(arguments).get("query", ""))
