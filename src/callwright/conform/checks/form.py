"""The form of answers: fields, ids, finish, usage, and the events of a stream."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from callwright.conform.answer import EVENTS, JSON, Answer, Body, Rule, repeated_key, show
from callwright.conform.check import HOLDS, Check, Judge, Verdict, does_not, keeps
from callwright.conform.checks.asks import ANSWERS, CALL, CALLING, REQUIRED, STREAMS, TEXT, TWO, completion, sources
from callwright.dialects.base import FORMATS
from callwright.eval.wires import WIRES, WireName

_CALL_ID: Final[dict[WireName, str]] = {
    "chat": r"\S{1,64}",
    "responses": r"\S{1,64}",
    "messages": r"[a-zA-Z0-9_-]{1,128}",
}
_REQUEST_ID: Final[dict[WireName, str]] = {
    "chat": "x-request-id",
    "responses": "x-request-id",
    "messages": "request-id",
}

_HEADERS: Final = sources("reference/overview", "reference/overview", "api/errors#request-id")
# How formats open calls, and control tokens; what also has other meanings (`functions.`, `Action:`) is left out.
_SURE: Final = [re.escape(mark) for mark, ways in FORMATS.openings.items() if any(way.is_sure for way in ways)]
_MARKUP: Final = re.compile(
    "|".join([r"<[|｜][\w▁:]+[|｜]>", r"</?tool_call>", *(one for one in _SURE if not one[0].isalpha())])
)
_LIMITS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens")


def _content_type(answer: Answer) -> Verdict:
    expected = EVENTS if answer.streamed else JSON
    got = answer.headers.get("content-type", "")
    return HOLDS if got.split(";")[0].strip().lower() == expected else does_not(expected, got)


def _request_id(answer: Answer) -> Verdict:
    name = _REQUEST_ID[answer.wire]
    return HOLDS if answer.headers.get(name) else does_not(f"the header {name}", ", ".join(answer.headers))


def _finish(answer: Answer) -> Verdict:
    expected = "tool_calls" if answer.calls else "stop"
    if answer.finish not in (expected, "length"):
        return does_not(f"a finish of {expected}", answer.finish)
    most = next((answer.sent[name] for name in _LIMITS if type(answer.sent.get(name)) is int), None)
    if answer.finish == "length" and most is not None and answer.usage and answer.usage[1] * 2 < most:
        return does_not(f"a finish of {expected}", f"length after {answer.usage[1]} of {most} tokens")
    return keeps("finish")(answer)


def _text(answer: Answer) -> Verdict:
    if not answer.is_readable:
        if (framing := keeps("framing")(answer)).status != "holds":
            return framing
        return does_not(f"{'a stream' if answer.streamed else 'an answer'} of the API", answer.body)
    if answer.calls:
        return does_not("a text, without tools", answer.calls[0].name)
    if not answer.text and answer.finish == "length":
        return Verdict("not shown", "a text", "the limit was reached before one")
    return HOLDS if answer.text else does_not("a text", "none")


def _call_ids(answer: Answer) -> Verdict:
    ids = [call.id for call in answer.calls]
    form = re.compile(_CALL_ID[answer.wire])
    odd = next((one for one in ids if not isinstance(one, str) or not form.fullmatch(one)), "")
    if odd != "":
        return does_not(f"an id as {form.pattern}", odd)
    twice = [one for one, number in Counter(ids).items() if number > 1]
    return does_not("another id for each call", twice[0]) if twice else HOLDS


def _arguments(answer: Answer) -> Verdict:
    odd = next((call for call in answer.calls if not isinstance(call.value, dict)), None)
    if odd:
        return does_not("arguments: one JSON object", odd.arguments)
    twice = next(filter(None, map(repeated_key, (answer.raw, *(call.arguments for call in answer.calls)))), "")
    return does_not("each key once", f"{twice} twice") if twice else keeps("arguments")(answer)


def _items(answer: Answer) -> Verdict:
    verdict = keeps("items")(answer)
    # A text has no items over chat.
    is_without = answer.wire == "chat" and "tools" in answer.sent and not answer.calls
    return Verdict("not shown", "a call", "none") if is_without and verdict.status == "holds" else verdict


def _no_markup(answer: Answer) -> Verdict:
    if not answer.text and not answer.calls:
        return Verdict("not shown", "a text or a call", "none")
    found = _MARKUP.search(answer.text)
    return does_not("a text without markup of calls", f"{found[0]} in {show(answer.text)}") if found else HOLDS


def _several(answer: Answer) -> Verdict:
    if len(answer.calls) < 2:
        return Verdict("not shown", "two calls", "one")
    return _call_ids(answer)


_WHOLE: Final[Mapping[str, Any]] = {"variants": ("whole",)}
_STREAMED: Final[Mapping[str, Any]] = {"variants": ("streamed",)}


def _check(
    name: str, title: str, judge: Judge, *asks: Body, where: Mapping[WireName, str] = ANSWERS, **more: Any
) -> Check:
    return Check(name=name, title=title, sources=where, asks=asks or (TEXT, REQUIRED), judge=judge, **more)


def _call(name: str, title: str, judge: Judge, *asks: Body) -> Check:
    return _check(f"call.{name}", title, judge, *asks, where=CALLING, wants="call")


def _stream(rule: Rule, title: str, *wires: WireName, judge: Judge | None = None) -> Check:
    where = {wire: STREAMS[wire] for wire in wires or WIRES}
    return _check(f"stream.{rule}", title, judge or keeps(rule), TEXT, CALL, TWO, where=where, **_STREAMED)


def _key(key: Rule, title: str, entry: str) -> Check:
    """A key that OpenAI's specification requires. It is null in most answers, so many servers leave it out, and some of
    OpenAI's own models `logprobs`. Clients with types of the specification fail then: each has a check of its own.
    """
    return _check(f"answer.{key}", f"{title} has the key {key}", keeps(key), TEXT, where=completion(entry), **_WHOLE)


CHECKS: Final = (
    _check("answer.text", "A request without tools is answered with a text", _text, TEXT, given=()),
    _check("answer.fields", "All fields of the answer, with their types", keeps("fields")),
    _check("answer.finish", "The finish reason shows whether there is a call", _finish),
    _check("answer.usage", "Tokens are counted, and the counts add up", keeps("usage")),
    _check("answer.markup", "No markup of calls in the text", _no_markup, TEXT, CALL, REQUIRED, TWO, where=CALLING),
    _key("refusal", "The message", "chat_completion_message > (schema) > (property) refusal"),
    _key("logprobs", "The choice", "chat_completion > (schema) > (property) choices"),
    _check("answer.content_type", "The content type of the answer", _content_type),
    _check("answer.request_id", "A header with the id of the request", _request_id, TEXT, where=_HEADERS, **_WHOLE),
    _call("id", "Each call has an id of the API's form, another for each", _call_ids, CALL, TWO),
    _call("arguments", "The arguments of a call are one JSON object, each key once", _arguments, CALL, TWO),
    _call("several", "Several calls in one answer", _several, TWO),
    _stream("framing", "Each event is one JSON object, named as its type"),
    _stream("start", "The stream begins once, as documented"),
    _stream("end", "The stream ends once, and nothing follows"),
    _stream("items", "Each item, block or call: one start, one end, indices in order", judge=_items),
    _stream("deltas", "The deltas are the whole text", "responses", "messages"),
    _stream("ids", "Ids stay the same in the whole stream", "chat", "responses"),
    _check(
        *("stream.usage_off", "No usage in a stream that does not ask for it", keeps("usage"), TEXT),
        where={"chat": STREAMS["chat"]},
        change=lambda _, sent: {key: value for key, value in sent.items() if key != "stream_options"},
        **_STREAMED,
    ),
    _stream("sequence", "Events are numbered in steps of one", "responses"),
)
