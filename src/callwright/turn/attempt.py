"""One answer of a model, as a retry policy sees it: its text and calls, and which of them were sent."""

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias, get_args

import msgspec

from callwright.calls.custom_tools import input_arguments
from callwright.events import (
    OF_INVALID_CALLS,
    AnnotationsDelta,
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    ContentDelta,
    Event,
    Finished,
    FinishReason,
    Problem,
    ReasoningDelta,
    RefusalDelta,
)

# The problems that are worth a retry.
RETRIED: Final = OF_INVALID_CALLS | {"call_missing", "invalid_answer"}
# Those of a call in text that do not come from its being truncated.
_OF_WHOLE_CALLS: Final = frozenset(("invalid_arguments", "unknown_tool"))
# Why an answer ended before the model was done.
CUT: Final = ("length", "content_filter")

# Deltas that a client reads as the answer's text, or as its annotations.
SaidDelta: TypeAlias = ContentDelta | RefusalDelta | AnnotationsDelta
# Events that, once held, later ones may not overtake.
_BLOCKING: Final = frozenset((CallStarted, *get_args(SaidDelta)))


def details_of(problems: Iterable[Problem]) -> str:
    """The details of problems as one text. A model often repeats a call with its mistake, which is reported once."""
    return "; ".join(dict.fromkeys(problem.detail for problem in problems))


class AttemptedCall(msgspec.Struct):
    """A call: its events, and its problems."""

    started: CallStarted
    events: list[Event]
    arguments: list[str]
    complete: bool = True
    wrong: list[Problem] = []

    @property
    def arguments_text(self) -> str:
        """Its arguments as JSON text; the input of a custom tool as the arguments of a function."""
        text = "".join(self.arguments)
        return input_arguments(text) if self.started.kind == "custom" else text or "{}"


class Attempt(msgspec.Struct):
    """One answer of the model. `held` are its unsent events, in order, without `Finished`. `is_faultless`: it has no
    problems and no invalid calls.

    `blocked`: an event is held that later ones may not overtake. `begun`: its content is more than blanks.
    """

    held: list[Event] = []
    blocked: bool = False
    begun: bool = False
    content: list[SaidDelta] = []
    reasoning: list[ReasoningDelta] = []
    calls: dict[int, AttemptedCall] = {}
    problems: list[Problem] = []
    is_faultless: bool = True
    reason: FinishReason = "stop"

    def add(self, *events: Event) -> None:
        """Note events."""
        for event in events:
            if type(event) is ArgumentsDelta:
                call = self.calls[event.index]
                call.events.append(event)
                call.arguments.append(event.text)
            elif type(event) is ContentDelta:
                self.content.append(event)
                self.begun = self.begun or bool(event.text.strip())
            elif type(event) is ReasoningDelta:
                self.reasoning.append(event)
            elif type(event) is CallStarted:
                self.calls[event.index] = AttemptedCall(event, [event], [])
            elif type(event) is CallEnded:
                call = self.calls[event.index]
                call.events.append(event)
                call.complete = event.complete
                self.is_faultless = self.is_faultless and event.complete
            elif type(event) is Finished:
                self.reason = "stop" if event.unfinished else event.reason
            elif type(event) is Problem:
                self._note_problem(event)
            elif type(event) is RefusalDelta or type(event) is AnnotationsDelta:
                self.content.append(event)

    def _note_problem(self, problem: Problem) -> None:
        call = None if problem.call is None else self.calls.get(problem.call)
        if call is None:
            self.problems.append(problem)
            self.is_faultless = False
            return
        call.events.append(problem)
        if problem.kind in RETRIED:
            call.wrong.append(problem)
            self.is_faultless = False

    def hold(self, event: Event) -> None:
        """Hold an event until the end."""
        self.held.append(event)
        self.blocked = self.blocked or type(event) in _BLOCKING

    def rewrite(self, text: str) -> None:
        """Replace its content, none of which was sent."""
        first = next(number for number, event in enumerate(self.held) if isinstance(event, ContentDelta))
        self.held = [event for event in self.held if not isinstance(event, ContentDelta)]
        self.held.insert(first, ContentDelta(text))
        self.content = [event for event in self.held if isinstance(event, SaidDelta)]

    @property
    def held_text(self) -> list[Event]:
        """Unsent content and reasoning."""
        return [event for event in self.held if isinstance(event, SaidDelta | ReasoningDelta)]

    @property
    def has_spoken(self) -> bool:
        """Whether some of its content was sent."""
        return sum(isinstance(event, SaidDelta) for event in self.held) < len(self.content)

    @property
    def text(self) -> str:
        """Its whole content."""
        return "".join(event.text for event in self.content if isinstance(event, ContentDelta))

    @property
    def thought(self) -> str:
        """Its whole reasoning."""
        return "".join(event.text for event in self.reasoning)

    @property
    def has_refused(self) -> bool:
        """Whether its server reports a refusal."""
        return RefusalDelta in map(type, self.content)

    @property
    def is_cut(self) -> bool:
        """Whether a limit or a filter has ended it."""
        return self.reason in CUT

    @property
    def is_cut_short(self) -> bool:
        """Whether this may be why it does not hold: not if a call was over before, and is invalid."""
        return self.is_cut and not (self.reason == "length" and self._has_ended_badly)

    @property
    def _has_ended_badly(self) -> bool:
        in_text = any(problem.kind in _OF_WHOLE_CALLS for problem in self.problems)
        return in_text or any(call.complete for call in self.bad)

    @property
    def doubts(self) -> Sequence[Problem]:
        """The problems worth a retry that belong to no call."""
        return [problem for problem in self.problems if problem.kind in RETRIED]

    @property
    def good(self) -> list[AttemptedCall]:
        """The complete calls without such problems."""
        return [call for call in self.calls.values() if call.complete and not call.wrong]

    @property
    def bad(self) -> list[AttemptedCall]:
        """All other calls."""
        return [call for call in self.calls.values() if not call.complete or call.wrong]
