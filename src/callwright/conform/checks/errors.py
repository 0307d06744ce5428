"""Errors before the first byte: the status, the form of the body, and the field that is named."""

from typing import Any, Final

from callwright.conform.answer import JSON, Answer, Body
from callwright.conform.check import HELLO, HOLDS, Change, Check, Judge, Verdict, does_not, refusal
from callwright.conform.checks.asks import ASKED, BOTH, REQUIRED, TEXT, WEATHER, choice_of, guides, tool
from callwright.eval.wires import WIRES, WireName

_SOURCES: Final = guides("error-codes", "api/errors")
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


def _judge_refusal(status: int, field: str | dict[WireName, str], *, one_model: bool = False) -> Judge:
    """Judge an error of the caller. `field`: the start of its `param`; empty: none."""

    def judge(answer: Answer) -> Verdict:
        if answer.status < 400:
            if one_model:
                return Verdict("not offered", "", "it has one model, and takes any name")
            return does_not(
                f"HTTP {status}", f"HTTP {answer.status}: {answer.text or [call.name for call in answer.calls]}"
            )
        if answer.status != status:
            return does_not(f"HTTP {status}", refusal(answer))
        form = error_form(answer)
        if form.status != "holds":
            return form
        wanted = field if isinstance(field, str) else field[answer.wire]
        if answer.wire == "messages":
            expected = _TYPES[status]
            return HOLDS if answer.error["type"] == expected else does_not(f"error.type {expected}", answer.error)
        if answer.error["type"] != "invalid_request_error":
            return does_not("error.type invalid_request_error", answer.error)
        param = answer.error["param"]
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


_MESSAGES: Final[dict[WireName, str]] = {"chat": "messages", "responses": "input", "messages": "messages"}
_FORMAT: Final[dict[WireName, str]] = {"chat": "response_format", "responses": "text", "messages": "output_config"}
_OPENAI: Final[tuple[WireName, ...]] = ("chat", "responses")
_TOOLS: Final[Body] = {"messages": ASKED, "tools": BOTH}
_STRICT_TOOL: Final[Body] = {"messages": ASKED, "tools": [tool("get_weather", strict=True)]}


def _strict_format(schema: Body) -> Body:
    form = {"type": "json_schema", "json_schema": {"name": "person", "strict": True, "schema": schema}}
    return {"messages": ASKED, "response_format": form}


def _error(
    name: str,
    title: str,
    field: str | dict[WireName, str],
    body: Body = TEXT,
    change: Change = lambda _, sent: sent,
    status: int = 400,
    wires: tuple[WireName, ...] = WIRES,
    right: Body = HELLO,
) -> Check:
    """A check of an error. `right`: the request without the fault."""
    return Check(
        name=f"errors.{name}",
        title=title,
        sources={wire: _SOURCES[wire] for wire in wires},
        asks=(body,),
        judge=_judge_refusal(status, field, one_model=status == 404),
        given=(HELLO, right),
        change=change,
        wants="error",
    )


def _tools(name: str, title: str, *tools: Body, wires: tuple[WireName, ...] = WIRES, right: Body = _TOOLS) -> Check:
    return _error(name, title, "tools", {"messages": ASKED, "tools": [*tools]}, wires=wires, right=right)


def _choose(name: str, title: str, body: Body, change: Change = lambda _, sent: sent) -> Check:
    return _error(name, title, "tool_choice", {"messages": ASKED, **body}, change, right=REQUIRED)


CHECKS: Final = (
    _error("bad_json", "A body that is not JSON", "", TEXT, _no_json),
    _error("no_model", "A request without model", "model", TEXT, _without("model")),
    _error("unknown_model", "An unknown model: 404", "", TEXT, _with(model="no-such-model-7f3"), 404),
    _error("no_messages", "A request without messages or input", _MESSAGES, TEXT, _without("messages")),
    _error("no_max_tokens", "A request without max_tokens", "", TEXT, _without("max_tokens"), wires=("messages",)),
    _error(
        "unknown_response",
        "previous_response_id names no stored response",
        "previous_response_id",
        TEXT,
        _with(previous_response_id="resp_00000000000000000000000000000000"),
        wires=("responses",),
    ),
    _error("wrong_type", "A text for the list of tools", "tools", TEXT, _with(tools="get_weather"), right=_TOOLS),
    _error("unknown_role", "A message of an unknown role", _MESSAGES, TEXT, _unknown_role),
    _tools("tool_name", "A tool whose name has a space", tool("get weather")),
    _tools("tool_schema", "A tool whose parameters are not an object", tool("get_weather", schema={"type": "array"})),
    _tools("duplicate_tools", "Two tools of one name", WEATHER, WEATHER),
    _tools(
        "strict_schema",
        "A strict tool whose schema allows other properties",
        tool("get_weather", strict=True, schema=_OPEN),
        wires=_OPENAI,
        right=_STRICT_TOOL,
    ),
    _error(
        "strict_format",
        "A strict format whose schema allows other properties",
        _FORMAT,
        _strict_format(_OPEN),
        wires=_OPENAI,
        right=_strict_format(WEATHER["function"]["parameters"]),
    ),
    _choose("tool_choice_value", "An unknown word as tool_choice", REQUIRED, _unknown_choice),
    _choose(
        "unknown_tool",
        "tool_choice names a tool that is not offered",
        {**REQUIRED, "tool_choice": choice_of("get_tides")},
    ),
    _choose("choice_without_tools", "A call is required, and no tool is offered", {"tool_choice": "required"}),
)
