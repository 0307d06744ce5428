"""Checks: requests, judges of the answers, and the pages that describe the API. All of it is data and pure functions.

A body is that of a chat request; it is converted for the other APIs. So a check is written once for all of them.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from callwright.conform.answer import Answer, Body, Rule, show
from callwright.doctor.client import clipped
from callwright.eval.wires import WireName, wire_request

Status: TypeAlias = Literal["holds", "does not", "not shown", "not offered"]
STATUSES: Final[tuple[Status, ...]] = ("holds", "does not", "not shown", "not offered")
Variant: TypeAlias = Literal["whole", "streamed"]
Change: TypeAlias = Callable[[WireName, Body], Body | bytes]
MAX_TOKENS: Final = 512
_SHOWN: Final = 160
# Whether a server answers at all.
HELLO: Final[Body] = {"messages": [{"role": "user", "content": "Hello."}]}


class Verdict(Struct, frozen=True):
    """The result of a check: the expected and the received; both empty if it holds."""

    status: Status
    expected: str = ""
    got: str = ""


HOLDS: Final = Verdict("holds")
Judge: TypeAlias = Callable[[Answer], Verdict]


class Step(Struct, frozen=True):
    """A request of a check with several. `fields`: added to the converted request. `path`: of another endpoint, which
    gets the fields alone. `headers`: instead of those with the key; `{key}` in them is the key.
    """

    body: Body = {}
    fields: Body = {}
    path: str = ""
    headers: Mapping[str, str] | None = None


# Yields requests, gets the answer to each, and returns the verdict.
Talk: TypeAlias = Callable[[], Generator[Step, Answer, Verdict]]


class Check(Struct, frozen=True, kw_only=True):
    """One thing that an API promises.

    `name`: with the API's name before it, the check's id. `sources`: the page of each API that has it. `asks`:
    chat bodies, all of which are judged; `talk`: requests that depend on the answers before, instead. `change`: of the
    converted request. `given`: chat bodies that the server must answer, or there is nothing to judge: a server that
    refuses all requests does not refuse the wrong one. `optional`: a server may refuse it with 4xx. `wants`: an answer
    without it is not judged: a call, any answer; `error`: all are judged.
    """

    name: str
    title: str
    sources: Mapping[WireName, str]
    asks: tuple[Body, ...] = ()
    judge: Judge = lambda _: HOLDS
    talk: Talk | None = None
    given: tuple[Body, ...] = (HELLO,)
    change: Change = lambda _, body: body
    optional: bool = False
    wants: Literal["call", "answer", "error"] = "answer"
    variants: tuple[Variant, ...] = ("whole", "streamed")

    def verdict(self, answer: Answer) -> Verdict:
        """Judge one answer."""
        verdict = self._judge(answer)
        is_none = answer.status < 400 and answer.error is None and not answer.is_readable
        return nothing_in(answer) if is_none and verdict.status == "holds" else verdict

    def _judge(self, answer: Answer) -> Verdict:
        if answer.fault:
            return does_not("an answer", answer.fault)
        if self.wants == "error":
            return self.judge(answer)
        if self.optional and 400 <= answer.status < 500:
            return Verdict("not offered", "", refusal(answer))
        if answer.status >= 400 or answer.error is not None:
            return does_not("an answer", refusal(answer))
        if self.wants == "call" and not answer.calls:
            return Verdict("not shown", "a call", f"none: {show(answer.text or answer.reasoning)}")
        if answer.finish == "length" and self.wants == "call":
            return Verdict("not shown", "a whole call", "the limit of tokens was reached")
        return self.judge(answer)


def nothing_in(answer: Answer) -> Verdict:
    """The verdict on an answer that is not of the API."""
    return Verdict("not shown", f"an answer of the API{', as a stream' if answer.streamed else ''}", show(answer.body))


def does_not(expected: str, got: object) -> Verdict:
    """The verdict on an answer that is not as expected."""
    return Verdict("does not", expected, show(got))


def worst(verdicts: list[Verdict]) -> Verdict:
    """The verdict on several answers together."""
    order: tuple[Status, ...] = ("does not", "not offered", "not shown", "holds")
    return min(verdicts, key=lambda verdict: order.index(verdict.status))


def keeps(*rules: Rule) -> Judge:
    """Judge by the deviations from the API's form."""

    def judge(answer: Answer) -> Verdict:
        breach = next((breach for breach in answer.breaches if breach.rule in rules), None)
        return HOLDS if breach is None else Verdict("does not", breach.expected, breach.got)

    return judge


def refusal(answer: Answer) -> str:
    """The status and the message of an error, or the body in place of an answer."""
    error = answer.error
    if answer.status < 400 and error is not None:
        return f"an error in the answer: {show(error)}"
    if answer.fault:
        return answer.fault
    words = error.get("message") if isinstance(error, dict) else error or answer.body
    return f"HTTP {answer.status}: {show(words)}"


class Target(Struct, frozen=True):
    """The server that is checked: its base URL, the model, the most tokens of an answer, and values that no result
    shows.
    """

    url: str
    model: str
    max_tokens: int = MAX_TOKENS
    secrets: Sequence[str] = ()

    def redact(self, text: str) -> str:
        """A text for a report: without the secrets, which it had when it was judged, and short."""
        for secret in self.secrets:
            text = text.replace(secret, "…")
        return clipped(text, _SHOWN)


def request_of(check: Check, wire: WireName, body: Body, target: Target, variant: Variant) -> tuple[str, Body | bytes]:
    """The path and the request of a check."""
    chat = {"model": target.model, "max_tokens": target.max_tokens, "temperature": 0, **body}
    path, sent = wire_request(wire, chat)
    if wire == "responses":
        sent["max_output_tokens"] = chat["max_tokens"]
    elif wire == "messages":
        _add_to_messages(sent, chat)
    if variant == "streamed":
        sent["stream"] = True
        if wire == "chat":
            sent["stream_options"] = {"include_usage": True}
    return path, check.change(wire, sent)


def _add_to_messages(sent: Body, chat: Mapping[str, Any]) -> None:
    """Add the newer fields of the API."""
    if chat.get("parallel_tool_calls") is False:
        sent.setdefault("tool_choice", {"type": "auto"})["disable_parallel_tool_use"] = True
    for tool, given in zip(sent.get("tools", ()), chat.get("tools", ()), strict=True):
        if given["function"].get("strict"):
            tool["strict"] = True
    if form := chat.get("response_format"):
        sent["output_config"] = {"format": {"type": "json_schema", "schema": form["json_schema"]["schema"]}}
