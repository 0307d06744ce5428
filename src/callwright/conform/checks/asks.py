"""Parts of requests that several checks share. They require the calls to judge: a weak model is not a broken server."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from callwright.conform.answer import Body
from callwright.eval.wires import WireName

_OPENAI: Final = "https://developers.openai.com/api"
_ANTHROPIC: Final = "https://platform.claude.com/docs/en"
CITIES: Final = ("Oslo", "Bergen")


def sources(chat: str = "", responses: str = "", messages: str = "") -> Mapping[WireName, str]:
    """The pages of the APIs that have something, by their paths."""
    found: dict[WireName, str] = {}
    if chat:
        found["chat"] = f"{_OPENAI}/{chat}"
    if responses:
        found["responses"] = f"{_OPENAI}/{responses}"
    if messages:
        found["messages"] = f"{_ANTHROPIC}/{messages}"
    return found


def guides(page: str, messages: str = "", *, responses_only: bool = False) -> Mapping[WireName, str]:
    """A guide of OpenAI for both of its APIs, and a page of Anthropic."""
    return sources("" if responses_only else f"docs/guides/{page}", f"docs/guides/{page}", messages)


_CHAT: Final = "reference/resources/chat/subresources/completions"
_RESPONSES: Final = "reference/resources/responses"
ANSWERS: Final = sources(f"{_CHAT}/methods/create", f"{_RESPONSES}/methods/create", "api/messages/create")
STREAMS: Final = sources(f"{_CHAT}/streaming-events", f"{_RESPONSES}/streaming-events", "build-with-claude/streaming")


def field(chat: str, responses: str = "", messages: str = "") -> Mapping[WireName, str]:
    """The entries of a request's field in the references; in the others its name is that of chat by default."""
    create = "(method) create > (params) 0.non_streaming > (param)"
    chat_entry = quote(f"(resource) chat.completions > {create} {chat} > (schema)")
    responses_entry = quote(f"(resource) responses > {create} {responses or chat} > (schema)")
    entries = {"chat": chat_entry, "responses": responses_entry, "messages": f"create.{messages or chat}"}
    return {wire: f"{page}#{entries[wire]}" for wire, page in ANSWERS.items()}


def completion(path: str) -> Mapping[WireName, str]:
    """The entry of a part of a chat answer in the reference."""
    return {"chat": f"{ANSWERS['chat']}#{quote(f'(resource) chat.completions > (model) {path}')}"}


CALLING: Final = guides("function-calling", "agents-and-tools/tool-use/handle-tool-calls")
STRICT: Final = guides("function-calling#strict-mode", "agents-and-tools/tool-use/strict-tool-use")
# Which errors there are, and their form.
REFUSALS: Final = guides("error-codes#python-library-error-types", "api/errors#http-errors")
FAILURES: Final = guides("error-codes#api-errors", "api/errors#error-shapes")
LATE_FAILURES: Final[Mapping[WireName, str]] = {
    "chat": FAILURES["chat"],
    "responses": f"{STREAMS['responses']}#error",
    "messages": f"{STREAMS['messages']}#error-events",
}


def user(text: str) -> Body:
    """A message of the user."""
    return {"role": "user", "content": text}


def tool(name: str, description: str = "", *, strict: bool | None = None, schema: Any = None) -> Body:
    """A function tool: by default with a city."""
    function: Body = {"name": name, "description": description or f"The {name[4:]} in a city now."}
    function["parameters"] = (
        schema
        if schema is not None
        else {
            "type": "object",
            "properties": {"city": {"type": "string", "enum": list(CITIES)}},
            "required": ["city"],
            "additionalProperties": False,
        }
    )
    return {"type": "function", "function": function if strict is None else {**function, "strict": strict}}


def choice_of(name: str) -> Body:
    """The choice of a tool by name."""
    return {"type": "function", "function": {"name": name}}


def call(id_: str, city: str = "Oslo", name: str = "get_weather") -> Body:
    """A call in the history."""
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": f'{{"city": "{city}"}}'}}


def output(id_: str, content: str = "12 degrees, light rain") -> Body:
    """The result of a call."""
    return {"role": "tool", "tool_call_id": id_, "content": content}


def assistant(*calls: Body, content: str | None = None) -> Body:
    """A turn of the model with calls."""
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


WEATHER: Final = tool("get_weather")
TIME: Final = tool("get_time")
BOTH: Final = [WEATHER, TIME]
ASKED: Final = [user("What is the weather in Oslo now? Use a tool.")]
TEXT: Final[Body] = {"messages": [user("Say hello.")]}
CALL: Final[Body] = {"messages": ASKED, "tools": BOTH, "tool_choice": choice_of("get_weather")}
REQUIRED: Final[Body] = {"messages": ASKED, "tools": BOTH, "tool_choice": "required"}
TWO: Final[Body] = {
    "messages": [user("What is the weather in Oslo and Bergen? Call the tool once for each city.")],
    "tools": [WEATHER],
    "tool_choice": "required",
}
