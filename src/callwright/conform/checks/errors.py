"""Errors before the first byte: the status, the form of the body, and the field that is named."""

from collections.abc import Mapping
from typing import Any, Final

from callwright.conform.answer import JSON, Answer, Body
from callwright.conform.check import HELLO, HOLDS, Change, Check, Judge, Verdict, does_not, refusal
from callwright.conform.checks.asks import (
    ASKED,
    BOTH,
    REFUSALS,
    REQUIRED,
    STRICT,
    TEXT,
    WEATHER,
    choice_of,
    field,
    guides,
    tool,
)
from callwright.eval.wires import WIRES, WireName

_OPEN: Final = {"type": "object", "properties": {"city": {"type": "string"}}}
_TYPES: Final = {400: "invalid_request_error", 404: "not_found_error"}


def error_form(answer: Answer) -> Verdict:
    """Judge the form of an error's body."""
    error = answer.error
    kind = answer.headers.get("content-type", "").split(";")[0].strip()
    if answer.status and kind != JSON:
        return does_not(JSON, kind or "no content type")
    names = ("type", "message") if answer.wire == "messages" else ("message", "type", "param", "code")
    if not isinstance(error, dict) or any(name not in error for name in names):
        return does_not(f"error with {', '.join(names)}", answer.body)
    if not isinstance(error["message"], str) or not error["message"].strip():
        return does_not("a message", error)
    body = answer.body
    if answer.wire == "messages" and isinstance(body, dict) and body.get("type") != "error":
        return does_not('type "error"', body)
    return HOLDS


def _judge_refusal(status: int, params: Mapping[WireName, str]) -> Judge:
    """Judge an error of the caller. `params`: the start of its `param`, if any is expected."""

    def judge(answer: Answer) -> Verdict:
        if answer.status < 400:
            if status == 404:
                return Verdict("not offered", "", "it has one model, and takes any name")
            return does_not(
                f"HTTP {status}", f"HTTP {answer.status}: {answer.text or [call.name for call in answer.calls]}"
            )
        if answer.status != status:
            return does_not(f"HTTP {status}", refusal(answer))
        form = error_form(answer)
        if form.status != "holds":
            return form
        if answer.wire == "messages":
            expected = _TYPES[status]
            return HOLDS if answer.error["type"] == expected else does_not(f"error.type {expected}", answer.error)
        if answer.error["type"] != "invalid_request_error":
            return does_not("error.type invalid_request_error", answer.error)
        param, wanted = answer.error["param"], params.get(answer.wire, "")
        if wanted and not str(param).startswith(wanted):
            return does_not(f"error.param {wanted}", f"{param}: {answer.error['message']}")
        return HOLDS

    return judge


def _without(name: str) -> Change:
    def change(wire: WireName, sent: Body) -> Body:
        gone = _input(wire) if name == "messages" else name
        return {key: value for key, value in sent.items() if key != gone}

    return change


def _with(**fields: Any) -> Change:
    return lambda _, sent: {**sent, **fields}


def _input(wire: WireName) -> str:
    return "input" if wire == "responses" else "messages"


def _unknown_role(wire: WireName, sent: Body) -> Body:
    return {**sent, _input(wire): [{"role": "robot", "content": "Hi"}]}


def _unknown_choice(wire: WireName, sent: Body) -> Body:
    return {**sent, "tool_choice": {"type": "sometimes"} if wire == "messages" else "sometimes"}


def _no_json(_: WireName, __: Body) -> bytes:
    return b'{"model": "m", "messages": [{"role": '


_OPENAI: Final[tuple[WireName, ...]] = ("chat", "responses")
# The field with the conversation, over chat and Responses.
_INPUT: Final = ("messages", "input")
_OFFER: Final[Body] = {"messages": ASKED, "tools": BOTH}
_NO_RESPONSE: Final = "resp_00000000000000000000000000000000"


def _offer(*tools: Body) -> Body:
    return {"messages": ASKED, "tools": [*tools]}


def _strict_format(schema: Body) -> Body:
    form = {"type": "json_schema", "json_schema": {"name": "person", "strict": True, "schema": schema}}
    return {"messages": ASKED, "response_format": form}


def _error(
    name: str,
    title: str,
    *fields: str,
    body: Body = TEXT,
    right: Body = HELLO,
    change: Change = lambda _, sent: sent,
    status: int = 400,
    where: Mapping[WireName, str] | None = None,
    wires: tuple[WireName, ...] = WIRES,
) -> Check:
    """A check of an error. `fields`: the one that it names, by the API if it differs; `right`: the request without the
    fault; `where`: the pages, if not the entry of the field.
    """
    pages = where or (field(*fields) if fields else REFUSALS)
    return Check(
        name=f"errors.{name}",
        title=title,
        sources={wire: page for wire, page in pages.items() if wire in wires},
        asks=(body,),
        judge=_judge_refusal(status, {"chat": fields[0], "responses": fields[-1]} if fields else {}),
        given=(HELLO, right),
        change=change,
        wants="error",
    )


def _choose(name: str, title: str, body: Body, change: Change = lambda _, sent: sent) -> Check:
    return _error(name, title, "tool_choice", body={"messages": ASKED, **body}, right=REQUIRED, change=change)


CHECKS: Final = (
    _error("bad_json", "A body that is not JSON", change=_no_json),
    _error("no_model", "A request without model", "model", change=_without("model")),
    _error("unknown_model", "An unknown model: 404", change=_with(model="no-such-model-7f3"), status=404),
    _error("no_messages", "A request without messages or input", *_INPUT, change=_without("messages")),
    _error(
        *("no_max_tokens", "A request without max_tokens", "max_tokens"),
        change=_without("max_tokens"),
        wires=("messages",),
    ),
    _error(
        *("unknown_response", "previous_response_id names no stored response", "previous_response_id"),
        change=_with(previous_response_id=_NO_RESPONSE),
        wires=("responses",),
    ),
    _error("wrong_type", "A text for the list of tools", "tools", right=_OFFER, change=_with(tools="get_weather")),
    _error("unknown_role", "A message of an unknown role", *_INPUT, change=_unknown_role),
    _error("tool_name", "A tool whose name has a space", "tools", body=_offer(tool("get weather")), right=_OFFER),
    _error(
        *("tool_schema", "A tool whose parameters are not an object", "tools"),
        body=_offer(tool("get_weather", schema={"type": "array"})),
        right=_OFFER,
    ),
    _error("duplicate_tools", "Two tools of one name", "tools", body=_offer(WEATHER, WEATHER), right=_OFFER),
    _error(
        *("strict_schema", "A strict tool whose schema allows other properties", "tools"),
        body=_offer(tool("get_weather", strict=True, schema=_OPEN)),
        right=_offer(tool("get_weather", strict=True)),
        where=STRICT,
        wires=_OPENAI,
    ),
    _error(
        *("strict_format", "A strict format whose schema allows other properties", "response_format", "text"),
        body=_strict_format(_OPEN),
        right=_strict_format(WEATHER["function"]["parameters"]),
        where=guides("structured-outputs#supported-schemas"),
    ),
    _choose("tool_choice_value", "An unknown word as tool_choice", REQUIRED, _unknown_choice),
    _choose(
        "unknown_tool",
        "tool_choice names a tool that is not offered",
        {**REQUIRED, "tool_choice": choice_of("get_tides")},
    ),
    _choose("choice_without_tools", "A call is required, and no tool is offered", {"tool_choice": "required"}),
)
