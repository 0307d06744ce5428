"""What one request may hold, over HTTP: each limit is told in the form of the API, and what is just within goes on."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec import Struct

import callwright
from callwright.gateway.config.config import Config, ModelConfig
from callwright.schema.size import has_more_parts, pattern_size, patterns
from callwright.schema.validate import validator_of
from callwright.settings import bounds
from callwright.settings.bounds import MAX_PROPERTIES, MAX_SCHEMA_PARTS, Bounds
from callwright.wire.body import decoded
from tests.support.bounded import bounded
from tests.support.http_client import CHAT, request
from tests.support.messages_client import COUNT, MESSAGES
from tests.support.outputs import QUESTION
from tests.support.responses_client import CONVERSATIONS, RESPONSES
from tests.support.servers import Gateway

LIMITS = Bounds(max_items=5, max_tools=3)
SMALL = {
    "MAX_DEPTH": 40,
    "MAX_PARTS": 30,
    "MAX_PROPERTIES": 20,
    "MAX_OPTIONS": 4,
    "MAX_SCHEMA_BYTES": 3_000,
    "MAX_SCHEMA_PARTS": 100,
    "MAX_PATTERN_SIZE": 200,
    "MAX_GRAMMAR_CHARS": 50,
}
MODEL = ModelConfig(name="simulated", upstream="simulated", mode="raw", dialect="hermes")


@pytest.fixture(scope="module")
def limited() -> Iterator[str]:
    with bounded(**SMALL):
        gateway = Gateway(Config(models=(MODEL,), limits=LIMITS))
        yield gateway.url
        gateway.stop()


def nested(levels: int) -> Any:
    value: Any = 1
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


def doubling(times: int, **keywords: Any) -> dict[str, Any]:
    """A schema of a few lines that stands for two to the power of `times` others."""
    defs: dict[str, Any] = {
        f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]} for n in range(times)
    }
    defs[f"d{times}"] = {"type": "string"}
    return {"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": defs, **keywords}


CLOSED = {"additionalProperties": False}


def of_pattern(pattern: str) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": {"type": "string", "pattern": pattern}}}


def functions(*schemas: Any) -> list[dict[str, Any]]:
    return [{"name": f"f{n}", "parameters": schema} for n, schema in enumerate(schemas)]


def lark(length: int) -> str:
    head = 'start: "a" // '
    return head + "x" * (length - len(head))


OBJECT: dict[str, Any] = {"type": "object", "properties": {}}
Build = Callable[[int], dict[str, Any]]


class Case(Struct, frozen=True):
    """What is counted, how many there may be, and the fields of a request that has so many, in either API."""

    most: int
    chat: Build
    chat_param: str | None
    responses: Build
    responses_param: str | None
    code: str


def _tools(count: int) -> list[dict[str, Any]]:
    return functions(*[OBJECT] * count)


def _filled(size: int) -> list[dict[str, Any]]:
    return [{"name": "f0", "description": "d" * size, "parameters": OBJECT}]


def _chat(tools: list[dict[str, Any]]) -> dict[str, Any]:
    return {"tools": [{"type": "function", "function": tool} for tool in tools]}


def _flat(tools: list[dict[str, Any]]) -> dict[str, Any]:
    return {"tools": [{"type": "function", **tool} for tool in tools]}


def _texts(count: int, kind: str = "text") -> list[dict[str, Any]]:
    """Two messages with so many parts."""
    part = {"type": kind, "text": "a"}
    return [{"role": "user", "content": [part] * (count // 2)}, {"role": "user", "content": [part] * -(-count // 2)}]


def _declaring(count: int) -> dict[str, Any]:
    """A strict schema of so many properties, at two levels."""
    inner = {f"p{number}": {"type": "string"} for number in range(count - 1)}
    closed = {"type": "object", "additionalProperties": False}
    part = {**closed, "properties": inner, "required": list(inner)}
    return {**closed, "properties": {"o": part}, "required": ["o"]}


def _strict(count: int) -> list[dict[str, Any]]:
    return [{**functions(_declaring(count))[0], "strict": True}]


_BAD = "invalid_function_parameters"
_EXPONENT = "tools[0].function.parameters"
CASES: dict[str, Case] = {
    "levels": Case(
        40,
        lambda n: {"metadata": nested(n - 1)},
        None,
        lambda n: {"input": [{"role": "user", "content": "hi", "extra": nested(n - 3)}]},
        None,
        "invalid_value",
    ),
    "messages": Case(
        5,
        lambda n: {"messages": [QUESTION] * n},
        "messages",
        lambda n: {"input": [QUESTION] * n},
        "input",
        "array_above_max_length",
    ),
    "parts of content": Case(
        30,
        lambda n: {"messages": _texts(n)},
        "messages",
        lambda n: {"input": _texts(n, "input_text")},
        "input",
        "array_above_max_length",
    ),
    "properties of a strict schema": Case(
        20,
        lambda n: _chat(_strict(n)),
        _EXPONENT,
        lambda n: _flat(_strict(n)),
        "tools[0].parameters",
        _BAD,
    ),
    "tools": Case(
        3, lambda n: _chat(_tools(n)), "tools", lambda n: _flat(_tools(n)), "tools", "array_above_max_length"
    ),
    "functions": Case(
        3,
        lambda n: {"functions": _tools(n)},
        "functions",
        lambda n: {
            "input": [QUESTION, {"type": "additional_tools", "role": "developer", "tools": _flat(_tools(n))["tools"]}]
        },
        "input[1].tools",
        "array_above_max_length",
    ),
    "bytes of schemas": Case(
        3_000,
        lambda n: _chat(_filled(n - len(json.dumps(_chat(_filled(0))["tools"], separators=(",", ":"))))),
        "tools",
        lambda n: _flat(_filled(n - len(json.dumps(_flat(_filled(0))["tools"], separators=(",", ":"))))),
        "tools",
        "string_above_max_length",
    ),
    "characters of a grammar": Case(
        50,
        lambda n: {
            "tools": [
                {
                    "type": "custom",
                    "custom": {
                        "name": "c",
                        "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": lark(n)}},
                    },
                }
            ]
        },
        "tools[0].custom.format.grammar.definition",
        lambda n: {
            "tools": [
                {
                    "type": "custom",
                    "name": "c",
                    "format": {"type": "grammar", "syntax": "lark", "definition": lark(n)},
                }
            ]
        },
        "tools[0].format.definition",
        "string_above_max_length",
    ),
    "characters of patterns": Case(
        200,
        lambda n: _chat(functions(of_pattern(f"(ab){{{n // 2}}}{'a' * (n % 2)}"))),
        _EXPONENT,
        lambda n: _flat(functions(of_pattern(f"(ab){{{n // 2}}}{'a' * (n % 2)}"))),
        "tools[0].parameters",
        _BAD,
    ),
    "parts of a schema": Case(
        100,
        lambda n: _chat(functions(OBJECT | {"properties": {"$ref": {"enum": [{}] * (n - 3)}}})),
        _EXPONENT,
        lambda n: _flat(functions(OBJECT | {"properties": {"$ref": {"enum": [{}] * (n - 3)}}})),
        "tools[0].parameters",
        _BAD,
    ),
    "values in the lists of a schema": Case(
        100,
        lambda n: _chat(functions(OBJECT | {"properties": {"a": {"enum": list(range(n - 3))}}})),
        _EXPONENT,
        lambda n: _flat(functions(OBJECT | {"properties": {"a": {"enum": list(range(n - 3))}}})),
        "tools[0].parameters",
        _BAD,
    ),
    "parts of a schema that refers to none": Case(
        100,
        lambda n: _chat(functions(OBJECT | {"properties": {"a": {"enum": [{}] * (n - 3)}}})),
        _EXPONENT,
        lambda n: _flat(functions(OBJECT | {"properties": {"a": {"enum": [{}] * (n - 3)}}})),
        "tools[0].parameters",
        _BAD,
    ),
}


class MessagesCase(Struct, frozen=True):
    """The same for Anthropic's API, whose errors say in words where something stands."""

    most: int
    build: Build
    param: str | None


def _shaped(tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Functions as tools of that API."""
    named = {"parameters": "input_schema"}
    return [{named.get(field, field): value for field, value in tool.items()} for tool in tools]


def _offering(tools: list[dict[str, Any]]) -> dict[str, Any]:
    return {"tools": _shaped(tools)}


def _adding(tools: list[dict[str, Any]]) -> dict[str, Any]:
    """Messages of which the last defines tools, behind a text."""
    blocks = [
        {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": tool}} for tool in _shaped(tools)
    ]
    text = {"type": "text", "text": "a"}
    return {"messages": [QUESTION, {"role": "system", "content": [text, *blocks]}]}


def _answering(schema: dict[str, Any]) -> dict[str, Any]:
    return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}


def _told_by_a_tool(*blocks: dict[str, Any]) -> dict[str, Any]:
    """A call, what was answered to it, and so many parts beside these: two."""
    call = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": [*blocks]}
    return {"messages": [QUESTION, {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]}


def _filling(build: Callable[[list[dict[str, Any]]], dict[str, Any]]) -> Build:
    """As many bytes of tools, with the brackets of their list."""
    bare = len(json.dumps(_shaped(_filled(0)), separators=(",", ":")))
    return lambda n: build(_filled(n - bare))


TEXT = {"type": "text", "text": "a"}
_ADDED = "messages[1].content[1].tool.definition.input_schema"
_ASKED = "tools[0].input_schema"
MESSAGES_CASES: dict[str, MessagesCase] = {
    "levels": MessagesCase(40, CASES["levels"].chat, None),
    "messages": MessagesCase(5, CASES["messages"].chat, "messages"),
    "parts of content": MessagesCase(30, CASES["parts of content"].chat, "messages"),
    "parts of instructions": MessagesCase(30, lambda n: {"system": [TEXT] * n}, "messages"),
    "parts of a result": MessagesCase(30, lambda n: _told_by_a_tool(*[TEXT] * (n - 2)), "messages"),
    "parts of a document in a result": MessagesCase(
        30,
        lambda n: _told_by_a_tool({"type": "document", "source": {"type": "content", "content": [TEXT] * (n - 3)}}),
        "messages",
    ),
    "parts of a search result": MessagesCase(
        30,
        lambda n: _told_by_a_tool({"type": "search_result", "title": "t", "source": "s", "content": [TEXT] * (n - 3)}),
        "messages",
    ),
    "references to tools": MessagesCase(
        30,
        lambda n: {
            "messages": [
                QUESTION,
                {
                    "role": "assistant",
                    "content": [
                        {"type": "server_tool_use", "id": "s", "name": "tool_search_tool_bm25", "input": {}},
                        {
                            "type": "tool_search_tool_result",
                            "tool_use_id": "s",
                            "content": {"tool_references": [{"type": "tool_reference", "tool_name": "f"}] * (n - 2)},
                        },
                    ],
                },
                QUESTION,
            ]
        },
        "messages",
    ),
    "tools": MessagesCase(3, lambda n: _offering(_tools(n)), "tools"),
    "tools of a message": MessagesCase(3, lambda n: _adding(_tools(n)), "messages[1].content"),
    "bytes of schemas": MessagesCase(3_000, _filling(_offering), "tools"),
    "bytes of schemas in a message": MessagesCase(3_000, _filling(_adding), "tools"),
    "properties of a strict schema": MessagesCase(20, lambda n: _offering(_strict(n)), _ASKED),
    "properties of a strict schema in a message": MessagesCase(20, lambda n: _adding(_strict(n)), _ADDED),
    "properties of an answer": MessagesCase(20, lambda n: _answering(_declaring(n)), "output_config.format"),
    "characters of patterns": MessagesCase(
        200, lambda n: _offering(functions(of_pattern(f"(ab){{{n // 2}}}{'a' * (n % 2)}"))), _ASKED
    ),
    "characters of patterns in a message": MessagesCase(
        200, lambda n: _adding(functions(of_pattern(f"(ab){{{n // 2}}}{'a' * (n % 2)}"))), _ADDED
    ),
    "characters of patterns of an answer": MessagesCase(
        200, lambda n: _answering(CLOSED | of_pattern(f"(ab){{{n // 2}}}{'a' * (n % 2)}")), "output_config.format"
    ),
    "parts of a schema": MessagesCase(
        100, lambda n: _offering(functions(OBJECT | {"properties": {"$ref": {"enum": [{}] * (n - 3)}}})), _ASKED
    ),
    "parts of a schema in a message": MessagesCase(
        100, lambda n: _adding(functions(OBJECT | {"properties": {"$ref": {"enum": [{}] * (n - 3)}}})), _ADDED
    ),
    "parts of a schema that refers to none": MessagesCase(
        100, lambda n: _offering(functions(OBJECT | {"properties": {"a": {"enum": [{}] * (n - 3)}}})), _ASKED
    ),
}
APIS = [
    *(pytest.param(api, title, id=f"{api}: {title}") for api in ("chat", "responses") for title in CASES),
    *(pytest.param("messages", title, id=f"messages: {title}") for title in MESSAGES_CASES),
]


@pytest.mark.parametrize(("api", "title"), APIS)
def test_what_is_above_a_limit_is_refused_and_what_is_within_goes_on(limited: str, api: str, title: str) -> None:
    if api == "messages":
        _check_messages(limited, MESSAGES_CASES[title])
        return
    case = CASES[title]
    if api == "chat":
        path, build, param = CHAT, case.chat, case.chat_param
        plain: dict[str, Any] = {"model": "simulated", "messages": [QUESTION]}
    else:
        path, build, param = RESPONSES, case.responses, case.responses_param
        plain = {"model": "simulated", "input": "hi"}
    assert request(limited + path, {**plain, **build(case.most)}).status == 200
    refused = request(limited + path, {**plain, **build(case.most + 1)})
    assert refused.status == 400, refused.text
    error = refused.error
    assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", param, case.code)
    assert str(case.most) in error["message"]


def _check_messages(limited: str, case: MessagesCase) -> None:
    plain: dict[str, Any] = {"model": "simulated", "max_tokens": 50, "messages": [QUESTION]}
    for path in (MESSAGES, COUNT):
        within = request(limited + path, {**plain, **case.build(case.most)})
        assert within.status == 200, within.text
        refused = request(limited + path, {**plain, **case.build(case.most + 1)})
        assert refused.status == 400, refused.text
        assert refused.json["type"] == "error"
        error = refused.json["error"]
        assert (set(error), error["type"]) == ({"type", "message"}, "invalid_request_error")
        assert str(case.most) in error["message"]
        assert case.param is None or case.param in error["message"]


@pytest.mark.parametrize(("number", "is_counted"), [(3, False), (4, True)])
def test_a_messages_request_names_no_more_servers_than_tools(limited: str, number: int, is_counted: bool) -> None:
    """Their names were compared one with the other: 8,000 took 2 s on the event loop."""
    servers = [{"type": "url", "name": f"s{n}", "url": "https://x.test"} for n in range(number)]
    plain = {"model": "simulated", "max_tokens": 50, "messages": [QUESTION]}
    refused = request(limited + MESSAGES, {**plain, "mcp_servers": servers})
    assert refused.json["type"] == "error"
    assert ("maximum length 3" in refused.json["error"]["message"]) is is_counted


@pytest.mark.parametrize("number", [4, 5])
@pytest.mark.parametrize("field", ["stop_sequences", "edits"])
def test_what_is_looked_for_again_and_again_is_counted(limited: str, field: str, number: int) -> None:
    plain: dict[str, Any] = {"model": "simulated", "max_tokens": 50, "messages": [QUESTION]}
    if field == "edits":
        plain["context_management"] = {"edits": [{"type": "clear_tool_uses_20250919"}] * number}
    else:
        plain["stop_sequences"] = [f"stop{each}" for each in range(number)]
    refused = request(limited + MESSAGES, plain)
    assert ("maximum length 4" in refused.text) is (number > 4)
    assert refused.status == (400 if number > 4 else 200)


@pytest.mark.parametrize(
    ("schema", "where"),
    [
        (doubling(30), "references"),
        (doubling(30, strict=True), "references"),
        ({**OBJECT, "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": doubling(30)["$defs"]}, "references"),
        (of_pattern(r"^((a{1,100}){1,100}){1,100}$"), "patterns"),
        ({"type": "object", "patternProperties": {r"(\p{L}{99}){99}": {}}}, "patterns"),
    ],
)
@pytest.mark.parametrize("of", ["a tool", "an answer"])
def test_a_small_schema_that_stands_for_a_large_one_is_refused_at_once(
    limited: str, schema: dict[str, Any], where: str, of: str
) -> None:
    chat: dict[str, Any] = {"model": "simulated", "messages": [QUESTION], **_chat(functions(schema))}
    if of == "an answer":
        form = {"type": "json_schema", "json_schema": {"name": "f0", "schema": schema}}
        chat = {"model": "simulated", "messages": [QUESTION], "response_format": form}
    began = time.process_time()
    refused = request(limited + CHAT, chat)
    assert time.process_time() - began < 5  # it would be hours
    assert refused.status == 400
    assert where in refused.error["message"]
    assert refused.error["code"] == (_BAD if of == "a tool" else "invalid_json_schema")


def test_what_came_before_counts(limited: str) -> None:
    plain: dict[str, Any] = {"model": "simulated"}
    first = request(limited + RESPONSES, {**plain, "input": [QUESTION] * 4}).json["id"]
    refused = request(limited + RESPONSES, {**plain, "input": "hi", "previous_response_id": first})
    assert (refused.status, refused.error["param"]) == (400, "input")
    assert refused.error["code"] == "array_above_max_length"


def test_a_conversation_is_held_to_them_too(limited: str) -> None:
    refused = request(limited + CONVERSATIONS, {"metadata": nested(40)})
    assert (refused.status, refused.error["code"]) == (400, "invalid_value")


def test_a_connection_is_held_to_them_too(limited: str) -> None:
    websockets = pytest.importorskip("websockets.sync.client", reason="websockets is not installed")
    plain = {"type": "response.create", "model": "simulated", "input": "hi"}
    with websockets.connect(f"{limited.replace('http', 'ws')}{RESPONSES}") as connection:
        for title, case in CASES.items():
            connection.send(json.dumps({**plain, **case.responses(case.most + 1)}))
            error = json.loads(connection.recv())["error"]
            assert (error["param"], error["code"]) == (case.responses_param, case.code), title


@pytest.mark.parametrize(
    "body",
    [b"[" * 1_000_000, b'{"a":' * 200_000, b'{"messages":' + b"[" * 90_000 + b"]" * 90_000 + b"}", b"{" * 10 + b"}"],
    ids=["open arrays", "open objects", "closed arrays", "few"],
)
def test_a_deep_body_is_refused(limited: str, body: bytes) -> None:
    for path in (CHAT, RESPONSES, CONVERSATIONS, MESSAGES):
        reply = request(limited + path, body)
        assert reply.status == 400
        assert reply.json["error"]["message"].startswith("We could not parse the JSON body")


# --- how large is it ---


def named(**names: str) -> dict[str, Any]:
    """A schema whose references go by names instead of paths."""
    (word, _), *_ = names.items()
    defs = {f"p{n}": {f"${word}": f"n{n}", "anyOf": [{"$ref": names[word].format(n + 1)}] * 2} for n in range(20)}
    return {"type": "object", "properties": {"x": {"$ref": names[word].format(0)}}, "$defs": defs}


@pytest.mark.parametrize(
    ("schema", "more"),
    [
        (doubling(5), False),
        (doubling(9), True),
        (named(anchor="#n{}"), True),
        (named(id="n{}"), True),
        (named(id="http://x.test/n{}"), True),
        ({"$id": "http://a.test/", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": doubling(9)["$defs"]}, True),
        ({"properties": {"x": {"$ref": "#"}, "y": {"$ref": "#/properties/x"}}}, False),
        ({"properties": {"x": {"$ref": "#/nowhere"}, "y": {"$ref": "other.json#/a"}, "z": {"$ref": 5}}}, False),
        ({"$defs": {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(200)}, "$ref": "#/$defs/d0"}, True),
        ({"$defs": {"t": {"anyOf": [{"type": "null"}, {"items": {"$ref": "#/$defs/t"}}]}}, "$ref": "#/$defs/t"}, False),
    ],
)
def test_references_are_followed_as_far_as_they_lead(schema: dict[str, Any], more: bool) -> None:
    assert has_more_parts(schema, 200) is more


@pytest.mark.parametrize(
    ("pattern", "size"),
    [
        ("^abc$", 5),
        (r"\d{4}-\d{2}-\d{2}", 10),
        (r"^(a{1,1000}){1,1000}$", 1_000_002),
        (r"(?:ab|cd){2}", 10),
        (r"(?<year>\d{4})", 4),
        (r"(?=a)(?!b)(?<=c)", 3),
        (r"[a-z(]{3}\({2}[^]]{2}", 7),
        (r"\p{L}{3}[\p{L}\d]", 200),
        ("a{,3}a{2,}a{3}?", 9),
        ("x{99999999999}", 999_999_999),
        ("(a{9}{9}){9}", 729),
        ("((((", 0),
        ("))))", 4),
        ("{", 1),
        ("[", 1),
        ("\\", 1),
        ("", 0),
    ],
)
def test_counted_repetitions_are_written_out(pattern: str, size: int) -> None:
    assert pattern_size(pattern) == size


def test_patterns_are_found_wherever_they_stand() -> None:
    schema = {"anyOf": [{"items": [of_pattern("a")]}, {"patternProperties": {"b": of_pattern("c")}}], "pattern": 5}
    assert sorted(patterns(schema)) == ["a", "b", "c"]


@pytest.mark.parametrize(
    "pattern", [r"^(a+)+$", r"^(a|a)*b$", r"^(?=(a+)+$)b", r"^(a+)+\1$", r"(a+a+)+y", r"^(.*a){20}$"]
)
def test_no_pattern_backtracks_for_long(pattern: str) -> None:
    """Each of them keeps an engine that backtracks busy for years."""
    began = time.process_time()
    validator_of(of_pattern(pattern)).faults({"x": "a" * 50_000 + "!"})
    assert time.process_time() - began < 5


def test_parts_are_counted_with_those_that_a_response_continues_from(limited: str) -> None:
    first = {"model": "simulated", "input": _texts(20, "input_text")}
    id_ = request(limited + RESPONSES, first).json["id"]
    refused = request(limited + RESPONSES, {**first, "previous_response_id": id_})
    assert (refused.status, refused.error["param"]) == (400, "input")
    assert "at most 30 parts" in refused.error["message"]
    items = request(limited + CONVERSATIONS, {"items": _texts(31, "input_text")})
    assert (items.status, items.error["param"]) == (400, "items")


def test_calls_are_parts(limited: str) -> None:
    call = {"type": "function", "function": {"name": "f", "arguments": "{}"}}
    calls = [{**call, "id": f"c{number}"} for number in range(31)]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    refused = request(limited + CHAT, {"model": "simulated", "messages": [QUESTION, message]})
    assert (refused.status, refused.error["param"]) == (400, "messages")


def test_a_schema_of_too_many_properties_is_counted_and_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """19,000 properties were checked one by one, each against a list of all that are required: 7 s before the 400."""
    schema = _declaring(MAX_PROPERTIES + 1)
    read: list[str] = []

    class Watched(dict[str, Any]):
        def get(self, key: str, default: Any = None) -> Any:
            read.append(key)
            return super().get(key, default)

    found = callwright.strict_problems(Watched(schema))
    assert len(found) == 1
    assert found[0].startswith("Expected at most 5000 object properties in total")
    assert "type" not in read
    monkeypatch.setattr(bounds, "MAX_SCHEMA_PARTS", MAX_SCHEMA_PARTS)  # another gateway of this process may have less
    assert callwright.strict_problems(_declaring(MAX_PROPERTIES)) == []


MANY = 1_048_576
TOO_MANY = {
    "numbers": "[" + "1," * MANY + "1,1]",
    "objects": "[" + "{}," * MANY + "{},{}]",
    "texts": "[" + '"",' * MANY + '"",""]',
    "keys": "{" + '"a":1,' * MANY + '"a":1}',
    "behind a text of quotes": '["' + r"\\\"" * 9 + r'\\"' + ",1" * (MANY + 1) + "]",
}
NOT_MANY = {
    "numbers": "[" + "1," * (MANY - 1) + "1]",
    "a table in a text": '["' + "1," * (2 * MANY) + '"]',
    "JSON in a text": '["' + r"{\"a\":1}, " * MANY + '"]',
    "a text that ends in a backslash": r'["\\",' + '"' + "1," * (2 * MANY) + '"]',
}


@pytest.mark.parametrize("fields", TOO_MANY.values(), ids=TOO_MANY)
@pytest.mark.parametrize("as_text", [True, False])
def test_a_body_of_too_many_values_is_refused_before_it_is_decoded(
    fields: str, as_text: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callwright.wire.body.decode", None)
    body = '{"model": "m", "prompt": ' + fields + "}"
    with pytest.raises(callwright.RequestError, match="too many values: expected 1048576"):
        decoded(body if as_text else body.encode(), Bounds())


@pytest.mark.parametrize("fields", NOT_MANY.values(), ids=NOT_MANY)
def test_what_stands_in_texts_is_no_value(fields: str) -> None:
    assert decoded(b'{"model": "m", "prompt": ' + fields.encode() + b"}", Bounds())
