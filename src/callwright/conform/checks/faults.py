"""Faults of models and their servers: the client gets the right call, an error, or a report; nothing invented or lost.

The request has a mark that names the fault. The scripted model server finds it, whatever the gateway under test makes
of the rest, and answers with the turn below, written wrongly.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from callwright.conform.answer import Answer, Body, show
from callwright.conform.check import HOLDS, Check, Judge, Verdict, does_not, keeps
from callwright.conform.checks.asks import (
    CALLING,
    FAILURES,
    LATE_FAILURES,
    STREAMS,
    STRICT,
    completion,
    field,
    sources,
    tool,
    user,
)
from callwright.conform.checks.errors import error_form
from callwright.conversation import AssistantTurn, Call, Message, TextPart
from callwright.eval.wires import WireName
from callwright.schema.validate import validator_of
from callwright.tolerant_json.codec import encode
from callwright.upstreams.simulated.faults import FAULTS

# In which a model's text can be, if its server does not parse it: the first that the gateway reads is used for faults
# that any text can have.
DIALECTS: Final = ("hermes", "json", "harmony")
NO_FAULT: Final = "none"
NATIVE: Final = "native"  # the server parses calls
_SILENT: Final = "silent"  # nothing to judge: how long a gateway waits is its own matter
_MARK: Final = re.compile(r"\[case (\w+) (\w+)\]")
_ARGUMENTS: Final = {"guest_name": "Ada Lovelace", "seats": 4, "outdoors": True, "note": "No nuts 🥜.\nNo fish."}
_TYPES: Final = {str: "string", int: "integer", bool: "boolean"}
_TOOL: Final = tool(
    "book_table",
    "Book a table.",
    strict=True,
    schema={
        "type": "object",
        "properties": {name: {"type": _TYPES[type(value)]} for name, value in _ARGUMENTS.items()},
        "required": [*_ARGUMENTS],
        "additionalProperties": False,
    },
)
_REPLY: Final = "All tables are taken."
# The model answers with a text: there must not be a call.
_IN_TEXT: Final = ("teaches", "missing_message_token")
# It may mean a call, or not.
_ONLY_TEXT: Final = ("only_said",)
_BROKEN_OFF: Final = ("cut_stream", "error_event", "cut_first", "cut_last")
_EVENT_STREAM: Final = "https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream"
_REFUSAL: Final[Mapping[WireName, str]] = {
    **completion("chat_completion_message > (schema) > (property) refusal"),
    "responses": f"{STREAMS['responses']}#response.refusal.done",
    **sources(messages="build-with-claude/handling-stop-reasons#refusal"),
}
_TWICE: Final = ("second_call",)
_NO_CALL: Final = "it does not forward a right call"


class Sending(Struct, frozen=True):
    """How the scripted server sends a stream. `piece`: characters in a delta; `packet`: bytes in a packet, 0 for one
    event each; `before`: before each event; `space`: after `data:`; `cut`: after how many deltas it breaks off.
    """

    title: str = ""
    piece: int = 4
    packet: int = 0
    newline: str = "\n"
    before: str = ""
    space: str = " "
    cut: int | None = None


REFUSAL: Final = "refusal"
_SENT_OTHERWISE: Final = "sent_"
_SAME: Final = "The same call from a stream with"
_ALL: Final = 1_000_000
SENDINGS: Final[Mapping[str, Sending]] = {
    "sent_characters": Sending(f"{_SAME} one character in each delta", piece=1),
    "sent_whole": Sending(f"{_SAME} all in one delta", piece=_ALL),
    "sent_bytes": Sending(f"{_SAME} one byte in each packet", packet=1),
    "sent_odd": Sending(f"{_SAME} packets that end within events and characters", piece=3, packet=7),
    "sent_together": Sending(f"{_SAME} all events in one packet", packet=_ALL),
    "sent_crlf": Sending(f"{_SAME} lines that end in CR LF", newline="\r\n", packet=5),
    "sent_comments": Sending(f"{_SAME} comments between the events", before=": keep-alive\n\n"),
    "sent_no_space": Sending(f"{_SAME} no space after data:", space=""),
    "cut_first": Sending("The server fails after the head of a stream, before its first delta", cut=0),
    "cut_last": Sending("The server fails after the last delta of a call, before its finish", cut=_ALL),
}


def mark_in(text: str) -> tuple[str, str] | None:
    """The fault and the dialect that a request names, or None."""
    found = _MARK.search(text)
    return (found[1], found[2]) if found else None


def turn_of(fault: str) -> AssistantTurn:
    """The turn that the model means."""
    if fault in (*_IN_TEXT, REFUSAL):
        return AssistantTurn(None, Message("assistant", (TextPart(_REPLY),)))
    return AssistantTurn("The user wants a table.", calls=[Call("book_table", encode(_ARGUMENTS).decode())])


def baseline(dialect: str) -> Check:
    """The check whether the gateway reads calls in the text of a model, in a dialect; `native`: calls of a server."""
    if dialect == NATIVE:
        return _check(NO_FAULT, "A right call, parsed by the server", NO_FAULT, NATIVE)
    return _check(f"none_{dialect}", f"A right call in the text of the model ({dialect})", NO_FAULT, dialect)


def fault_checks(readable: Collection[str]) -> Sequence[Check]:
    """The checks; `readable`: the dialects in which the gateway reads the text of a model, and `native` if it forwards
    a call that the server has parsed.
    """
    first = next((dialect for dialect in DIALECTS if dialect in readable), "")
    found = [baseline(NATIVE)]
    for name, fault in FAULTS.items():
        if name == _SILENT:
            continue
        title = f"A mistake of the {'server' if fault.failure else 'model'}: `{name}`"
        if not fault.writing:
            found.append(_check(name, title, name, first or NATIVE))
        elif first and fault.dialect in ("", *readable):
            found.append(_check(name, title, name, fault.dialect or first))
        else:
            why = f"it does not read calls in the text of a model ({fault.dialect or 'in any dialect'})"
            found.append(_unread(name, title, why))
    for name, sending in SENDINGS.items():
        found.append(replace(_check(name, sending.title, name, NATIVE), variants=("streamed",)))
    found.append(_check(REFUSAL, "A refusal of the model: its words, and no call", REFUSAL, NATIVE))
    if NATIVE not in readable:
        found[1:] = [_unread(check.name.removeprefix("faults."), check.title, _NO_CALL) for check in found[1:]]
    return found


def _check(name: str, title: str, fault: str, dialect: str, judge: Judge | None = None) -> Check:
    text = f"Book a table for Ada Lovelace: 4 seats outdoors, note 'No nuts 🥜. No fish.' [case {fault} {dialect}]"
    body: Body = {"messages": [user(text)], "tools": [_TOOL]}
    judge = judge or _judge(fault)
    where = _source_of(name.removeprefix("faults."))
    return Check(name=f"faults.{name}", title=title, sources=where, asks=(body,), judge=judge, wants="error")


def _source_of(fault: str) -> Mapping[WireName, str]:
    """The pages with the promise that a fault puts to the test."""
    if fault == REFUSAL:
        return _REFUSAL
    if fault.startswith(_SENT_OTHERWISE):
        return dict.fromkeys(CALLING, _EVENT_STREAM)
    if fault in _IN_TEXT:  # `auto`: the model chooses between a text and a call
        return field("tool_choice")
    if fault in _BROKEN_OFF:
        return LATE_FAILURES
    if fault in FAULTS:
        return FAILURES if FAULTS[fault].failure else STRICT
    return CALLING


def _unread(name: str, title: str, why: str) -> Check:
    return _check(name, title, NO_FAULT, NATIVE, lambda _: Verdict("not offered", "", why))


def _judge(fault: str) -> Judge:
    """Judge the answer to a request with this fault."""

    def judge(answer: Answer) -> Verdict:
        sent_rightly = fault in (NO_FAULT, REFUSAL) or fault.startswith(_SENT_OTHERWISE)
        if answer.status >= 400 or answer.error is not None:
            if sent_rightly:
                return does_not("an answer", answer.error or answer.body)
            return error_form(answer) if answer.status >= 400 else _late_error(answer)
        calls = [(call.name, call.value) for call in answer.calls]
        if fault == REFUSAL:
            return _judge_refusal(answer, calls)
        if fault.startswith(_SENT_OTHERWISE):
            form = keeps("framing", "start", "end", "items", "deltas", "ids", "sequence", "finish")(answer)
            right = calls == [("book_table", _ARGUMENTS)]
            return form if right else does_not(f"the call with {show(_ARGUMENTS)}", calls or answer.text)
        return _judge_text(answer, calls) if fault in _IN_TEXT else _judge_calls(answer, calls, fault)

    return judge


def _judge_text(answer: Answer, calls: list[tuple[Any, Any]]) -> Verdict:
    if calls:
        return does_not("no call: the model made none", calls)
    return HOLDS if _REPLY in answer.text else does_not(f"the text {_REPLY}", answer.text)


def _judge_calls(answer: Answer, calls: list[tuple[Any, Any]], fault: str) -> Verdict:
    right: tuple[str, Any] = ("book_table", _ARGUMENTS)
    if calls == [right] or (fault in _TWICE and calls == [right, right]):
        return HOLDS
    if any(_looks_right(name, value) for name, value in calls):
        return does_not("the right call, or an error", calls)
    if answer.finish == "length" or (fault in _ONLY_TEXT and answer.text):
        return HOLDS
    if answer.problems and (calls or answer.text):
        return Verdict("holds", "", f"reported: {answer.problems}")
    return does_not("the right call, or an error", calls or answer.text or "an empty answer")


def _looks_right(name: Any, value: Any) -> bool:
    """Whether a client would run a call."""
    return name == "book_table" and not validator_of(_TOOL["function"]["parameters"]).faults(value)


def _judge_refusal(answer: Answer, calls: list[tuple[Any, Any]]) -> Verdict:
    if calls:
        return does_not("no call: the model refused", calls)
    # The Messages API has no field for it.
    words = answer.text if answer.wire == "messages" else answer.refusal
    return HOLDS if words == _REPLY else does_not(f"the refusal {_REPLY}", words or answer.text)


def _late_error(answer: Answer) -> Verdict:
    """Judge an error after the first byte."""
    error = answer.error
    words = error.get("message") if isinstance(error, dict) else None
    if not isinstance(words, str) or not words:
        return does_not("an error with a message", error)
    if answer.wire != "responses" and not isinstance(error.get("type"), str):
        return does_not("an error with a type", error)
    if answer.wire != "responses" and answer.finish:
        return does_not("no finish after the error", answer.finish)
    return keeps("framing", "items", "ids")(answer)
