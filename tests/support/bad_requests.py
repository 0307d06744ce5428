"""Wrong requests as data: what differs from a good one, and the error that OpenAI gives for it.

A message that OpenAI words is held exactly; in one of our own `…` stands for anything, and the rest must be in it.
Known by public threads that quote the API, November 2026.
"""

from typing import Any

from msgspec import Struct

from tests.support.outputs import CALL, HISTORY, QUESTION, TOOLS


class Bad(Struct, frozen=True):
    """A wrong request: the fields that differ from a good one (None = left out), and its error."""

    title: str
    given: Any
    message: str
    param: str | None = None
    code: str | None = None
    status: int = 400


def missing(title: str, param: str, given: Any) -> Bad:
    return Bad(title, given, f"Missing required parameter: '{param}'.", param, "missing_required_parameter")


def wrong_type(param: str, expected: str, got: str, given: Any) -> Bad:
    message = f"Invalid type for '{param}': expected {expected}, but got {got} instead."
    return Bad(f"{param} is {got}", given, message, param, "invalid_type")


def out_of_range(param: str, kind: str, above: bool, bound: int, value: Any) -> Bad:
    side, sign, code = ("above maximum", "<=", "above_max") if above else ("below minimum", ">=", "below_min")
    message = f"Invalid '{param}': {kind} {side} value. Expected a value {sign} {bound}, but got {value} instead."
    return Bad(f"{param} is {value}", {param: value}, message, param, f"{kind}_{code}_value")


def function(**fields: Any) -> dict[str, Any]:
    return {"tools": [{"type": "function", "function": {"name": "f", **fields}}]}


def schema(title: str, parameters: Any, fault: str, *, strict: bool | None = None) -> Bad:
    fields = {"parameters": parameters} | ({"strict": strict} if strict is not None else {})
    message = f"Invalid schema for function 'f': {fault}"
    return Bad(title, function(**fields), message, "tools[0].function.parameters", "invalid_function_parameters")


def messages(*given: Any) -> dict[str, Any]:
    return {"messages": list(given)}


def assistant(*calls: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


PATTERN = "string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
ROLES = "Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'."
ARGUMENTS = "messages[1].tool_calls[0].function.arguments"
NO_ANSWER = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
    "The following tool_call_ids did not have response messages: "
)
NO_CALL = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
UNION = "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
CONTENT = "one of a string or array of objects"

BAD = [
    # what is missing
    missing("no model", "model", {"model": None}),
    missing("no messages", "messages", {"messages": None}),
    Bad(
        "a request of the Responses API",
        {"messages": None, "input": "Hi"},
        "Missing required parameter: 'messages'. … /v1/responses.",
        "messages",
        "missing_required_parameter",
    ),
    missing("no role", "messages[1].role", messages(QUESTION, {"content": "Hi"})),
    missing("no content of a user", "messages[0].content", messages({"role": "user"})),
    missing(
        "no content of a tool",
        "messages[2].content",
        messages(*HISTORY[:2], {"role": "tool", "tool_call_id": "call_1"}),
    ),
    missing("no id of the call", "messages[2].tool_call_id", messages(*HISTORY[:2], {"role": "tool", "content": "18"})),
    missing(
        "no name of a function's output", "messages[1].name", messages(QUESTION, {"role": "function", "content": ""})
    ),
    missing(
        "no type of a part", "messages[0].content[0].type", messages({"role": "user", "content": [{"text": "Hi"}]})
    ),
    missing(
        "no text of a part", "messages[0].content[0].text", messages({"role": "user", "content": [{"type": "text"}]})
    ),
    missing("no function of a call", "messages[1].tool_calls[0].function", messages(QUESTION, assistant({"id": "a"}))),
    missing(
        "no name of a call",
        "messages[1].tool_calls[0].function.name",
        messages(QUESTION, assistant({"id": "a", "type": "function", "function": {"arguments": "{}"}})),
    ),
    missing("no type of a tool", "tools[0].type", {"tools": [{"function": {"name": "f"}}]}),
    missing("no function of a tool", "tools[0].function", {"tools": [{"type": "function"}]}),
    missing("a tool of the other API", "tools[0].function", {"tools": [{"type": "function", "name": "f"}]}),
    missing("no name of a tool", "tools[1].function.name", {"tools": [TOOLS[0], {"type": "function", "function": {}}]}),
    missing("no type of a choice", "tool_choice.type", {"tools": TOOLS, "tool_choice": {"function": {"name": "f"}}}),
    missing("no function of a choice", "tool_choice.function", {"tools": TOOLS, "tool_choice": {"type": "function"}}),
    missing(
        "no name of a choice",
        "tool_choice.function.name",
        {"tools": TOOLS, "tool_choice": {"type": "function", "function": {}}},
    ),
    missing("no name of an old choice", "function_call.name", {"functions": [{"name": "f"}], "function_call": {}}),
    missing("no type of a format", "response_format.type", {"response_format": {}}),
    missing("no schema of a format", "response_format.json_schema", {"response_format": {"type": "json_schema"}}),
    missing(
        "no name of a format",
        "response_format.json_schema.name",
        {"response_format": {"type": "json_schema", "json_schema": {"schema": {}}}},
    ),
    Bad(
        "a schema of a format that is none",
        {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"enum": 5}}}},
        "Invalid schema for response_format 'n': In context=('enum',), 5 is not of type \"array\".",
        "response_format",
        "invalid_json_schema",
    ),
    # what has the wrong type
    wrong_type("model", "a string", "an integer", {"model": 5}),
    wrong_type("messages", "an array of objects", "a string", {"messages": "Hi"}),
    wrong_type("messages[0]", "an object", "a string", messages("Hi")),
    wrong_type("messages[0].role", "a string", "null", messages({"role": None, "content": "Hi"})),
    wrong_type("messages[0].content", CONTENT, "an object", messages({"role": "user", "content": {"text": "Hi"}})),
    wrong_type("messages[0].content", CONTENT, "an integer", messages({"role": "user", "content": 5})),
    wrong_type("messages[0].content", CONTENT, "null", messages({"role": "user", "content": None})),
    wrong_type("messages[0].content[0]", "an object", "a string", messages({"role": "user", "content": ["Hi"]})),
    wrong_type(
        ARGUMENTS,
        "a string",
        "an object",
        messages(QUESTION, assistant({**CALL, "function": {"name": "f", "arguments": {"x": 1}}}), HISTORY[2]),
    ),
    wrong_type(
        "messages[2].tool_call_id", "a string", "an integer", messages(*HISTORY[:2], {**HISTORY[2], "tool_call_id": 1})
    ),
    wrong_type("tools", "an array of objects", "an object", {"tools": TOOLS[0]}),
    wrong_type("tools[0]", "an object", "a string", {"tools": ["f"]}),
    wrong_type("tools[0].function", "an object", "a string", {"tools": [{"type": "function", "function": "f"}]}),
    wrong_type("tools[0].function.name", "a string", "an integer", function(name=5)),
    wrong_type("tools[0].function.description", "a string", "an array", function(description=["d"])),
    wrong_type("tools[0].function.parameters", "an object", "a string", function(parameters="{}")),
    wrong_type("tools[0].function.strict", "a boolean", "a string", function(strict="yes")),
    wrong_type(
        "tool_choice.function.name",
        "a string",
        "an integer",
        {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": 5}}},
    ),
    wrong_type("parallel_tool_calls", "a boolean", "a string", {"tools": TOOLS, "parallel_tool_calls": "no"}),
    wrong_type("stream", "a boolean", "a string", {"stream": "yes"}),
    wrong_type("stream_options", "an object", "a boolean", {"stream_options": True}),
    wrong_type("temperature", "a decimal", "a string", {"temperature": "hot"}),
    wrong_type("max_tokens", "an integer", "a string", {"max_tokens": "10"}),
    wrong_type("max_tokens", "an integer", "a boolean", {"max_tokens": True}),
    wrong_type("response_format", "an object", "a string", {"response_format": "json"}),
    wrong_type("seed", "an integer", "an array", {"seed": [1]}),
    wrong_type("logit_bias", "an object", "an array", {"logit_bias": [1]}),
    wrong_type("prediction", "an object", "a string", {"prediction": "x"}),
    wrong_type("store", "a boolean", "a string", {"store": "yes"}),
    wrong_type("metadata", "an object", "an integer", {"metadata": 3}),
    wrong_type("user", "a string", "an integer", {"user": 5}),
    wrong_type("service_tier", "a string", "an integer", {"service_tier": 7}),
    wrong_type("prompt_cache_key", "a string", "an integer", {"prompt_cache_key": 7}),
    wrong_type("safety_identifier", "a string", "an array", {"safety_identifier": []}),
    Bad(
        "tool_choice is a number",
        {"tools": TOOLS, "tool_choice": 5},
        "Invalid type for 'tool_choice': …",
        "tool_choice",
        "invalid_type",
    ),
    Bad("stop is a number", {"stop": 5}, "Invalid type for 'stop': …", "stop", "invalid_type"),
    # what is out of its bounds
    out_of_range("temperature", "decimal", True, 2, 3),
    out_of_range("temperature", "decimal", False, 0, -1),
    out_of_range("top_p", "decimal", True, 1, 1.5),
    out_of_range("presence_penalty", "decimal", False, -2, -3),
    out_of_range("max_tokens", "integer", False, 1, 0),
    out_of_range("max_completion_tokens", "integer", False, 1, -5),
    out_of_range("top_logprobs", "integer", True, 20, 21),
    Bad(
        "five stops",
        {"stop": list("abcde")},
        "Invalid 'stop': array too long. Expected an array with maximum length 4, but got an array with length 5 "
        "instead.",
        "stop",
        "array_above_max_length",
    ),
    Bad(
        "no messages in the list",
        {"messages": []},
        "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
        "messages",
        "empty_array",
    ),
    # what is not among the values
    Bad(
        "an unknown role",
        messages({"role": "owner", "content": "Hi"}),
        f"Invalid value: 'owner'. {ROLES}",
        "messages[0].role",
        "invalid_value",
    ),
    Bad(
        "an unknown part",
        messages({"role": "user", "content": [{"type": "image", "image": "x"}]}),
        "Invalid value: 'image'. Supported values are: 'text', 'image_url', 'input_audio', and 'file'.",
        "messages[0].content[0].type",
        "invalid_value",
    ),
    Bad(
        "an image for a tool",
        messages(*HISTORY[:2], {**HISTORY[2], "content": [{"type": "image_url", "image_url": {"url": "x"}}]}),
        "Invalid value: 'image_url'. Supported values are: 'text'.",
        "messages[2].content[0].type",
        "invalid_value",
    ),
    Bad(
        "an unknown effort",
        {"reasoning_effort": "huge"},
        "Invalid value: 'huge'. Supported values are: 'none', 'minimal', 'low', 'medium', 'high', 'xhigh', and 'max'.",
        "reasoning_effort",
        "invalid_value",
    ),
    Bad(
        "an unknown choice",
        {"tools": TOOLS, "tool_choice": "force"},
        "Invalid value: 'force'. Supported values are: 'none', 'auto', and 'required'.",
        "tool_choice",
        "invalid_value",
    ),
    Bad(
        "an unknown mode of allowed tools",
        {"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "none", "tools": []}}},
        "Invalid value: 'none'. Supported values are: 'auto' and 'required'.",
        "tool_choice.allowed_tools.mode",
        "invalid_value",
    ),
    Bad(
        "no allowed tools",
        {"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}},
        "Invalid 'tool_choice.allowed_tools.tools': empty array. Expected an array with minimum length 1, but got an "
        "empty array instead.",
        "tool_choice.allowed_tools.tools",
        "empty_array",
    ),
    Bad(
        "an allowed tool that is not offered",
        {
            "tools": TOOLS,
            "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "zz"}]},
        },
        "…no tool is called 'zz'…",
        "tool_choice",
        "invalid_value",
    ),
    Bad(
        "an unknown format",
        {"response_format": {"type": "yaml"}},
        "Invalid value: 'yaml'. Supported values are: 'json_object', 'json_schema', and 'text'.",
        "response_format.type",
        "invalid_value",
    ),
    Bad(
        "a tool kind that is not run here",
        {"tools": [{"type": "code_interpreter"}]},
        "…code_interpreter…function…",
        "tools[0].type",
        "unsupported_value",
    ),
    Bad(
        "a tool kind that nobody knows",
        {"tools": [TOOLS[0], {"type": "functoin", "function": {"name": "f"}}]},
        "…functoin…function…",
        "tools[1].type",
        "unsupported_value",
    ),
    # tools
    Bad(
        "a space in a name",
        function(name="get weather"),
        f"Invalid 'tools[0].function.name': {PATTERN}",
        "tools[0].function.name",
        "invalid_value",
    ),
    Bad(
        "a dot in a name",
        function(name="get.weather"),
        f"Invalid 'tools[0].function.name': {PATTERN}",
        "tools[0].function.name",
        "invalid_value",
    ),
    Bad(
        "a line end behind a name",
        function(name="f\n"),
        f"Invalid 'tools[0].function.name': {PATTERN}",
        "tools[0].function.name",
        "invalid_value",
    ),
    Bad(
        "letters beyond ASCII in a name",
        function(name="wétter"),
        f"Invalid 'tools[0].function.name': {PATTERN}",
        "tools[0].function.name",
        "invalid_value",
    ),
    Bad(
        "an empty name",
        function(name=""),
        "Invalid 'tools[0].function.name': empty string. …",
        "tools[0].function.name",
        "empty_string",
    ),
    Bad(
        "a long name",
        function(name="x" * 71),
        "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64, but got a string "
        "with length 71 instead.",
        "tools[0].function.name",
        "string_above_max_length",
    ),
    Bad(
        "129 tools",
        {"tools": [{"type": "function", "function": {"name": f"f{number}"}} for number in range(129)]},
        "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 129 "
        "instead.",
        "tools",
        "array_above_max_length",
    ),
    Bad(
        "two tools of one name",
        {"tools": [*TOOLS, TOOLS[0]]},
        "…get_weather…",
        "tools[2].function.name",
        "invalid_value",
    ),
    # their choice
    *(
        Bad(
            f"the choice {choice} without tools",
            {"tool_choice": choice},
            "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.",
            "tool_choice",
        )
        for choice in ("auto", "required", {"type": "function", "function": {"name": "f"}})
    ),
    Bad(
        "a choice beside an empty list of tools",
        {"tools": [], "tool_choice": "auto"},
        "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.",
        "tool_choice",
    ),
    *(
        Bad(
            f"parallel calls {parallel} without tools",
            {"parallel_tool_calls": parallel},
            "Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are "
            "specified.",
            "parallel_tool_calls",
        )
        for parallel in (True, False)
    ),
    Bad(
        "a named tool that nobody offers",
        {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "get_wether"}}},
        "…get_wether…",
        "tool_choice",
        "invalid_value",
    ),
    Bad(
        "an old choice without functions",
        {"function_call": "auto"},
        "Invalid value for 'function_call': 'function_call' is only allowed when 'functions' are specified.",
        "function_call",
    ),
    Bad(
        "a space in an old name",
        {"functions": [{"name": "a b"}]},
        f"Invalid 'functions[0].name': {PATTERN}",
        "functions[0].name",
        "invalid_value",
    ),
    *(
        Bad(
            f"tools beside {field}",
            {"tools": TOOLS, field: value},
            "Invalid request: 'functions' and 'tools' cannot both be provided. 'functions' are deprecated; use the "
            "'tools' parameter instead.",
        )
        for field, value in (("functions", [{"name": "f"}]), ("functions", []), ("function_call", "auto"))
    ),
    missing("no name of a function", "functions[0].name", {"functions": [{"description": "d"}]}),
    Bad(
        "an old choice that nobody offers",
        {"functions": [{"name": "f"}], "function_call": {"name": "g"}},
        "…'g'…",
        "function_call",
        "invalid_value",
    ),
    Bad(
        "a word that the old choice does not know",
        {"functions": [{"name": "f"}], "function_call": "required"},
        "Invalid value: 'required'.…",
        "function_call",
        "invalid_value",
    ),
    # schemas
    schema(
        "a schema without a type",
        {"properties": {}},
        "schema must be a JSON Schema of 'type: \"object\"', got 'type: null'.",
    ),
    schema(
        "a schema of a string",
        {"type": "string"},
        "schema must be a JSON Schema of 'type: \"object\"', got 'type: \"string\"'.",
    ),
    schema("a union at the root", {"type": "object", "anyOf": [{"type": "object"}]}, UNION),
    schema("an enumeration at the root", {"type": "object", "enum": [{}]}, UNION),
    # calls and results
    Bad("a result without a call", messages(QUESTION, HISTORY[2]), NO_CALL, "messages.[1].role"),
    Bad(
        "a result of another call",
        messages(*HISTORY[:2], {**HISTORY[2], "tool_call_id": "call_9"}),
        NO_CALL,
        "messages.[2].role",
    ),
    Bad(
        "a result behind a text",
        messages(*HISTORY, {"role": "assistant", "content": "So."}, HISTORY[2]),
        NO_CALL,
        "messages.[4].role",
    ),
    Bad("a call without a result", messages(*HISTORY[:2], QUESTION), NO_ANSWER + "call_1", "messages.[2].role"),
    Bad(
        "a call whose result comes late",
        messages(*HISTORY[:2], QUESTION, HISTORY[2]),
        NO_ANSWER + "call_1",
        "messages.[2].role",
    ),
    Bad(
        "one of two calls without a result",
        messages(QUESTION, assistant(CALL, {**CALL, "id": "call_2"}), HISTORY[2], QUESTION),
        NO_ANSWER + "call_2",
        "messages.[3].role",
    ),
    Bad("a call at the end", messages(*HISTORY[:2]), NO_ANSWER + "call_1", "messages.[1].role"),
    # what is not done here
    Bad("nine answers", {"n": 9}, "…'n'…", "n", "integer_above_max_value"),
    Bad("an answer in audio", {"modalities": ["text", "audio"]}, "…'modalities'…", "modalities", "unsupported_value"),
    Bad(
        "settings of audio",
        {"audio": {"voice": "alloy", "format": "wav"}},
        "…'audio'…",
        "audio",
        "unsupported_parameter",
    ),
    Bad(
        "a search of the web",
        {"web_search_options": {}},
        "…'web_search_options'…[search]…",
        "web_search_options",
        "unsupported_parameter",
    ),
    Bad("an unknown model", {"model": "nativ"}, "…'nativ'…'native'…", "model", "model_not_found", 404),
]
# What strict schemas may not hold. Their place in a stream makes no difference, as for all the others.
STRICT = [
    schema(
        "an open object",
        {
            "type": "object",
            "properties": {"p": {"type": "object", "properties": {}}},
            "required": ["p"],
            "additionalProperties": False,
        },
        "In context=('properties', 'p'), 'additionalProperties' is required to be supplied and to be false.",
        strict=True,
    ),
    schema(
        "a key that is not required",
        {"type": "object", "properties": {"p": {"type": "string"}}, "required": [], "additionalProperties": False},
        "In context=(), 'required' is required to be supplied and to be an array including every key in properties. "
        "Missing 'p'.",
        strict=True,
    ),
    schema(
        "no type",
        {
            "type": "object",
            "properties": {"p": {"type": "array", "items": {}}},
            "required": ["p"],
            "additionalProperties": False,
        },
        "In context=('properties', 'p', 'items'), schema must have a 'type' key.",
        strict=True,
    ),
    schema(
        "a keyword outside the subset",
        {
            "type": "object",
            "properties": {"p": {"oneOf": [{"type": "string"}]}},
            "required": ["p"],
            "additionalProperties": False,
        },
        "In context=('properties', 'p'), 'oneOf' is not permitted.",
        strict=True,
    ),
]
