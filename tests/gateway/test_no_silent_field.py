"""Each field that a provider's library can put into a request has an effect, or a word: in each mode.

The requests come from the library's types. What makes no difference, neither in what the model's server gets nor in the
answer, is refused by name, or stands in the header of what is passed over, under its own name or that of what it is in.
The rest is listed here, each with its reason.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Final, Literal, TypeAlias

import pytest
from msgspec import Struct

from callwright.gateway.http import DROPPED_HEADER
from tests.support.chat_fields import CHAT
from tests.support.field_outcomes import Done, Kept, Table, outcome_of
from tests.support.http_client import CHAT as CHAT_PATH
from tests.support.http_client import request
from tests.support.messages_client import MESSAGES as MESSAGES_PATH
from tests.support.openai_types import shared_path
from tests.support.paths import ROOT
from tests.support.request_walk import FieldRequest, requests_of
from tests.support.responses_client import RESPONSES as RESPONSES_PATH
from tests.support.responses_fields import RESPONSES
from tests.support.servers import ModelServer, completion, said

Api: TypeAlias = Literal["chat", "responses", "messages"]
APIS: Final[tuple[Api, ...]] = ("chat", "responses", "messages")
MODELS: Final = ("native", "prompt-hermes", "raw-hermes-vllm")
PATHS: Final[Mapping[Api, str]] = {"chat": CHAT_PATH, "responses": RESPONSES_PATH, "messages": MESSAGES_PATH}
TYPES: Final[Mapping[Api, tuple[str, str]]] = {
    "chat": ("openai.types.chat.completion_create_params", "CompletionCreateParamsNonStreaming"),
    "responses": ("openai.types.responses.response_create_params", "ResponseCreateParamsNonStreaming"),
    "messages": ("anthropic.types.beta.message_create_params", "MessageCreateParamsNonStreaming"),
}
TABLES: Final[Mapping[Api, Table]] = {"chat": CHAT, "responses": RESPONSES, "messages": {}}
ANSWER: Final = "{}"  # which any format of the answer takes
ASK: Final = {"role": "user", "content": "Hi"}
# What is asked elsewhere: it says where the request goes, or how its answer comes.
ELSEWHERE: Final = re.compile(r"(model|stream|background)$")


# --- whole requests ---

_FUNCTION: Final = {"name": "f", "parameters": {"type": "object", "properties": {}}}
_TOOL: Final[Mapping[Api, Mapping[str, Any]]] = {
    "chat": {"type": "function", "function": _FUNCTION},
    "responses": {"type": "function", **_FUNCTION},
    "messages": {"name": "f", "input_schema": {"type": "object"}},
}
_CALLED: Final = {"name": "f", "arguments": "{}"}
_CALLS: Final[Mapping[str, Mapping[str, Any]]] = {
    "tool": {"tool_calls": [{"id": "call_1", "type": "function", "function": _CALLED}]},
    "function": {"function_call": _CALLED},
}
_DELETES: Final = {"type": "delete_file", "path": "a"}
_LISTS: Final = {"type": "exec", "command": ["ls"], "env": {}}
# What an output of the Responses API answers.
_BEFORE: Final[Mapping[str, Mapping[str, Any]]] = {
    "function_call_output": {"type": "function_call", "name": "f", "arguments": "{}"},
    "custom_tool_call_output": {"type": "custom_tool_call", "name": "f", "input": "x"},
    "local_shell_call_output": {"type": "local_shell_call", "id": "x", "status": "completed", "action": _LISTS},
    "shell_call_output": {"type": "shell_call", "action": {"commands": ["ls"]}},
    "apply_patch_call_output": {"type": "apply_patch_call", "status": "completed", "operation": _DELETES},
    "tool_search_output": {"type": "tool_search_call", "arguments": {}},
}


def whole(api: Api, given: Mapping[str, Any]) -> dict[str, Any]:
    """A request with these fields, and what they need around them."""
    full = {**given}
    if api == "chat":
        full["messages"] = list(_talk(given.get("messages") or [ASK]))
    elif api == "responses":
        items = given.get("input", [ASK])
        full["input"] = [*_outputs(items), ASK] if isinstance(items, list) else items
    else:
        messages = given.get("messages") or [ASK]
        full["max_tokens"] = given.get("max_tokens", 9)
        full["messages"] = list(_blocks(messages))
    if "tool_choice" in given or "parallel_tool_calls" in given:
        full.setdefault("tools", [_TOOL[api]])
    return full


def _talk(messages: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The messages, with a call before what answers one, results after calls, and a user's at the end."""
    for message in messages:
        if calls := _CALLS.get(message["role"]):
            yield from (ASK, {"role": "assistant", "content": None, **calls})
        yield message
        for call in message.get("tool_calls") or ():
            yield {"role": "tool", "tool_call_id": call.get("id", "call_1"), "content": "1"}
    if messages[-1]["role"] != "user":
        yield ASK


def _outputs(items: Sequence[Any]) -> Iterator[Any]:
    for item in items:
        if isinstance(item, Mapping) and (before := _BEFORE.get(item.get("type", ""))):
            yield {"call_id": "call_1", **before}
        yield item


def _blocks(messages: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    if messages[0]["role"] != "user":
        yield ASK
    yield from messages
    if messages[-1]["role"] != "user":
        yield ASK


# --- what has no effect and no word, and why ---


class Passed(Struct, frozen=True):
    """Fields of an API that may make no difference: those whose path fits, with any value or with this one. `why` may
    be the test that shows what they do.
    """

    path: str
    why: str
    value: Any = ...

    def fits(self, found: FieldRequest) -> bool:
        return re.fullmatch(self.path, found.path) is not None and self.value in (..., found.value)


_AS_IT_IS: Final = "it asks for what is done without it"
_PAST: Final = "it describes the past"
_STREAMED: Final = "it shows in streams only"
_HELD: Final = "test_an_answer_without_the_form_never_leaves"
_ONE_CALL: Final = "test_one_call_at_most_leaves_where_they_may_not_be_parallel"
_THOUGHTS: Final = "test_reasoning_is_shown_as_it_is_asked_for_and_comes_back"
_CACHE: Final = "it asks the server's cache, whose counts are told in `usage`"
PASSED: Final[Mapping[Api, Sequence[Passed]]] = {
    "chat": (
        Passed("n", _AS_IT_IS, 1),
        Passed("modalities", _AS_IT_IS, ["text"]),
        Passed("function_call", _AS_IT_IS, "none"),
        Passed(r"response_format\[json_schema\]\.json_schema\.strict", _HELD),
    ),
    "responses": (
        Passed("reasoning.mode", _AS_IT_IS, "standard"),
        Passed("background_options.completion_window", _AS_IT_IS, "soonest"),
        Passed(r"(.*\.)?text\.format\[json_schema\]\.strict", _HELD),
        Passed(r"input\[message\]\.type", _AS_IT_IS),
        Passed(r"input\[\w+\]\.(content|output)\[input_image\]\.detail", _AS_IT_IS, "auto"),
        Passed("include", "nobody searches files here, so there is nothing to include", ["file_search_call.results"]),
    ),
    "messages": (
        Passed(r".*\bcache_control\b.*", _CACHE),
        Passed(r"metadata\.user_id", "it says who asks"),
        Passed(r"(.*\.)?(tools|definition)\.type", _AS_IT_IS, "custom"),
        Passed(r"(.*\.)?(tools|definition)(\[\w+\])?\.allowed_callers", _AS_IT_IS, ["direct"]),
        Passed(r"(.*\.)?(tools|definition)\.eager_input_streaming", _STREAMED),
        Passed(r".*\.definition(\[\w+\])?\.defer_loading", "what is added is shown at its place, and not before"),
        Passed(r"thinking\[(adaptive|enabled)\]\.type", _AS_IT_IS),
        Passed(r"thinking\[(adaptive|enabled)\]\.display", _THOUGHTS, "summarized"),
        Passed(r"thinking\[(adaptive|enabled)\]\.display", _THOUGHTS, "omitted"),
        Passed(r"tool_choice\[\w+\]\.disable_parallel_tool_use", _ONE_CALL),
        Passed(r"context_management\.edits\[clear_tool_uses_\w+\]\..*", "test_results_of_old_calls_are_cleared"),
        Passed(r"context_management\.edits\[clear_thinking_\w+\]\..*", "test_old_reasoning_goes_as_the_edit_says"),
        Passed(r"messages\[\w+\]\.content\[tool_(use|result)\]\.(toolset_name|caller.*)", _PAST),
        Passed(r"messages\[assistant\]\.content\[\w+_tool_result\]\.caller.*", _PAST),
        Passed(r"messages\[assistant\]\.content\[\w+\]\.(.*\.)?citations.*", _PAST),
        Passed(r"messages\[assistant\]\..*\.(page_age|error_message)", _PAST),
        Passed(r"messages\[\w+\]\.content\[compaction\]\.(encrypted_content|signature)", _PAST),
        Passed(r"messages\[system\]\.clear_at", _AS_IT_IS, "never"),
    ),
}


def is_passed(api: Api, found: FieldRequest) -> bool:
    return any(passed.fits(found) for passed in PASSED[api]) or isinstance(
        outcome_of(TABLES[api], shared_path(found.path)), Done | Kept
    )


# --- the test ---


class Outcome(Struct, frozen=True):
    """What came of a request: what the server was asked, the answer, and what was refused or passed over by name."""

    asked: str
    answer: str
    refused: Sequence[str]
    told: frozenset[str]


def names_of(path: str) -> list[str]:
    return re.findall(r"\w+", path)


def is_named(path: str, name: str) -> bool:
    """Whether a name is that of a field or of what it is in: its words follow one another on the path."""
    along = iter(names_of(path))
    return all(word in along for word in names_of(re.sub(r"\[\d+\]", "", name)))


def has_word(path: str, outcome: Outcome) -> bool:
    refused = [re.sub(r"\.(type|role|source|server_label|server_url)$", "", name) for name in outcome.refused]
    return any(is_named(path, name) for name in (*refused, *outcome.told))


def refused_names(api: Api, error: Mapping[str, Any]) -> Sequence[str]:
    """What a refusal names: Anthropic's errors have no field for it, they say it in their message."""
    if api != "messages":
        return [error["param"]]
    found = re.finditer(r"^([\w.\[\]]+): |'([^']+)'| at ([\w.\[\]]+)\.", error["message"])
    return [name for match in found for name in match.groups() if name]


def asking(url: str, server: ModelServer, api: Api, model: str) -> Callable[[Mapping[str, Any]], Outcome]:
    @cache
    def answered(body: str) -> Outcome:
        server.asked.clear()
        reply = request(url + PATHS[api], body.encode())
        told = reply.headers.get(DROPPED_HEADER, "")
        refused = refused_names(api, reply.json["error"]) if 400 <= reply.status < 500 else []
        answer = reply.json.get("choices") or reply.json.get("output") or reply.json.get("content") or reply.status
        return Outcome(
            asked=json.dumps([one.body for one in server.asked], sort_keys=True),
            answer=re.sub(r"\b(\w+_)[0-9a-f]{16,}", r"\1", json.dumps(answer)),  # less the ids
            refused=refused,
            told=frozenset(told.split(", ") if told else ()),
        )

    return lambda given: answered(json.dumps({**whole(api, given), "model": model}))


def silent(api: Api, ask: Callable[[Mapping[str, Any]], Outcome], fields: Sequence[FieldRequest]) -> Iterator[str]:
    """The fields that have neither an effect nor a word, nor a reason for it."""
    named: set[str] = set()  # what has a word of its own, so all that is in it
    for found in fields:
        around = [found.path[: match.start()] for match in re.finditer(r"(?<=\])\.|\.(?=\w+$)", found.path)]
        if not named.isdisjoint(around):
            continue
        before = ask(found.without) if found.without is not None else None
        if before is not None and (known := [path for path in around if has_word(path, before)]):
            named.add(known[0])
            continue
        outcome = ask(found.given)
        if has_word(found.path, outcome) or is_passed(api, found):
            continue
        if outcome.answer == "400":
            yield f"{found.path}={found.value!r}: refused for {outcome.refused!r}"
        elif before is not None and (before.asked, before.answer) == (outcome.asked, outcome.answer):
            yield f"{found.path}={found.value!r}: {sorted(outcome.told)}"


@pytest.mark.parametrize("model_name", MODELS)
@pytest.mark.parametrize("api", APIS)
def test_no_field_is_silent(gateway: str, model: ModelServer, api: Api, model_name: str) -> None:
    module, kind = TYPES[api]
    pytest.importorskip(module.partition(".")[0], reason="the library of the API is not installed")
    fields = [found for found in requests_of(getattr(import_module(module), kind)) if not ELSEWHERE.match(found.path)]
    assert len(fields) > 100
    model.plays(completion(ANSWER) if model_name.startswith("raw") else said(ANSWER))
    found = list(silent(api, asking(gateway, model, api, model_name), fields))
    assert found == [], "\n".join(found)


def test_what_another_test_shows_is_there() -> None:
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").glob("**/test_*.py"))
    named = [passed.why for fields in PASSED.values() for passed in fields if passed.why.startswith("test_")]
    assert named
    assert [name for name in named if f"def {name}(" not in tests] == []
