"""Events that a parser reports while it reads a model's output.

One closed union, `Event`. Text arrives in deltas whose boundaries mean nothing; a call is `CallStarted`, any number of
`ArgumentsDelta`, `CallEnded`. A turn ends with `Finished`.

Nothing is lost: before any repair the texts of `ContentDelta`, `ReasoningDelta`, `ArgumentsDelta`, `Markup` and
`Problem.text` together hold every character the model wrote. Consumers `match` and end in `assert_never`.

`RefusalDelta`, `AnnotationsDelta` and `AnswerMetadata` originate from a server: no text is parsed as one of them. They
are forwarded unchanged.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, TypeVar, final, get_args

from msgspec import Struct

from callwright.memo.prefixes import Shared

T = TypeVar("T")
CallKind = Literal["function", "custom"]
FinishReason = Literal["stop", "tool_calls", "length", "content_filter"]

ProblemKind = Literal[
    # a call, its name and its arguments
    "unknown_tool",
    "non_json_arguments",
    "invalid_arguments",
    "incomplete_arguments",
    "invalid_answer",
    "invalid_input",
    "input_unwrapped",
    "arguments_trailing_text",
    "arguments_unchecked",
    "arguments_decoded",
    "arguments_unwrapped",
    "argument_renamed",
    "argument_coerced",
    "argument_dropped",
    "argument_repeated",
    "json_repaired",
    "tool_name_repaired",
    "ambiguous_call",
    "answer_repaired",
    "answer_retried",
    "answer_unchecked",
    "call_in_text",
    "call_in_thought",
    "call_changed",
    "call_denied",
    "call_loop",
    "call_not_allowed",
    "call_missing",
    "call_repeated",
    "call_retried",
    "call_unread",
    "foreign_format",
    "malformed_call",
    "model_replaced",
    "output_endless",
    "search_failed",
    "value_bounded",
    "markers_in_value",
    "markup_repaired",
    # deviations from the format; the label of each is explained in docs/problems.md
    "recipient_sanitized",
    "duplicate_recipient",
    "namespace_stripped",
    "recipient_from_constrain",
    "recipient_from_channel",
    "recipient_guessed_by_schema",
    "control_tokens_stripped",
    "imagined_message",
    "incomplete_header",
    "malformed_header",
    "missing_channel",
    "missing_header",
    "missing_message_token",
    "missing_start",
    "missing_stop",
    "redundant_stop",
    "stray_header_prefix",
    "stray_text",
    "text_after_call_discarded",
    "unknown_channel",
    "unopened_reasoning",
    "wrong_stop",
]
PROBLEM_KINDS: tuple[str, ...] = get_args(ProblemKind)
# A call was written, and is invalid.
OF_INVALID_CALLS: Final[frozenset[ProblemKind]] = frozenset(
    (
        "incomplete_arguments",
        "invalid_arguments",
        "invalid_input",
        "malformed_call",
        "non_json_arguments",
        "unknown_tool",
    )
)


@final
class Call(Shared, frozen=True):
    """A call of a tool. `arguments` is JSON text for a function, free text for a custom tool.

    In a conversation all calls are of functions, as the model knows them. `complete` is False for a call that was
    truncated in its arguments; it must not be run.
    """

    name: str
    arguments: str
    id: str = ""
    kind: CallKind = "function"
    namespace: str | None = None
    complete: bool = True

    def as_openai(self, id_: str) -> dict[str, Any]:
        """The call in the Chat shape."""
        if self.kind == "custom":
            return {"id": id_, "type": "custom", "custom": {"name": self.name, "input": self.arguments}}
        return {"id": id_, "type": "function", "function": {"name": self.name, "arguments": self.arguments}}


@final
class ContentDelta(Struct, frozen=True):
    """Text for the user. `logprobs` are those of its tokens, if a server sent them in OpenAI's form."""

    text: str
    logprobs: Mapping[str, Any] | None = None


@final
class ReasoningDelta(Struct, frozen=True, gc=False):
    """Text of the model's reasoning."""

    text: str


@final
class RefusalDelta(Struct, frozen=True):
    """Text of a refusal, as the server marked it. `logprobs` as in `ContentDelta`."""

    text: str
    logprobs: Mapping[str, Any] | None = None


@final
class AnnotationsDelta(Struct, frozen=True):
    """More annotations of the content, such as its sources, in the form of Chat Completions."""

    annotations: tuple[Mapping[str, Any], ...]


@final
class AnswerMetadata(Struct, frozen=True, gc=False):
    """A server's metadata about the whole answer; None: not sent."""

    system_fingerprint: str | None = None
    service_tier: str | None = None

    def updated(self, later: "AnswerMetadata") -> "AnswerMetadata":
        """A copy updated with the fields that `later` has."""
        return AnswerMetadata(
            later.system_fingerprint or self.system_fingerprint, later.service_tier or self.service_tier
        )


@final
class CallStarted(Struct, frozen=True, gc=False):
    """Call number `index` (from 0, step 1, over the turn) begins.

    `id` is set only if the upstream or the model gave the call one.
    """

    index: int
    name: str
    kind: CallKind = "function"
    namespace: str | None = None
    id: str | None = None


@final
class ArgumentsDelta(Struct, frozen=True, gc=False):
    """More argument text of call `index`: JSON text of a function, the input of a custom tool."""

    index: int
    text: str


@final
class CallEnded(Struct, frozen=True, gc=False):
    """Call `index` is over. `complete` is False when the output ended before its arguments did."""

    index: int
    complete: bool = True


@final
class Markup(Struct, frozen=True, gc=False):
    """Text that was structure: control tokens, headers, the wrapper of a call. Nothing to show."""

    text: str


@final
class Problem(Struct, frozen=True, gc=False):
    """A deviation in the output, and how it was handled.

    `detail` is for people; `call` the index of the call it is about; `text` model output that appears in no other
    event; `candidate` the call that an `ambiguous_call` would run, if it was meant.

    `unopened_reasoning`: all content before it was reasoning, because a closing tag had no opener.
    """

    kind: ProblemKind
    detail: str
    call: int | None = None
    text: str = ""
    candidate: Call | None = None


@final
class Finished(Struct, frozen=True, gc=False):
    """The last event of a turn. `unfinished`: the reason is `length` because a call is incomplete, although the server
    reported no truncation.
    """

    reason: FinishReason
    unfinished: bool = False


def finished(reason: FinishReason, *, calls: bool, unfinished: bool) -> Finished:
    """The end of a turn that an upstream ended for this reason.

    `calls`: calls were sent; `unfinished`: one of them is incomplete.
    """
    if reason != "stop":
        return Finished(reason)
    return Finished("length", unfinished=True) if unfinished else Finished("tool_calls" if calls else "stop")


@final
class Usage(Struct, frozen=True):
    """Tokens, as the upstream counts them. Reported separately from the events of a turn."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Prompt and completion tokens; the other two are parts of these."""
        return self.prompt_tokens + self.completion_tokens

    def plus(self, other: "Usage") -> "Usage":
        """The sum of both."""
        return Usage(*(getattr(self, name) + getattr(other, name) for name in self.__struct_fields__))

    def minus(self, other: "Usage") -> "Usage":
        """The remainder without `other`, which is a part of it."""
        return Usage(*(getattr(self, name) - getattr(other, name) for name in self.__struct_fields__))


# Events that stream text.
TextEvent: TypeAlias = ContentDelta | ReasoningDelta | ArgumentsDelta | Markup

Event: TypeAlias = (
    ContentDelta
    | ReasoningDelta
    | RefusalDelta
    | AnnotationsDelta
    | CallStarted
    | ArgumentsDelta
    | CallEnded
    | Markup
    | Problem
    | AnswerMetadata
    | Finished
)
