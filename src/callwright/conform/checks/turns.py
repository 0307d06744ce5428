"""Checks of several requests: ids in a second turn, conversations that the server stores, and keys."""

from collections.abc import Generator, Mapping
from typing import Any, Final

from callwright.conform.answer import DONE, Answer, Body
from callwright.conform.check import HOLDS, Check, Step, Talk, Verdict, does_not, refusal
from callwright.conform.checks.asks import ANSWERS, ASKED, BOTH, CALL, CALLING, TEXT, guides, output, sources, user
from callwright.conform.checks.errors import error_form
from callwright.eval.wires import object_of
from callwright.tolerant_json.codec import NotJsonError, decode

_STATE: Final = guides("conversation-state", responses_only=True)
_KEYS: Final = sources("reference/overview", "reference/overview", "api/errors")
_NO_CALL: Final = Verdict("not shown", "a call", "none")
_WRONG: Final = "sk-wrong-7f3"
# Longer than the second request, so that its tokens show whether the server has read it again.
_LONG: Final = user("What is the weather in Oslo now? Use a tool. " + "It is for a walk along the harbour. " * 12)


def _new_id() -> Generator[Step, Answer, Verdict]:
    first = yield Step(CALL)
    if not first.calls:
        return _NO_CALL
    ids = [str(made.id) for made in first.calls]
    made = [
        {"id": id_, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for id_, call in zip(ids, first.calls, strict=True)
    ]
    turn = {"role": "assistant", "content": None, "tool_calls": made}
    messages = [*ASKED, turn, *map(output, ids), user("And in Bergen? Use the tool again.")]
    second = yield Step({**CALL, "messages": messages})
    again = [call.id for call in second.calls if call.id in ids]
    if again:
        return does_not("an id that no earlier call has", again[0])
    return HOLDS if second.calls else _NO_CALL


def _other_id() -> Generator[Step, Answer, Verdict]:
    first = yield Step(TEXT)
    second = yield Step(CALL)
    id_ = _id_of(second)
    if id_ is None:
        return Verdict("not shown", "an id", "none")
    return HOLDS if id_ != _id_of(first) else does_not("an id that no earlier answer has", id_)


def _id_of(answer: Answer) -> Any:
    """The id of an answer, of a stream that in its first event."""
    body = answer.body
    if answer.streamed:
        try:
            body = object_of(decode(next(iter(body or ()), "{}")))
        except NotJsonError:
            return None
        body = body.get("response") or body.get("message") or body
    return object_of(body).get("id")


def _response(answer: Answer) -> Body:
    """The response object, of a stream that of its last event."""
    if not answer.streamed:
        return object_of(answer.body)
    last = next((data for data in reversed(answer.body or ()) if data != DONE), "{}")
    try:
        return object_of(object_of(decode(last)).get("response"))
    except NotJsonError:
        return {}


def _reads_again(first: Answer, second: Answer) -> Verdict:
    if first.usage is None or second.usage is None:
        return Verdict("not shown", "counts of tokens", "none")
    if second.usage[0] <= first.usage[0]:
        return does_not(f"more than the {first.usage[0]} input tokens of the response before", second.usage[0])
    return HOLDS


def _previous_response() -> Generator[Step, Answer, Verdict]:
    first = yield Step({**CALL, "messages": [_LONG]}, {"store": True})
    if not first.calls:
        return _NO_CALL
    id_ = _response(first).get("id")
    results = [{"type": "function_call_output", "call_id": call.id, "output": "12 degrees"} for call in first.calls]
    # With the same tools, which are counted, too: they are not stored.
    second = yield Step({**TEXT, "tools": BOTH}, {"previous_response_id": id_, "input": results})
    if _response(second).get("previous_response_id") != id_:
        return does_not(f"previous_response_id {id_}", _response(second).get("previous_response_id"))
    return _reads_again(first, second)


def _conversation() -> Generator[Step, Answer, Verdict]:
    created = yield Step(path="/conversations")
    id_ = object_of(created.body).get("id")
    if not isinstance(id_, str):
        return does_not("a conversation with an id", created.body)
    first = yield Step({"messages": [_LONG]}, {"conversation": id_, "store": True})
    second = yield Step(TEXT, {"conversation": id_, "store": True})
    named = object_of(_response(second).get("conversation")).get("id")
    return _reads_again(first, second) if named == id_ else does_not(f"conversation {id_}", named)


def _judge_denial(headers: Mapping[str, str]) -> Talk:
    """Judge whether a request with these headers, and no others of a key, is refused with 401."""

    def talk() -> Generator[Step, Answer, Verdict]:
        answer = yield Step(headers=headers)
        if answer.status < 400:
            return Verdict("not offered", "", "it takes any key")
        if answer.status != 401:
            return does_not("HTTP 401", refusal(answer))
        form = error_form(answer)
        if form.status != "holds" or answer.wire != "messages":
            return form
        kind = answer.error["type"]
        return HOLDS if kind == "authentication_error" else does_not("error.type authentication_error", kind)

    return talk


def _judge_entry(headers: Mapping[str, str]) -> Talk:
    """Judge whether the right key is taken in this header alone."""

    def talk() -> Generator[Step, Answer, Verdict]:
        answer = yield Step(headers=headers)
        return HOLDS if answer.status == 200 else does_not("an answer", refusal(answer))

    return talk


def _keys(name: str, title: str, talk: Talk, where: Mapping[Any, str]) -> Check:
    return Check(name=f"key.{name}", title=title, sources=where, talk=talk, wants="error", variants=("whole",))


_OPENAI_KEYS: Final = {wire: page for wire, page in _KEYS.items() if wire != "messages"}
_ANTHROPIC_KEYS: Final = {"messages": _KEYS["messages"]}

CHECKS: Final = (
    Check(
        name="answer.new_id",
        title="Each answer has another id",
        sources=ANSWERS,
        talk=_other_id,
    ),
    Check(
        name="call.new_id",
        title="A call of a later turn has another id than those before",
        sources=CALLING,
        talk=_new_id,
    ),
    Check(
        name="history.previous_response",
        title="previous_response_id: the stored response is read again",
        sources=_STATE,
        talk=_previous_response,
        optional=True,
    ),
    Check(
        name="history.conversation",
        title="A stored conversation: its items are read again",
        sources=_STATE,
        talk=_conversation,
        optional=True,
        variants=("whole",),
    ),
    _keys("bearer", "The key in Authorization: Bearer", _judge_entry({"authorization": "Bearer {key}"}), _OPENAI_KEYS),
    _keys("x_api_key", "The key in x-api-key", _judge_entry({"x-api-key": "{key}"}), _ANTHROPIC_KEYS),
    _keys("wrong", "A wrong key: 401", _judge_denial({"authorization": f"Bearer {_WRONG}"}), _OPENAI_KEYS),
    _keys("wrong_x_api_key", "A wrong key in x-api-key: 401", _judge_denial({"x-api-key": _WRONG}), _ANTHROPIC_KEYS),
    _keys("none", "No key: 401", _judge_denial({}), _KEYS),
)
