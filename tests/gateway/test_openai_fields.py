"""Every field of OpenAI's request types is done, handed on, refused by name, told, or kept with its item."""

import json
from collections.abc import Mapping
from typing import Any, assert_never

import pytest

from callwright.gateway.http import DROPPED_HEADER
from tests.conftest import Served, scripted_models
from tests.support.chat_fields import CHAT
from tests.support.field_outcomes import Done, HandedOn, Kept, Outcome, Refused, Told, outcome_of, rows
from tests.support.http_client import CHAT as CHAT_PATH
from tests.support.http_client import request
from tests.support.openai_pages import fields_page
from tests.support.openai_types import paths_of
from tests.support.outputs import played
from tests.support.paths import ROOT
from tests.support.responses_client import RESPONSES as RESPONSES_PATH
from tests.support.responses_client import fetch
from tests.support.responses_fields import RESPONSES
from tests.support.servers import ModelServer, said

ANSWER = "{}"  # which any format of the answer takes
TABLES = {"responses": RESPONSES, "chat": CHAT}
FUNCTION = {"type": "function", "name": "f"}
PATHS = {"responses": RESPONSES_PATH, "chat": CHAT_PATH}
BASES: dict[str, dict[str, Any]] = {
    "responses": {"model": "native", "input": "Hi"},
    "chat": {"model": "native", "messages": [{"role": "user", "content": "Hi"}]},
}
CASES = [(api, *row) for api, table in TABLES.items() for row in rows(table)]
TESTS = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").glob("*/test_*.py"))


def holds(wanted: Any, found: Any) -> bool:
    """Whether a value has all that is wanted of it."""
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and all(
            holds(value, found.get(name)) if value is not None else name in found for name, value in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(holds, wanted, found))
    return bool(wanted == found)


@pytest.mark.parametrize(
    ("api", "group", "names", "outcome"), CASES, ids=[f"{api}: {group} {names}" for api, group, names, _ in CASES]
)
def test_a_field_has_an_effect_or_a_word(
    gateway: str, model: ModelServer, api: str, group: str, names: str, outcome: Outcome
) -> None:
    model.plays(said(ANSWER))
    url = gateway + PATHS[api]
    match outcome:
        case Done(test):
            assert f"def {test}(" in TESTS
        case HandedOn(given, found):
            assert request(url, {**BASES[api], **given}).status == 200
            assert holds(found, model.body), json.dumps(model.body)
        case Refused(given, param):
            reply = request(url, {**BASES[api], **given})
            assert (reply.status, reply.error["param"]) == (400, param), reply.text
        case Told(given, name):
            reply = request(url, {**BASES[api], **given})
            assert reply.status == 200, reply.text
            assert name in reply.headers.get(DROPPED_HEADER, "").split(", ")
        case Kept(item, before):
            reply = request(url, {**BASES[api], "input": [*before, item]})
            assert reply.status == 200, reply.text
            listed = fetch(f"{url}/{reply.json['id']}/input_items")[1]["data"]
            assert holds(item, listed[0]), listed[0]
        case _:
            assert_never(outcome)


def test_what_is_done_as_it_is_is_not_told(gateway: str, model: ModelServer) -> None:
    model.plays(said(ANSWER))
    given = {
        "reasoning": {"mode": "standard"},
        "background_options": {"completion_window": "soonest"},
        "stream": True,
        "stream_options": {"include_obfuscation": False},
    }
    reply = request(gateway + RESPONSES_PATH, {**BASES["responses"], **given})
    assert (reply.status, reply.headers.get(DROPPED_HEADER)) == (200, None)


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"context_management": [{"type": "compaction", "strategy": "brief"}]}, "context_management.strategy"),
        ({"tools": [{"type": "web_search", "depth": 3}, FUNCTION]}, "web_search, web_search.depth"),
        ({"tools": [{"type": "web_search_preview", "search_content_types": ["text"]}, FUNCTION]}, "web_search_preview"),
    ],
    ids=str,
)
def test_what_no_version_of_the_library_knows_is_told_within_objects_and_tools(
    gateway: str, model: ModelServer, fields: Any, names: str
) -> None:
    model.plays(said(ANSWER))
    reply = request(gateway + RESPONSES_PATH, {**BASES["responses"], **fields})
    assert (reply.status, reply.headers.get(DROPPED_HEADER)) == (200, names)


@pytest.mark.parametrize("api", TABLES)
def test_no_field_of_openais_library_is_left_out_and_none_is_made_up(api: str) -> None:
    pytest.importorskip("openai", reason="the SDK of OpenAI is not installed")
    from openai.types.chat import completion_create_params as chat
    from openai.types.responses import response_create_params as responses

    kinds = {"responses": responses.ResponseCreateParamsStreaming, "chat": chat.CompletionCreateParamsStreaming}
    paths = paths_of(kinds[api])
    assert len(paths) > 100
    assert [path for path in paths if outcome_of(TABLES[api], path) is None] == []
    said_ = {f"{group}.{name}" if group else name for group, names, _ in rows(TABLES[api]) for name in names.split()}
    assert {path for path in said_ if not path.endswith(".*")} - set(paths) == set()
    for path in (path.removesuffix(".*") for path in said_ if path.endswith(".*")):
        assert any(known.startswith(path) for known in paths), path


def test_the_page_shows_the_table() -> None:
    page = (ROOT / "docs" / "openai-fields.md").read_text(encoding="utf-8")
    assert page == fields_page(page), "run scripts/reference"


def test_a_table_that_was_lost_comes_back() -> None:
    page = (ROOT / "docs" / "openai-fields.md").read_text(encoding="utf-8")
    begin = page.index("\n\n", page.index("<!-- fields: chat -->"))
    assert "web_search_options" in page[begin:]
    assert fields_page(page[:begin]) == page
    with pytest.raises(ValueError, match="chat"):
        fields_page(page[: page.index("## Chat Completions")])


LIMITED = {"type": "object", "properties": {"days": {"type": "integer", "minimum": 1}, "city": {"const": "Oslo"}}}


@pytest.mark.parametrize(
    ("way", "told"),
    [
        ("raw-harmony-vllm", "tools.parameters.const, tools.parameters.minimum"),
        ("raw-hermes-vllm", None),
        ("native", None),
    ],
)
def test_what_a_prompt_cannot_show_of_a_schema_is_told(
    serve: Served, model: ModelServer, way: str, told: str | None
) -> None:
    gateway = serve(*scripted_models(model.url))
    flat = {"name": "plan", "description": "Plans."}
    asks: dict[str, Any] = {
        "/v1/chat/completions": {
            "messages": [{"role": "user", "content": "Hi"}],
            "tools": [{"type": "function", "function": {**flat, "parameters": LIMITED}}],
        },
        "/v1/responses": {
            "input": "Hi",
            "tools": [{"type": "function", **flat, "parameters": LIMITED, "strict": False}],
            "store": False,
        },
        "/v1/messages": {
            "messages": [{"role": "user", "content": "Hi"}],
            "max_tokens": 9,
            "tools": [{**flat, "input_schema": LIMITED}],
        },
    }
    for path, body in asks.items():
        own = told.replace("parameters", "input_schema") if told and path == "/v1/messages" else told
        for stream in (False, True):
            model.plays(played(way, "text"))
            reply = request(gateway + path, {"model": way, "stream": stream, **body})
            assert (reply.status, reply.headers.get(DROPPED_HEADER)) == (200, own), (path, stream)
