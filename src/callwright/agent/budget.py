"""The limits of a run, and how far they are used up."""

from collections.abc import Container, Sequence

import msgspec

from callwright.agent.agent import Limits
from callwright.agent.calls import ReadyCall, call_key
from callwright.agent.events import Stop, ToolEnded
from callwright.agent.state import Counts
from callwright.events import Usage


class Budget:
    """Adds to the counts of a run and compares them with its limits. A reason that a method answers ends the run."""

    def __init__(self, limits: Limits, counts: Counts) -> None:
        self._limits = limits
        self._counts = counts

    def add_turn(self, usage: Usage | None) -> None:
        """Count a turn of the model."""
        self._counts.turns += 1
        self.add(usage)

    def add(self, usage: Usage | None) -> None:
        """Count tokens, if they are known."""
        if usage is not None:
            self._counts.usage = self._counts.usage.plus(usage)

    def used_up(self) -> tuple[Stop, str] | None:
        """The limit that lets the model not be asked again, if one is reached."""
        counts, limits = self._counts, self._limits
        if counts.turns >= limits.turns:
            return "turns", f"{limits.turns} turns were not enough"
        if limits.tokens is not None and self._tokens() >= limits.tokens:
            return "tokens", f"{self._tokens()} tokens were used of {limits.tokens}"
        return None

    def remaining_limits(self) -> Limits:
        """The limits of a nested run."""
        limits, counts = self._limits, self._counts
        used = {"turns": counts.turns, "calls": counts.calls, "tokens": self._tokens()}
        less = {name: getattr(limits, name) - used[name] for name in used if getattr(limits, name) is not None}
        return msgspec.structs.replace(limits, **less)

    def spend(self, outcomes: Sequence[ToolEnded]) -> None:
        """Count what nested runs used."""
        counts = self._counts
        for one in outcomes:
            counts.usage = counts.usage.plus(one.spent.usage)
            counts.turns += one.spent.turns
            counts.calls += one.spent.calls

    def refuse(self, ready: Sequence[ReadyCall], resumed: Container[str]) -> tuple[Stop, str] | None:
        """The limit that lets none of these run, if one is reached. Those that are `resumed` were counted."""
        limits = self._limits
        more = sum(one.ready.id not in resumed for one in ready)
        if limits.calls is not None and self._counts.calls + more > limits.calls:
            return "calls", f"{self._counts.calls} calls were made, and {more} more would exceed {limits.calls}"
        for one in ready:
            seen = self._counts.repeats.get(call_key(one.ready), 0)
            if limits.repeats is not None and seen + 1 >= limits.repeats and not one.tool.options.repeatable:
                return "repeated", f"{one.ready.name!r} was called with the same arguments {limits.repeats} times"
        return None

    def count(self, answered: Sequence[ToolEnded], ran: Sequence[ReadyCall]) -> tuple[Stop, str] | None:
        """Count the outcomes of a turn's calls; answers why the run ends, if it does."""
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
            is_ours = one.exception is None  # a tool's own message may be the same each time
            if is_ours and counts.told.get(name) == one.text:
                return "failed", f"the calls of {name!r} have the same fault twice: {one.text}"
            counts.told[name] = one.text
            if counts.retries[name] > limits.retries_per_tool:
                return "failed", f"the calls of {name!r} are invalid: {one.text}"
        failed = all(one.status in ("failed", "timeout") for one in answered)
        counts.failures = counts.failures + 1 if failed else 0
        if limits.failures is not None and counts.failures >= limits.failures:
            return "failed", f"all calls of {counts.failures} turns in a row failed"
        return None

    def _tokens(self) -> int:
        usage: Usage = self._counts.usage
        return usage.prompt_tokens + usage.completion_tokens
