"""The calls of a run, a turn's calls at a time: checked, approved, run, and their outputs put into the conversation."""

from collections.abc import Generator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from callwright.agent.agent import Agent
from callwright.agent.budget import Budget
from callwright.agent.calls import ReadyCall, prepared
from callwright.agent.commands import Approve, Interrupt, RunCalls, Step
from callwright.agent.decisions import changed, check_decisions, decided, nested_id, own_and_nested
from callwright.agent.events import ApprovalNeeded, CallReady, Retried, Stop, ToolEnded
from callwright.agent.nested import Resumed
from callwright.agent.replayed import call_runs
from callwright.agent.state import State, open_calls, with_outputs
from callwright.calls.history import NOT_RUN
from callwright.conversation import Call, CallOutput, MediaPart, Message, TextPart

Ended: TypeAlias = tuple[Stop, str]  # why a run ends: the reason, and the words for it

_ONE_HANDOFF: Final = f"{NOT_RUN} A call before it hands the conversation over, which one agent can have."


class Batches:
    """Runs calls. `decisions` are for the calls that the run waits on, by id. `ended` are all calls that have their
    output, `waiting` those that a person must decide on.
    """

    def __init__(
        self, first: Agent[Any], state: State, budget: Budget, decisions: Mapping[str, Any] | None = None
    ) -> None:
        self._first = first
        self._state = state
        self._counts = state.counts
        self._budget = budget
        self._decisions: Mapping[str, Any] | None = None
        self._resumed: Mapping[str, Resumed] = {}
        if decisions is not None:
            check_decisions(first, state, decisions)
            self._decisions, nested = own_and_nested(decisions, state.nested)
            self._resumed = state.resumed(nested)
        self.ended: list[ToolEnded] = []
        self.waiting: list[CallReady] = []
        self._early: dict[str, ToolEnded] = {}  # answers to open calls, by id
        self._notes: dict[str, str] = {}  # on arguments that a person changed, by the id of the call

    def run(
        self, agent: Agent[Any], calls: Sequence[tuple[int, Call]]
    ) -> Generator[Step, Any, Ended | list[ToolEnded]]:
        """Run the calls of a turn; answers their outputs, or why the run ends."""
        ready = yield from self._prepare(agent, calls)
        if ended := self._budget.refuse(ready, self._resumed):
            self.answer(calls, [])
            return ended
        undecided = yield from self._undecided(ready)
        if undecided and self._decisions is None:
            return (yield from self._wait([one.ready for one in ready if one.ready.index in undecided]))
        approved = yield from self._decide(agent, ready, undecided)
        outcomes = yield from self._run(agent, approved)
        if waits := [one for one in outcomes if one.status == "waiting"]:
            kept = {one.ready.id: dict(one.ready.arguments) for one in approved if one.note}
            self._state.changed = {one.id: kept[one.id] for one in waits if one.id in kept}
            return (yield from self._wait_within(waits, outcomes))
        answered = self.answer(calls, outcomes)
        if ended := self._budget.count(answered, approved):
            return ended
        return answered

    def _prepare(self, agent: Agent[Any], calls: Sequence[tuple[int, Call]]) -> Generator[Step, Any, list[ReadyCall]]:
        """The calls that can run. All others have their output after this."""
        ready: list[ReadyCall] = []
        state, handoffs = self._state, agent.handoffs
        for index, call in calls:
            if call.id in state.answered:
                status, text = state.answered[call.id]
                media = tuple(map(MediaPart, state.media.get(call.id, ())))
                ended_before = ToolEnded(index, call.id, call.name, status, text, media=media)  # type: ignore[arg-type]
                self._early[call.id] = ended_before
                continue
            found = prepared(index, call, agent.tools)
            if isinstance(found, ReadyCall) and call.id in state.changed:
                found = changed(found, state.changed[call.id])
            if call.name in handoffs and any(one.ready.name in handoffs for one in ready):
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
        return ready

    def _undecided(self, ready: Sequence[ReadyCall]) -> Generator[Step, Any, set[int]]:
        """The indices of the calls that a person must decide on."""
        unapproved: set[int] = (yield Approve(tuple(ready))) if ready else set()
        return {
            one.ready.index
            for one in ready
            if (one.ready.index in unapproved or one.ready.id in self._state.asked)
            and not self._may_always(one)
            and one.ready.id not in self._state.nested
        }

    def _decide(
        self, agent: Agent[Any], ready: Sequence[ReadyCall], undecided: set[int]
    ) -> Generator[Step, Any, list[ReadyCall]]:
        """The calls that may run after the decisions. All others have their output after this."""
        approved: list[ReadyCall] = []
        for one in ready:
            decision = (self._decisions or {}).get(one.ready.id) if one.ready.index in undecided else True
            if isinstance(decision, Mapping) and decision.get("always"):
                self._counts.always.append((agent.name, one.ready.name))
            made = decided(one, decision)
            if isinstance(made, ReadyCall):
                approved.append(made)
            else:
                self._early[made.id] = made
                yield made
        self._decisions, self._state.asked = None, frozenset()
        return approved

    def _run(self, agent: Agent[Any], approved: Sequence[ReadyCall]) -> Generator[Step, Any, Sequence[ToolEnded]]:
        """Run calls; answers their outputs, counted."""
        state = self._state
        resumed, self._resumed = self._resumed, {}
        state.nested, state.runs, state.answered, state.media, state.changed = {}, {}, {}, {}, {}
        self._counts.calls += sum(one.ready.id not in resumed for one in approved)  # those were counted
        if not approved:
            return ()
        self._notes = {one.ready.id: one.note for one in approved if one.note}
        outcomes = yield RunCalls(tuple(approved), tuple(state.items), agent, self._budget.remaining_limits(), resumed)
        outcomes = self._noted(outcomes)
        self._budget.spend(outcomes)
        return outcomes

    def _wait(self, waiting: Sequence[CallReady]) -> Generator[Step, Any, Ended]:
        """End the run until a person decides on these."""
        self.waiting = list(waiting)
        for wanted in waiting:
            yield ApprovalNeeded(wanted.index, wanted.id, wanted.name, wanted.arguments)
        return "pending", f"{len(waiting)} calls wait for approval"

    def _wait_within(self, waits: Sequence[ToolEnded], outcomes: Sequence[ToolEnded]) -> Generator[Step, Any, Ended]:
        """End the run until a person decides on calls in runs of other agents; store the other outputs of the turn."""
        state = self._state
        state.nested = {one.id: one.app.pending for one in waits}
        state.runs = {one.id: call_runs(one.app) for one in waits}
        done = [one for one in (*self._early.values(), *outcomes) if one not in waits]
        state.answered = {one.id: (one.status, one.text) for one in done}
        state.media = {one.id: [part.value for part in one.media] for one in done if one.media}
        self.ended += done
        self._early = {}
        nested = [
            CallReady(one.index, nested_id(one.id, call["id"]), call["name"], call["arguments"])
            for one in waits
            for call in one.app.pending["calls"]
        ]
        return (yield from self._wait(nested))

    def _may_always(self, call: ReadyCall) -> bool:
        """Whether a person allowed all calls of this very tool: another agent may have one of the same name."""
        members = ((self._first.reachable(agent), name) for agent, name in self._counts.always)
        return any(agent is not None and agent.tools.get(name) is call.tool for agent, name in members)

    def _noted(self, outcomes: Sequence[ToolEnded]) -> list[ToolEnded]:
        """Outcomes with the notes for the model on changed arguments."""
        notes, self._notes = self._notes, {}
        return [msgspec.structs.replace(one, text=notes.get(one.id, "") + one.text) for one in outcomes]

    def answer(self, calls: Sequence[tuple[int, Call]], outcomes: Sequence[ToolEnded]) -> list[ToolEnded]:
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
        self.ended += answered
        return answered

    def close(self, interrupt: Interrupt) -> None:
        """Give each open call an output: its own if it ended."""
        state = self._state
        self._budget.spend(interrupt.ended)
        by_id = {**self._early, **{one.id: one for one in self._noted(interrupt.ended)}}
        self.ended += [by_id[call.id] for call in open_calls(state.items) if call.id in by_id]
        state.items = with_outputs(state.items, {id_: one.text for id_, one in by_id.items()})
