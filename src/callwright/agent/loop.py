"""The loop of an agent as a generator: no I/O, no clock, no async.

It yields the commands of `callwright.agent.commands` and gets their results by `.send()`, and it yields events, which
get nothing. `Interrupt`, thrown in wherever it stands, ends it: each call that is open gets its output, so that the
conversation can go on. The last event is `RunEnded`, always.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from callwright.agent.agent import Agent, Limits
from callwright.agent.answers import AnswerCheck
from callwright.agent.calls import ReadyCall, call_key, prepared
from callwright.agent.commands import Approve, AskModel, CheckOutput, Compact, Instruct, Interrupt, RunCalls, Step
from callwright.agent.compaction import Compaction
from callwright.agent.decisions import changed, check_decisions, decided, nested_id, own_and_nested
from callwright.agent.events import (
    ApprovalNeeded,
    CallReady,
    Compacted,
    HandedOver,
    Retried,
    RunEnded,
    RunResult,
    Stop,
    ToolEnded,
    TurnEnded,
)
from callwright.agent.nested import Resumed
from callwright.agent.output import FINAL_TOOL
from callwright.agent.replayed import call_runs
from callwright.agent.state import NOT_RUN, State, open_calls, with_outputs
from callwright.calls.custom_tools import input_arguments
from callwright.calls.history import as_readable
from callwright.calls.tool_search import SEARCH_TOOL
from callwright.collector import Turn
from callwright.conversation import (
    Call,
    CallOutput,
    Conversation,
    MediaPart,
    Message,
    NamedTool,
    Reasoning,
    TextPart,
)
from callwright.events import Usage
from callwright.tolerant_json.codec import decode

__all__ = ["Loop"]

_Steps: TypeAlias = Generator[Step, Any, tuple[Stop, str] | None]

_CUT: Final = "\n\n[interrupted]"

_NUDGE: Final = "Your last answer was empty or cut off. Answer in text, or make the call again."
_MAX_NUDGES: Final = 3
_ONE_HANDOFF: Final = f"{NOT_RUN} A call before it hands the conversation over, which one agent can have."


class Loop:
    """One run, or the rest of one. `decisions` are for the calls it waits on, by id; None = it is no such run. Without
    a `compaction` the conversation stays as long as it is. `limits` are the first agent's if there are no others.
    `seconds` tells for how long it runs, not counting what was before a person decided.
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
        self._limits = limits or agent.limits
        self._seconds = seconds
        self._state = state
        self._counts = state.counts
        self._decisions: Mapping[str, Any] | None = None
        self._resumed: Mapping[str, Resumed] = {}
        if decisions is not None:
            check_decisions(agent, state, decisions)
            self._decisions, nested = own_and_nested(decisions, state.nested)
            self._resumed = state.resumed(nested)
        self._answer_of = answer_of
        self._ended: list[ToolEnded] = []
        self._early: dict[str, ToolEnded] = {}  # answers to open calls, by id
        self._waiting: list[CallReady] = []
        self._notes: dict[str, str] = {}  # what a person changed in the calls that run, by id
        self._nudges = 0
        self._seen: int  # in how many of the items searches for tools were looked for
        self._first = agent
        self._take_over(agent.member(state.counts.agent))

    def _take_over(self, agent: Agent[Any]) -> None:
        """The agent has the conversation now. What it is told is known when it is asked."""
        self._agent = agent
        self._instructions: str | None = agent.instructions if isinstance(agent.instructions, str) else None
        self._answer_check = self._answer_of(agent)
        self._found: dict[str, None] = {}  # the deferred tools that the model may call, in the order of their finding
        self._seen = 0
        self._allowed = agent.allowed_tools
        if isinstance(agent.tool_choice, NamedTool):
            self._find([agent.tool_choice.name])  # nobody has to search for what is named
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
        waiting = [{"id": one.id, "name": one.name, "arguments": one.arguments} for one in self._waiting]
        return RunResult(
            text=state.text,
            items=tuple(state.items),
            stop=stop,
            detail=detail,
            pending=state.to_pending(waiting) if stop == "pending" else None,
            usage=self._counts.usage,
            turns=self._counts.turns,
            problems=tuple(state.problems),
            calls=tuple(self._ended),
            call_count=self._counts.calls,
            maybe_output=self._answer_check.value if stop == "completed" else None,
            agent=self._agent.name,
        )

    # --- turns ---

    def _turns(self) -> Generator[Step, Any, tuple[Stop, str]]:
        if self._decisions is not None:
            ended = yield from self._batch(list(enumerate(open_calls(self._state.items))))
            if ended:
                return ended
        while True:
            if self._counts.turns >= self._limits.turns:
                return "turns", f"{self._limits.turns} turns were not enough"
            if self._limits.tokens is not None and _tokens(self._counts.usage) >= self._limits.tokens:
                return "tokens", f"{_tokens(self._counts.usage)} tokens were used of {self._limits.tokens}"
            if self._instructions is None:
                self._instructions = yield Instruct(self._agent, tuple(self._state.items))
            check = self._answer_check
            conversation = yield from self._fitting(self._conversation())
            turn, usage = yield AskModel(conversation, check, self._agent, tuple(self._state.items))
            if self._compaction is not None:
                self._compaction.note(len(self._state.items), usage)
            self._counts.turns += 1
            self._counts.usage = self._counts.usage if usage is None else self._counts.usage.plus(usage)
            self._state.problems += turn.problems
            calls = [(index, call) for index, call in enumerate(turn.calls) if call.complete]
            yield TurnEnded(self._counts.turns, turn.content or "", len(calls), turn.finish_reason, usage)
            is_cut = len(calls) < len(turn.calls)
            is_over = turn.finish_reason in ("length", "content_filter")
            if not calls and not is_over and (is_cut or not (turn.content or "").strip()):
                self._nudges += 1
                if self._nudges > _MAX_NUDGES:
                    return "failed", "the model made no call and said nothing, however often it was asked"
                continue
            answers = [call for _, call in calls if check.by_call and call.name == FINAL_TOOL]
            if answers:
                calls = [pair for pair in calls if pair[1] not in answers]
            elif not calls and not is_over:
                is_taken = check.take_text(turn.content or "") and (yield from self._agreed(turn.content or ""))
                if not is_taken:
                    if why := check.maybe_end:
                        return "failed", why
                    continue
            if answers and check.take_call(answers[0]) and (yield from self._agreed(answers[0].arguments)):
                self._answer(self._take(turn, calls), [])
                self._state.items.append(Message("assistant", (TextPart(answers[0].arguments),)))
                self._state.text = answers[0].arguments
                return "completed", ""
            if answers and (why := check.maybe_end):
                return "failed", why
            if answers and not calls:
                continue
            calls = self._take(turn, calls)
            if not calls:
                if turn.finish_reason == "length":
                    return "tokens", "the model was cut off at its limit of tokens"
                if turn.finish_reason == "content_filter":
                    return "failed", "a content filter stopped the model"
                return "completed", ""
            self._counts.released = True
            ended = yield from self._batch(calls)
            if ended:
                return ended

    def _fitting(self, conversation: Conversation) -> Generator[Step, Any, Conversation]:
        """The conversation, compacted if it is too long."""
        compaction, state = self._compaction, self._state
        if compaction is None or not compaction.is_due(conversation, state.items):
            return conversation
        summary, usage = yield Compact(conversation, self._agent)
        self._counts.usage = self._counts.usage if usage is None else self._counts.usage.plus(usage)
        before = len(state.items)
        state.items = compaction.shortened(state.items, summary)
        self._seen = 0
        yield Compacted(summary, before + 1 - len(state.items))
        return self._conversation()

    def _agreed(self, said: str) -> Generator[Step, Any, bool]:
        """Whether the hooks of the agent agree with the answer, which was `said` so."""
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
        """Show these tools from now on, behind those that are there."""
        self._found |= {name: None for name in names if self._agent.tools[name].options.deferred}

    def _take(self, turn: Turn, calls: Sequence[tuple[int, Call]]) -> list[tuple[int, Call]]:
        """Put a turn into the conversation; answers the calls as they stand there, each with an id of its own."""
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

    # --- the calls of a turn ---

    def _batch(self, calls: Sequence[tuple[int, Call]]) -> _Steps:
        ready: list[ReadyCall] = []
        state = self._state
        for index, call in calls:
            if call.id in state.answered:
                status, text = state.answered[call.id]
                media = tuple(map(MediaPart, state.media.get(call.id, ())))
                ended_before = ToolEnded(index, call.id, call.name, status, text, media=media)  # type: ignore[arg-type]
                self._early[call.id] = ended_before
                continue
            found = prepared(index, call, self._agent.tools)
            if isinstance(found, ReadyCall) and call.id in state.changed:
                found = changed(found, state.changed[call.id])
            hands_over = call.name in self._agent.handoffs
            if hands_over and any(one.ready.name in self._agent.handoffs for one in ready):
                self._early[call.id] = ToolEnded(index, call.id, call.name, "not_run", _ONE_HANDOFF)
                yield self._early[call.id]
            elif isinstance(found, ReadyCall):
                attempt = self._counts.retries.get(call.name, 0)
                ready.append(msgspec.structs.replace(found, turn=self._counts.turns, attempt=attempt))
                yield found.ready
            else:
                text = f"Error: this call was not run. {found} Make it again, corrected."
                self._early[call.id] = ToolEnded(index, call.id, call.name, "retry", text)
                yield Retried(index, call.id, call.name, found)
        if ended := self._refused(ready):
            self._answer(calls, [])
            return ended
        waiting: set[int] = (yield Approve(tuple(ready))) if ready else set()
        waiting = {
            one.ready.index
            for one in ready
            if (one.ready.index in waiting or one.ready.id in self._state.asked)
            and not self._may_always(one)
            and one.ready.id not in state.nested
        }
        if waiting and self._decisions is None:
            self._waiting = [one.ready for one in ready if one.ready.index in waiting]
            for wanted in self._waiting:
                yield ApprovalNeeded(wanted.index, wanted.id, wanted.name, wanted.arguments)
            return "pending", f"{len(self._waiting)} calls wait for approval"
        approved: list[ReadyCall] = []
        for one in ready:
            given = (self._decisions or {}).get(one.ready.id) if one.ready.index in waiting else True
            if isinstance(given, Mapping) and given.get("always"):
                self._counts.always.append((self._agent.name, one.ready.name))
            made = decided(one, given)
            if isinstance(made, ReadyCall):
                approved.append(made)
            else:
                self._early[made.id] = made
                yield made
        self._decisions, state.asked = None, frozenset()
        resumed, self._resumed = self._resumed, {}
        state.nested, state.runs, state.answered, state.media, state.changed = {}, {}, {}, {}, {}
        self._counts.calls += sum(one.ready.id not in resumed for one in approved)  # those were counted
        outcomes: Sequence[ToolEnded] = ()
        if approved:
            self._notes = {one.ready.id: one.note for one in approved if one.note}
            outcomes = yield RunCalls(tuple(approved), tuple(state.items), self._agent, self._left(), resumed)
            outcomes = self._noted(outcomes)
            self._spend(outcomes)
        if waits := [one for one in outcomes if one.status == "waiting"]:
            kept = {one.ready.id: dict(one.ready.arguments) for one in approved if one.note}
            state.changed = {one.id: kept[one.id] for one in waits if one.id in kept}
            return (yield from self._wait_within(waits, outcomes))
        answered = self._answer(calls, outcomes)
        if ended := self._count(answered, approved):
            return ended
        target = next((one.name for one in answered if one.status == "ok" and one.name in self._agent.handoffs), None)
        if target is not None:
            before, now = self._agent, self._agent.handoffs[target]
            self._take_over(now)
            self._counts.agent, self._counts.released = now.name, False
            yield HandedOver(before.name, now.name)
        return None

    def _wait_within(self, waits: Sequence[ToolEnded], outcomes: Sequence[ToolEnded]) -> _Steps:
        """The run waits for what a person must decide in runs of other agents. What else came of the turn is kept."""
        state = self._state
        state.nested = {one.id: one.app.pending for one in waits}
        state.runs = {one.id: call_runs(one.app) for one in waits}
        done = [one for one in (*self._early.values(), *outcomes) if one not in waits]
        state.answered = {one.id: (one.status, one.text) for one in done}
        state.media = {one.id: [part.value for part in one.media] for one in done if one.media}
        self._ended += done
        self._early = {}
        self._waiting = []
        for one in waits:
            for call in one.app.pending["calls"]:
                wanted = CallReady(one.index, nested_id(one.id, call["id"]), call["name"], call["arguments"])
                self._waiting.append(wanted)
                yield ApprovalNeeded(wanted.index, wanted.id, wanted.name, wanted.arguments)
        return "pending", f"{len(self._waiting)} calls wait for approval"

    def _may_always(self, call: ReadyCall) -> bool:
        """Whether a person said so of this very tool: another agent may have one of the same name."""
        members = ((self._first.reachable(agent), name) for agent, name in self._counts.always)
        return any(agent is not None and agent.tools.get(name) is call.tool for agent, name in members)

    def _noted(self, outcomes: Sequence[ToolEnded]) -> list[ToolEnded]:
        """With what the model is told of changed arguments."""
        notes, self._notes = self._notes, {}
        return [msgspec.structs.replace(one, text=notes.get(one.id, "") + one.text) for one in outcomes]

    def _left(self) -> Limits:
        """What a nested run may use."""
        limits, counts = self._limits, self._counts
        used = {"turns": counts.turns, "calls": counts.calls, "tokens": _tokens(counts.usage)}
        less = {name: getattr(limits, name) - used[name] for name in used if getattr(limits, name) is not None}
        return msgspec.structs.replace(limits, **less)

    def _spend(self, outcomes: Sequence[ToolEnded]) -> None:
        """Count what nested runs used."""
        counts = self._counts
        for one in outcomes:
            counts.usage = counts.usage.plus(one.spent.usage)
            counts.turns += one.spent.turns
            counts.calls += one.spent.calls

    def _refused(self, ready: Sequence[ReadyCall]) -> tuple[Stop, str] | None:
        """Why none of these may run."""
        limits = self._limits
        more = sum(one.ready.id not in self._resumed for one in ready)
        if limits.calls is not None and self._counts.calls + more > limits.calls:
            return "calls", f"{self._counts.calls} calls were made, and {more} more would exceed {limits.calls}"
        for one in ready:
            seen = self._counts.repeats.get(call_key(one.ready), 0)
            if limits.repeats is not None and seen + 1 >= limits.repeats and not one.tool.options.repeatable:
                return "repeated", f"{one.ready.name!r} was called with the same arguments {limits.repeats} times"
        return None

    def _answer(self, calls: Sequence[tuple[int, Call]], outcomes: Sequence[ToolEnded]) -> list[ToolEnded]:
        """Put the outputs of calls into the conversation, in their order."""
        by_id = {**self._early, **{one.id: one for one in outcomes}}
        self._early = {}
        answered = [
            by_id.get(call.id) or ToolEnded(index, call.id, call.name, "not_run", NOT_RUN) for index, call in calls
        ]
        media: list[Any] = []
        for one in answered:
            self._state.items.append(CallOutput(one.id, (TextPart(one.text),)))
            if one.media:
                media += [TextPart(f"From {one.name}:"), *one.media]
        if media:
            self._state.items.append(Message("user", tuple(media)))
        self._ended += answered
        return answered

    def _count(self, answered: Sequence[ToolEnded], ran: Sequence[ReadyCall]) -> tuple[Stop, str] | None:
        """Count what came of a turn's calls; answers why the run ends, if it does."""
        counts, limits = self._counts, self._limits
        good = {one.id for one in answered if one.status == "ok"}
        for key in {call_key(one.ready) for one in ran if one.ready.id in good}:
            counts.repeats[key] = counts.repeats.get(key, 0) + 1
        well = {one.name for one in answered if one.status == "ok"}
        for name in well:
            counts.retries.pop(name, None)
            counts.told.pop(name, None)
        again = {one.name: one for one in answered if one.status == "retry" and one.name not in well}
        for name, one in again.items():
            counts.retries[name] = counts.retries.get(name, 0) + 1
            is_ours = one.exception is None  # what a tool says of itself may be the same each time
            if is_ours and counts.told.get(name) == one.text:
                return "failed", f"the calls of {name!r} have the same fault twice: {one.text}"
            counts.told[name] = one.text
            if counts.retries[name] > limits.retries_per_tool:
                return "failed", f"the calls of {name!r} do not hold: {one.text}"
        failed = all(one.status in ("failed", "timeout") for one in answered)
        counts.failures = counts.failures + 1 if failed else 0
        if limits.failures is not None and counts.failures >= limits.failures:
            return "failed", f"all calls of {counts.failures} turns in a row failed"
        return None

    # --- the end, before its time ---

    def _interrupted(self, interrupt: Interrupt) -> None:
        """Leave a conversation in which each call has its output."""
        state = self._state
        turn = interrupt.turn
        if turn is not None:
            calls = [(index, call) for index, call in enumerate(turn.calls) if call.complete]
            content = turn.content + _CUT if turn.content and not interrupt.is_whole else turn.content
            self._take(msgspec.structs.replace(turn, content=content), calls)
            state.text = turn.content or ""
            state.problems += turn.problems
            self._counts.turns += 1
        self._spend(interrupt.ended)
        by_id = {**self._early, **{one.id: one for one in self._noted(interrupt.ended)}}
        self._ended += [by_id[call.id] for call in open_calls(state.items) if call.id in by_id]
        state.items = with_outputs(state.items, {id_: one.text for id_, one in by_id.items()})


def _query(arguments: str) -> str:
    """What a search asked for; its arguments are those of a readable call."""
    return str(decode(arguments).get("query", ""))


def _tokens(usage: Usage) -> int:
    return usage.prompt_tokens + usage.completion_tokens
