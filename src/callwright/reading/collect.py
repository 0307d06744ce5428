"""Folds the events of a turn into one `Turn`, for callers that do not stream."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, assert_never, cast

from msgspec import Struct

from callwright.conversation import Call
from callwright.events import (
    AnnotationsDelta,
    AnswerMetadata,
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    ContentDelta,
    Event,
    Finished,
    FinishReason,
    Markup,
    Problem,
    ReasoningDelta,
    RefusalDelta,
)

T = TypeVar("T")


class Turn(Struct, frozen=True):
    """A model's answer: content, reasoning, tool calls, finish reason, and problems.

    `logprobs` are those of the deltas of content and refusal, if a server sent them. The fields after them are sent by
    servers only: a refusal apart from the content, annotations of the content, metadata of the answer.
    """

    content: str | None
    reasoning: str | None
    calls: tuple[Call, ...]
    finish_reason: FinishReason
    problems: tuple[Problem, ...] = ()
    logprobs: tuple[Mapping[str, Any], ...] = ()
    refusal: str | None = None
    annotations: tuple[Mapping[str, Any], ...] = ()
    metadata: AnswerMetadata = AnswerMetadata()

    def to_chat_message(self) -> dict[str, Any]:
        """The assistant message of Chat Completions.

        A call without an id gets `call_0`, `call_1`, … by its place. A call that was cut off is left out: it must not
        be run.
        """
        message: dict[str, Any] = {"role": "assistant", "content": self.content}
        if self.refusal is not None:
            message["refusal"] = self.refusal
        if self.annotations:
            message["annotations"] = list(self.annotations)
        if self.reasoning is not None:
            message["reasoning_content"] = self.reasoning
        calls = [call.as_openai(call.id or f"call_{number}") for number, call in enumerate(self.calls) if call.complete]
        if calls:
            message["tool_calls"] = calls
        return message


def collect(events: Iterable[Event]) -> Turn:
    """Fold the events of one whole turn."""
    content: list[str] = []
    reasoning: list[str] = []
    refusal: list[str] = []
    annotations: list[Mapping[str, Any]] = []
    metadata = AnswerMetadata()
    started: list[CallStarted] = []
    arguments: list[list[str]] = []
    complete: list[bool] = []
    problems: list[Problem] = []
    logprobs: list[Mapping[str, Any]] = []
    reason: FinishReason = "stop"
    for event in settle_events(events):
        # The most frequent types first.
        if type(event) is Markup:
            pass
        elif type(event) is ContentDelta:
            content.append(event.text)
            if event.logprobs is not None:
                logprobs.append(event.logprobs)
        elif type(event) is ArgumentsDelta:
            arguments[event.index].append(event.text)
        elif type(event) is ReasoningDelta:
            reasoning.append(event.text)
        elif type(event) is CallStarted:
            started.append(event)
            arguments.append([])
            complete.append(False)
        elif type(event) is CallEnded:
            complete[event.index] = event.complete
        elif type(event) is Problem:
            problems.append(event)
        elif type(event) is Finished:
            reason = event.reason
        elif type(event) is RefusalDelta:
            refusal.append(event.text)
            if event.logprobs is not None:
                logprobs.append(event.logprobs)
        elif type(event) is AnnotationsDelta:
            annotations += event.annotations
        elif type(event) is AnswerMetadata:
            metadata = metadata.updated(event)
        else:
            assert_never(event)
    calls = [
        Call(
            name=call.name,
            arguments="".join(texts),
            id=call.id or "",
            kind=call.kind,
            namespace=call.namespace,
            complete=whole,
        )
        for call, texts, whole in zip(started, arguments, complete, strict=True)
    ]
    return Turn(
        content="".join(content) or None,
        reasoning="".join(reasoning) or None,
        calls=tuple(calls),
        finish_reason=reason,
        problems=tuple(problems),
        logprobs=tuple(logprobs),
        refusal="".join(refusal) or None,
        annotations=tuple(annotations),
        metadata=metadata,
    )


def settle_events(events: Iterable[T]) -> list[T | ReasoningDelta]:
    """The events of a whole turn, with late verdicts applied: content before an `unopened_reasoning` becomes reasoning.

    A `</think>` without its opening tag shows too late that the streamed content was reasoning.
    """
    kept: list[T | ReasoningDelta] = []
    told = 0  # the number of events that are settled
    for event in events:
        if type(event) is Problem and cast(Problem, event).kind == "unopened_reasoning":
            kept[told:] = [
                ReasoningDelta(each.text) if isinstance(each, ContentDelta) else each for each in kept[told:]
            ]
            told = len(kept)
        kept.append(event)
    return kept
