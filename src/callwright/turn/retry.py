"""The retry policy: reports an invalid answer to the model and asks again, within a budget.

Retried are: an invalid call, a required call that is missing (`tool_choice`), and an answer not in the form that the
request demands (`response_format`). A valid answer is never touched and costs one request. If a required or guaranteed
(`strict`) call stays invalid, it is never sent. Sent events cannot be retracted, so anything that may have to be
dropped is held back: calls if one is required or guaranteed, text if only a call or a form may be sent, and everything
if nothing streams. Knows no server and no clock.
"""

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Final, get_args

import msgspec

from callwright.conversation import Conversation, Item
from callwright.events import (
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    ContentDelta,
    Event,
    Finished,
    Problem,
    ProblemKind,
    ReasoningDelta,
    finished,
)
from callwright.problems import FAILURES
from callwright.turn.attempt import RETRIED, Attempt, AttemptedCall, SaidDelta, details_of
from callwright.turn.retry_items import retry_items
from callwright.turn.structured import StructuredAnswer

_NEXT_STEP: Final = FAILURES["unmet"].next_step
_NO_NAMES: Final[frozenset[str]] = frozenset()
_IS_GUARANTEED: Final = attrgetter("must_be_valid")
_IS_RETRIED: Final = attrgetter("retry_invalid")

# The problems of a text that are worth a retry where no call is required.
_WRONG_IN_TEXT: Final = frozenset(("invalid_arguments", "malformed_call"))
_OF_CALLS: Final = frozenset((CallStarted, ArgumentsDelta, CallEnded))
_SAID: Final = frozenset(get_args(SaidDelta))


class DemandNotMet(Exception):  # noqa: N818  # the caller makes an error of its own of it
    """The call, or the form of the answer, that the request demands is missing; the message has the reason."""


class RetryPolicy:
    """Takes the events of each attempt, and decides whether to ask the model again, and with which items.

    `retries`: the maximum number of retries. `streamed`: send immediately what need not be held. `holds`: whether the
    policy has anything to do; if not, the caller can forward events itself. `needs_form`: the text must have a form, so
    it matters how the server parses it.
    """

    def __init__(self, conversation: Conversation, *, retries: int, streamed: bool) -> None:
        tools = conversation.tools if conversation.tool_choice != "none" else ()
        # Without a loop of its own: most requests have tools, and most tools are neither.
        is_some = any(map(_IS_GUARANTEED, tools))
        self._guaranteed = frozenset([tool.name for tool in tools if tool.must_be_valid]) if is_some else _NO_NAMES
        holds_some = is_some or any(map(_IS_RETRIED, tools))
        self._demands = conversation.tool_choice != "auto" and bool(tools)
        self._holds_calls = bool(tools) and (not streamed or self._demands or holds_some)
        form = conversation.response_format
        is_judged = form is not None and not form.is_judged_later and not self._demands
        self._form = StructuredAnswer(form) if form is not None and is_judged else None
        self.holds = self._holds_calls or self._form is not None
        self.needs_form = self._form is not None and self._form.is_demanded
        self._conversation = conversation
        self._retries = retries
        self._streamed = streamed
        self._attempt = Attempt()
        self._earlier: list[Attempt] = []
        self._kept: list[AttemptedCall] = []
        self._retried: list[Problem] = []
        self.again_for: ProblemKind | None = None  # the first problem of the attempt before, which caused this one
        self._told: list[str] = []
        self._is_broken = False  # the upstream has failed in an earlier attempt

    def push(self, batch: Sequence[Event], *, is_constrained: bool = False) -> Sequence[Event]:
        """Take events of the current attempt; returns those that can be sent now.

        `is_constrained`: the server was given the form of the answer and enforces it, so that it may stream.
        """
        if self._streamed:
            return [event for event in batch if self._goes_out(event, is_constrained=is_constrained)]
        self._attempt.add(*batch)
        for event in batch:
            if type(event) is not Finished:
                self._attempt.held.append(event)
        return ()

    def _goes_out(self, event: Event, *, is_constrained: bool) -> bool:
        """Whether an event can be sent now; otherwise it is held back."""
        attempt = self._attempt
        kind = type(event)
        if kind is Finished:
            attempt.add(event)
            return False
        if kind in _OF_CALLS or (type(event) is Problem and event.call is not None):
            flows = not self._holds_calls
        elif type(event) is ContentDelta and self._form is not None:
            as_told = is_constrained and (attempt.begun or self._form.may_begin(event.text))
            flows = as_told or not self._form.is_demanded
        else:
            flows = kind is ReasoningDelta or (kind in _SAID and not self._demands)
        flows = flows and not (self._earlier or attempt.blocked)
        attempt.add(event)
        if not flows:
            attempt.hold(event)
        return flows

    def next_attempt(self, *, in_time: bool) -> list[Item] | None:
        """End the attempt; returns the items that report the problems to the model, for a retry, or None.

        `in_time`: there is time for a retry. None also if the model repeats the same mistake.
        """
        attempt = self._attempt
        if (
            not self.holds
            or (self._form is None and attempt.is_faultless)
            or attempt.is_cut_short
            or attempt.has_refused
        ):
            return None
        if self._form is not None and not attempt.calls:
            self._judge(attempt, self._form)
        if attempt.is_faultless:
            return None
        wrong = self._wrong(attempt)
        if not wrong or len(self._earlier) >= self._retries or not in_time:
            return None
        return None if [problem.detail for problem in wrong] == self._told else self._ask_again(wrong)

    @property
    def failing(self) -> ProblemKind | None:
        """The first problem of an attempt that has ended and does not hold; None if it holds, or was cut or refused."""
        attempt = self._attempt
        if not self.holds or attempt.is_faultless or attempt.is_cut_short or attempt.has_refused:
            return None
        wrong = self._wrong(attempt)
        return wrong[0].kind if wrong else None

    def continue_with(self, retries: int) -> list[Item]:
        """Another model, with this number of retries, continues after the attempt that does not hold. Returns the
        items that report the problems to it.
        """
        items = self._ask_again(self._wrong(self._attempt))
        self._retries, self._told = len(self._earlier) + retries, []
        return items

    def _ask_again(self, wrong: Sequence[Problem]) -> list[Item]:
        attempt = self._attempt
        self._told, self.again_for = [problem.detail for problem in wrong], wrong[0].kind
        number = len(self._earlier) + 1
        self._earlier.append(attempt)
        self._keep(attempt.good)
        kind: ProblemKind = "answer_retried" if self.again_for == "invalid_answer" else "call_retried"
        self._retried.append(Problem(kind, details_of(wrong)))
        self._attempt = Attempt()
        return retry_items(self._conversation, attempt, wrong, number)

    def break_off(self) -> bool:
        """The upstream failed in the current attempt. Whether it failed in a call of which nothing was sent: the text
        before that is whole, and another model can continue after it.
        """
        attempt = self._attempt
        if not self._holds_calls or not attempt.calls:
            return False
        index, call = next(reversed(attempt.calls.items()))
        call.complete = False
        self._is_broken = True
        attempt.add(Problem("incomplete_arguments", f"the call of {call.started.name!r} is not whole", call=index))
        return True

    @property
    def has_earlier(self) -> bool:
        """Whether there is an earlier answer to fall back on."""
        return bool(self._earlier) and not self._is_broken

    def fall_back(self) -> bool:
        """The upstream failed in the current attempt. Whether there is an earlier answer to fall back on."""
        if not self.has_earlier:
            return False
        self._attempt = self._earlier.pop()
        return True

    @property
    def calls(self) -> list[tuple[str, str]]:
        """The functions that the latest answer calls, each with its arguments as JSON."""
        calls = self._attempt.calls.values()
        return [(call.started.name, call.arguments_text) for call in calls if call.started.kind == "function"]

    def finish(self) -> list[Event]:
        """The events that are left to send. Raises `DemandNotMet` if the demanded call or form is missing."""
        if not self.holds:
            return []
        if self._stands:
            return [*_with_own_ids(self._attempt.held), _end(self._attempt, calls=bool(self._attempt.calls))]
        has_called = bool(self._attempt.calls or (self._earlier and self._earlier[0].calls))
        said = self._earlier and self._earlier[0].content
        if said and not (self._form or self._demands or has_called):
            self._attempt = self._earlier[0]  # a text that was no call after all
            self._earlier = []
        attempt = self._attempt
        unmet = [call for call in attempt.bad if self._demands or call.started.name in self._guaranteed]
        self._keep([call for call in attempt.calls.values() if call not in unmet])
        problems = [*self._retried, *attempt.problems]
        problems += [problem for call in unmet for problem in _left_out(call)]
        self._check_demands(attempt, unmet, problems)
        unfinished = not all(call.complete for call in self._kept)
        end = _end(attempt, calls=bool(self._kept), unfinished=unfinished)
        if not self._earlier and len(self._kept) == len(attempt.calls):
            return [*_with_own_ids(attempt.held), end]
        return [*self._text(), *_numbered(self._kept), *problems, end]

    @property
    def _stands(self) -> bool:
        """Whether the first answer can leave as it is, which is by far the most frequent."""
        if self._earlier or not self._attempt.is_faultless:
            return False
        calls = len(self._attempt.calls)
        return calls == 1 or (self._conversation.parallel_tool_calls if calls else not self._demands)

    def _check_demands(self, attempt: Attempt, unmet: Sequence[AttemptedCall], problems: Iterable[Problem]) -> None:
        """Raise `DemandNotMet` if nothing that is left may be sent. A refusal may.

        After text that was sent, a call that is only guaranteed is left out, and the answer remains valid.
        """
        if attempt.is_cut_short or attempt.has_refused or self._kept:
            return
        times = f" in {len(self._earlier) + 1} attempts" if self._earlier else ""
        spoken = (self._earlier or [attempt])[0].has_spoken
        if self._demands or (unmet and not spoken):
            why = details_of(problem for problem in problems if problem.kind in RETRIED)
            raise DemandNotMet(f"No valid tool call{times}: {why}. {_NEXT_STEP}")
        misfit = [problem.detail for problem in attempt.problems if problem.kind == "invalid_answer"]
        if misfit and self.needs_form:
            raise DemandNotMet(f"No valid answer in the requested form{times}: {misfit[0]}. {_NEXT_STEP}")

    def _judge(self, attempt: Attempt, form: StructuredAnswer) -> None:
        """Check the form of a whole text; repair it if possible and not yet sent."""
        said = attempt.text
        if not said.strip() and form.is_answer(thought := attempt.thought.strip()):
            for event in (ContentDelta(thought), Problem("answer_repaired", "the answer stood in the reasoning")):
                attempt.add(event)
                attempt.hold(event)
            return
        judged = form.judge(said)
        problem = judged.problem
        if judged.text is not None and judged.text != said:
            if attempt.has_spoken:
                problem = Problem("invalid_answer", problem.detail if problem else "")
            else:
                attempt.rewrite(judged.text)
        if problem is not None:
            attempt.add(problem)
            attempt.hold(problem)

    def _wrong(self, attempt: Attempt) -> list[Problem]:
        """The problems to report to the model.

        Without a requirement, text that may have been a call of an unknown tool is an answer, and text that was already
        sent is not retried.
        """
        if not self._conversation.parallel_tool_calls and (attempt.good or self._kept):
            return []  # the one call that is allowed is there
        misfit = [problem for problem in attempt.problems if problem.kind == "invalid_answer"]
        if misfit and self.needs_form and not attempt.has_spoken:
            return misfit
        if not self._holds_calls:
            return []
        found = [problem for call in attempt.bad for problem in call.wrong]
        doubts = [problem for problem in attempt.doubts if problem not in misfit]
        if not self._demands:
            doubts = [problem for problem in doubts if problem.kind in _WRONG_IN_TEXT]
        return found + doubts

    def _keep(self, calls: Iterable[AttemptedCall]) -> None:
        """Collect calls for the end, each once: the model may repeat a call that was reported as accepted."""
        for call in calls:
            made = (call.started.name, "".join(call.arguments))
            first = not self._kept or self._conversation.parallel_tool_calls
            repeated = any(call is old for old in self._kept) or (
                self._earlier and any(made == (old.started.name, "".join(old.arguments)) for old in self._kept)
            )
            if first and not repeated:
                self._kept.append(call)

    def _text(self) -> list[Event]:
        """Reasoning and content still to send: of the last attempt if it is the answer, else of the first with any."""
        attempts = [*self._earlier, self._attempt]
        if not self._kept:
            attempts.reverse()
        reasoning = next((attempt.reasoning for attempt in attempts if attempt.reasoning), [])
        spoke = [attempt for attempt in attempts if attempt.content and not (attempt.doubts and self._kept)]
        content = spoke[0].content if spoke else []
        if not self._streamed:
            both = (each for each in attempts if each.content is content and each.reasoning is reasoning)
            one = next(both, None)
            return one.held_text if one is not None else [*reasoning, *content]  # in the order of arrival
        return self._unsent(reasoning, content)

    def _unsent(self, reasoning: Sequence[ReasoningDelta], content: Sequence[SaidDelta]) -> list[Event]:
        """The unsent part of these, if the first attempt has streamed."""
        first = (self._earlier or [self._attempt])[0]
        if content is first.content:
            return [*([] if first.reasoning else reasoning), *first.held_text]
        if first.reasoning:  # some of which may be held after a call
            reasoning = [event for event in first.held if isinstance(event, ReasoningDelta)]
        apart = [ContentDelta("\n\n")] if first.has_spoken and not (self._kept or self._demands) else []
        return [*reasoning, *apart, *(content if apart or not first.has_spoken else ())]


def _left_out(call: AttemptedCall) -> Iterator[Problem]:
    """The problems of a call that is not sent; the first has its name and its arguments, as far as they are there."""
    text = f"{call.started.name} {''.join(call.arguments)}"
    for problem in call.wrong:
        yield msgspec.structs.replace(problem, call=None, text=f"{problem.text}\n{text}".strip())
        text = ""


def _end(attempt: Attempt, *, calls: bool, unfinished: bool = False) -> Finished:
    return finished(attempt.reason if attempt.is_cut else "stop", calls=calls, unfinished=unfinished)


def _with_own_ids(events: Iterable[Event]) -> list[Event]:
    """The events without ids that an earlier call already has."""
    out: list[Event] = []
    ids: set[str] = set()
    for event in events:
        if type(event) is CallStarted and event.id is not None:
            event = msgspec.structs.replace(event, id=None) if event.id in ids else event
            ids.add(event.id or "")
        out.append(event)
    return out


def _numbered(calls: Iterable[AttemptedCall]) -> list[Event]:
    """The events of calls from several attempts, with new indexes."""
    events: list[Event] = []
    for number, call in enumerate(calls):
        for event in call.events:
            match event:
                case Problem():
                    events.append(msgspec.structs.replace(event, call=number))
                case CallStarted() | ArgumentsDelta() | CallEnded():
                    events.append(msgspec.structs.replace(event, index=number))
    return _with_own_ids(events)
