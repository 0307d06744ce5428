"""One answer of a model, as a retry policy looks at it: what it said, what it called, and what of that has gone out."""

from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from callwright.calls.custom_tools import input_arguments
from callwright.events import (
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

__all__ = ["CUT", "RETRIED", "Attempt", "AttemptedCall", "SaidDelta"]

# The problems that are worth a retry.
RETRIED: Final = frozenset(
    (
        "call_missing",
        "incomplete_arguments",
        "invalid_answer",
        "invalid_arguments",
        "invalid_input",
        "malformed_call",
        "non_json_arguments",
        "unknown_tool",
    )
)
# Why an answer ended before the model was done.
CUT: Final = ("length", "content_filter")

# What a client reads as the answer's text, or beside it.
SaidDelta: TypeAlias = ContentDelta | RefusalDelta | AnnotationsDelta


class AttemptedCall(msgspec.Struct):
    """A call that was made: its events, and what is wrong with it."""

    started: CallStarted
    events: list[Event]
    arguments: list[str]
    complete: bool = True
    wrong: list[Problem] = []

    @property
    def written(self) -> str:
        """Its arguments as JSON text; the input of a custom tool as the arguments of a function."""
        text = "".join(self.arguments)
        return input_arguments(text) if self.started.kind == "custom" else text or "{}"


class Attempt(msgspec.Struct):
    """One answer of the model. `held` are its events that have not gone out, in order, without `Finished`.

    `blocked`: something is held that later events may not overtake. `begun`: its content is more than blanks.
    """

    held: list[Event] = []
    blocked: bool = False
    begun: bool = False
    content: list[SaidDelta] = []
    reasoning: list[ReasoningDelta] = []
    calls: dict[int, AttemptedCall] = {}
    problems: list[Problem] = []
    reason: FinishReason = "stop"

    def add(self, event: Event) -> None:
        """Note an event."""
        match event:
            case CallStarted(index):
                self.calls[index] = AttemptedCall(event, [event], [])
            case ArgumentsDelta(index, text):
                self.calls[index].events.append(event)
                self.calls[index].arguments.append(text)
            case CallEnded(index, complete):
                self.calls[index].events.append(event)
                self.calls[index].complete = complete
            case Problem(kind, _, int(index)) if index in self.calls:
                self.calls[index].events.append(event)
                if kind in RETRIED:
                    self.calls[index].wrong.append(event)
            case Problem():
                self.problems.append(event)
            case Finished(reason, unfinished):
                self.reason = "stop" if unfinished else reason
            case ContentDelta(text):
                self.content.append(event)
                self.begun = self.begun or bool(text.strip())
            case RefusalDelta() | AnnotationsDelta():
                self.content.append(event)
            case ReasoningDelta():
                self.reasoning.append(event)

    def hold(self, event: Event) -> None:
        """Keep an event for the end."""
        self.held.append(event)
        self.blocked = self.blocked or isinstance(event, CallStarted | SaidDelta)

    def rewrite(self, text: str) -> None:
        """Put another text in the place of its content, of which nothing has gone out."""
        first = next(number for number, event in enumerate(self.held) if isinstance(event, ContentDelta))
        self.held = [event for event in self.held if not isinstance(event, ContentDelta)]
        self.held.insert(first, ContentDelta(text))
        self.content = [event for event in self.held if isinstance(event, SaidDelta)]

    @property
    def held_text(self) -> list[Event]:
        """Content and reasoning that have not gone out."""
        return [event for event in self.held if isinstance(event, SaidDelta | ReasoningDelta)]

    @property
    def has_spoken(self) -> bool:
        """Whether some of its content has gone out."""
        return sum(isinstance(event, SaidDelta) for event in self.held) < len(self.content)

    @property
    def said(self) -> str:
        """Its whole content."""
        return "".join(event.text for event in self.content if isinstance(event, ContentDelta))

    @property
    def has_refused(self) -> bool:
        """Whether its server says that the model refuses."""
        return any(isinstance(event, RefusalDelta) for event in self.content)

    @property
    def is_cut(self) -> bool:
        """Whether a limit or a filter has ended it."""
        return self.reason in CUT

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

    @property
    def is_faultless(self) -> bool:
        """Whether nothing is told against it, and nothing that counts against a call."""
        return not (self.problems or self.bad)
