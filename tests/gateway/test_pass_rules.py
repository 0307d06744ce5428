"""What of a request goes on to a model's server: with keys what is known, and media that anybody could fetch."""

import json
from collections.abc import Callable
from typing import Any, Final

import pytest
from websockets.sync.client import connect

from callwright.conversation import MediaPart
from callwright.errors import ConfigError, RequestError
from callwright.gateway.access.keys import hash_of
from callwright.gateway.config.build_models import build_models
from callwright.gateway.config.config import Config, KeyConfig, ModelConfig, load_config
from callwright.wire.anthropic.media import document_parts, image_part
from callwright.wire.handed import COMPLETIONS, EMBEDDINGS, RERANK, SCORE
from callwright.wire.media_urls import check_media
from callwright.wire.pass_rules import KNOWN_FIELDS, told_dropped
from tests.conftest import Served
from tests.support.http_client import CHAT, request
from tests.support.paths import ROOT
from tests.support.responses_client import CONVERSATIONS, RESPONSES
from tests.support.servers import ModelServer, said

KEY: Final = "cw-anna-" + "a" * 40
KEYS: Final = (KeyConfig(name="anna", sha256=hash_of(KEY)),)
HEADERS: Final = {"authorization": f"Bearer {KEY}"}
DROPPED: Final = "x-callwright-dropped-fields"
# Fields of servers that nobody but whoever runs them should set.
UNKNOWN: Final[dict[str, Any]] = {
    "chat_template": "{{ messages }}",
    "prompt_token_ids": [1, 2],
    "guided_regex": "(a*)*b",
    "api_key": "sk-mine",
    "headers": {"x-forwarded-for": "127.0.0.1"},
}
SAMPLING: Final[dict[str, Any]] = {
    "temperature": 0.5,
    "top_k": 5,
    "min_p": 0.1,
    "repetition_penalty": 1.1,
    "typical_p": 0.9,
    "chat_template_kwargs": {"enable_thinking": False},
}
PUBLIC: Final = "https://example.com/cat.png"
DATA: Final = "data:image/png;base64,iVBORw0KGgo="
REFUSED: Final = (
    "file:///etc/passwd",
    "http://example.com/cat.png",
    "FILE:/etc/passwd",
    "/etc/passwd",
    " file:///etc/passwd",
    "https://169.254.169.254/latest",
    "https://10.0.0.5/",
    "https://127.1/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://localhost./",
    "https://metadata.google.internal/",
    "https://[::1]/",
    "https://[::ffff:10.0.0.5]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[2002:7f00:1::]/",
    "https://example.com\\@127.0.0.1/",
    "https://127.0.0.1@example.com/",
    "https://１２７.0.0.1/",
    "https://%31%32%37.0.0.1/",
    "https:///etc/passwd",
    "https://[::1",
)

Asked = Callable[..., tuple[int, dict[str, Any], dict[str, str]]]


@pytest.fixture
def keyed(serve: Served, model: ModelServer) -> str:
    return serve(
        ModelConfig(name="m", upstream=model.url),
        ModelConfig(name="wide", upstream=model.url, pass_fields=("guided_regex",), media_urls=("data", "http")),
        ModelConfig(name="all", upstream=model.url, pass_fields=("*",), media_urls=("*",)),
        keys=KEYS,
    )


# --- the doors ---


def _image(url: str, *, flat: bool) -> dict[str, Any]:
    return {"type": "input_image", "image_url": url} if flat else {"type": "image_url", "image_url": {"url": url}}


def _http(gateway: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any], dict[str, str]]:
    reply = request(gateway + path, body, headers=HEADERS)
    return reply.status, reply.error if reply.status >= 400 else {}, dict(reply.headers)


def chat(gateway: str, *, image: str | None = None, **fields: Any) -> tuple[int, dict[str, Any], dict[str, str]]:
    content = [{"type": "text", "text": "What is it?"}, *([_image(image, flat=False)] if image else [])]
    return _http(gateway, CHAT, {"model": "m", "messages": [{"role": "user", "content": content}], **fields})


def _input(image: str | None) -> list[dict[str, Any]]:
    content = [{"type": "input_text", "text": "What is it?"}, *([_image(image, flat=True)] if image else [])]
    return [{"role": "user", "content": content}]


def responses(gateway: str, *, image: str | None = None, **fields: Any) -> tuple[int, dict[str, Any], dict[str, str]]:
    return _http(gateway, RESPONSES, {"model": "m", "input": _input(image), **fields})


def compacted(gateway: str, *, image: str | None = None, **fields: Any) -> tuple[int, dict[str, Any], dict[str, str]]:
    return _http(gateway, f"{RESPONSES}/compact", {"model": "m", "input": _input(image), **fields})


def counted(gateway: str, *, image: str | None = None, **fields: Any) -> tuple[int, dict[str, Any], dict[str, str]]:
    return _http(gateway, f"{RESPONSES}/input_tokens", {"model": "m", "input": _input(image), **fields})


def tool_result(gateway: str, *, image: str | None = None, **fields: Any) -> tuple[int, dict[str, Any], dict[str, str]]:
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    output = [_image(image, flat=True)] if image else "ok"
    items = [*_input(None), call, {"type": "function_call_output", "call_id": "c", "output": output}]
    return _http(gateway, RESPONSES, {"model": "m", "input": items, **fields})


def socket(gateway: str, *, image: str | None = None, **fields: Any) -> tuple[int, dict[str, Any], dict[str, str]]:
    body = {"type": "response.create", "model": "m", "input": _input(image), **fields}
    with connect(gateway.replace("http", "ws") + RESPONSES, additional_headers=HEADERS) as connection:
        connection.send(json.dumps(body))
        while True:
            frame = json.loads(connection.recv())
            if frame["type"] == "error":
                return frame["status"], frame["error"], {}
            if frame["type"] in ("response.completed", "response.failed"):
                return 200, {}, {}


ASKED: Final[dict[str, Asked]] = {
    "chat": chat,
    "responses": responses,
    "compact": compacted,
    "tool result": tool_result,
    "websocket": socket,
}


# --- fields ---


@pytest.mark.parametrize("door", ASKED)
def test_a_server_gets_no_field_that_nobody_here_knows(keyed: str, model: ModelServer, door: str) -> None:
    model.plays(said("Hi"))
    status, _, headers = ASKED[door](keyed, **UNKNOWN, **SAMPLING)
    assert status == 200
    assert UNKNOWN.keys().isdisjoint(model.body)
    assert {name: model.body[name] for name in SAMPLING} == SAMPLING
    if door != "websocket":  # whose frames have no headers
        assert headers[DROPPED] == ", ".join(sorted(UNKNOWN))


@pytest.mark.parametrize("door", ["chat", "responses"])
def test_a_stream_names_what_was_dropped_before_it_begins(keyed: str, model: ModelServer, door: str) -> None:
    model.plays(said("Hi"))
    assert ASKED[door](keyed, stream=True, guided_regex="a")[2][DROPPED] == "guided_regex"


@pytest.mark.parametrize("door", ASKED)
def test_the_configuration_names_more_fields(keyed: str, model: ModelServer, door: str) -> None:
    for name, passed in (("wide", {"guided_regex"}), ("all", set(UNKNOWN))):
        model.plays(said("Hi"))
        assert ASKED[door](keyed, **{**UNKNOWN, "model": name})[0] == 200
        assert UNKNOWN.keys() & model.body.keys() == passed


def test_a_header_names_plain_words_and_counts_the_others(keyed: str, model: ModelServer) -> None:
    model.plays(said("Hi"))
    odd: dict[str, Any] = {"x\r\nx-evil: 1": 1, "ü": 2, "a" * 200: 3, "": 4, **{f"f{n}": n for n in range(10, 40)}}
    status, _, headers = chat(keyed, **odd)
    assert status == 200
    assert headers[DROPPED] == f"{', '.join(f'f{n}' for n in range(10, 26))}, and 18 more"
    assert "x-evil" not in headers
    assert told_dropped({"ü", "\r\n"}) == "2 with odd names"


def test_messages_and_parts_lose_what_is_no_field_of_theirs(keyed: str, model: ModelServer) -> None:
    model.plays(said("Hi"))
    part = {"type": "image_url", "image_url": {"url": DATA, "fetch": DATA}, "video_url": {"url": DATA}}
    message = {"role": "user", "content": [part], "cache_control": {}, "prefix": True}
    headers = _http(keyed, CHAT, {"model": "m", "messages": [message]})[2]
    image = {"type": "image_url", "image_url": {"url": DATA}}
    assert model.body["messages"] == [{"role": "user", "content": [image], "prefix": True}]
    assert headers[DROPPED] == "cache_control, fetch, video_url"


def test_without_keys_all_fields_of_a_chat_request_pass(serve: Served, model: ModelServer) -> None:
    url = serve(ModelConfig(name="m", upstream=model.url))
    for image in ("file:///etc/passwd", "http://127.0.0.1/x"):
        model.plays(said("Hi"))
        status, _, headers = chat(url, image=image, **UNKNOWN)
        assert status == 200
        assert {name: model.body[name] for name in UNKNOWN} == UNKNOWN
        assert model.body["messages"][0]["content"][1] == _image(image, flat=False)
        assert DROPPED not in headers


@pytest.mark.parametrize(
    ("field", "value"),
    [("n", 9), ("modalities", ["audio"]), ("audio", {"voice": "x"}), ("web_search_options", {}), ("logprobs", "yes")],
)
def test_a_known_field_that_cannot_be_done_is_refused_by_name(keyed: str, field: str, value: Any) -> None:
    status, error, _ = chat(keyed, **{field: value})
    assert (status, error["param"], error["type"]) == (400, field, "invalid_request_error")


# --- media ---

PATHS: Final = {
    "chat": "messages[0].content[1].image_url.url",
    "responses": "input[0].content[1].image_url",
    "compact": "input[0].content[1].image_url",
    "input_tokens": "input[0].content[1].image_url",
    "tool result": "input[2].output[0].image_url",
    "websocket": "input[0].content[1].image_url",
}


@pytest.mark.parametrize("door", PATHS)
def test_media_come_with_the_request_or_from_a_public_place(keyed: str, model: ModelServer, door: str) -> None:
    asked = {**ASKED, "input_tokens": counted}[door]
    for url in (PUBLIC, DATA):
        model.plays(said("Hi"))
        assert asked(keyed, image=url)[0] == 200
    before = len(model.asked)
    for url in ("file:///etc/passwd", "https://169.254.169.254/latest"):
        status, error, _ = asked(keyed, image=url)
        assert (status, error["param"], error["code"]) == (400, PATHS[door], "invalid_value")
        assert error["message"].startswith(f"Invalid '{PATHS[door]}': expected a URL ")
        assert url not in error["message"]
    assert len(model.asked) == before


@pytest.mark.parametrize("url", REFUSED)
def test_every_way_to_write_another_place_is_refused(url: str) -> None:
    part = MediaPart({"type": "image_url", "image_url": {"url": url}}, "messages[0].content[0]")
    with pytest.raises(RequestError) as refused:
        check_media(part, {"data", "https"}, flat=False)
    assert refused.value.param == "messages[0].content[0].image_url.url"


FILE = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjQ="}
IN_MESSAGES: dict[str, tuple[dict[str, Any], str]] = {
    "an image at an address": ({"type": "image", "source": {"type": "url", "url": "http://10.0.0.1/x.png"}}, "url"),
    "an image": ({"type": "image", "source": {**FILE, "media_type": "image/png"}}, "data"),
    "a document": ({"type": "document", "source": FILE}, "data"),
}


@pytest.mark.parametrize("block", IN_MESSAGES)
def test_a_place_in_a_block_of_messages_is_named_as_the_client_wrote_it(block: str) -> None:
    given, field = IN_MESSAGES[block]
    path = "messages[0].content[0]"
    (part,) = [image_part(given, path)] if given["type"] == "image" else document_parts(given, path, set())
    assert isinstance(part, MediaPart)
    with pytest.raises(RequestError) as refused:
        check_media(part, {"https"}, flat=False)
    assert refused.value.param == f"{path}.source.{field}"


@pytest.mark.parametrize(
    "inner",
    [
        {"image_url": "file:///x"},
        {"image_url": {"url": DATA, "more": [{"deep": ["file:///x"]}]}},
        {"image_url": {"url": DATA}, "video_url": {"url": "http://10.0.0.1/"}},
        {"file": {"file_data": "file:///x"}},
        {"file": {"file_id": "http://10.0.0.1/"}},
        {"input_audio": {"data": "http://10.0.0.1/", "format": "wav"}},
    ],
)
def test_a_place_is_found_wherever_it_stands_in_a_part(inner: dict[str, Any]) -> None:
    with pytest.raises(RequestError):
        check_media(MediaPart({"type": "image_url", **inner}, "p"), {"data", "https"}, flat=False)


def test_data_and_words_are_no_places() -> None:
    for inner in (
        {"file": {"file_data": "JVBERi0xLjQ=", "filename": "C:\\notes: 1.pdf", "file_id": "file-1"}},
        {"input_audio": {"data": "//uQxAAAAAAA", "format": "mp3"}},
        {"image_url": {"url": PUBLIC, "detail": "low"}},
        {"image_url": {"url": "https://8.8.8.8/cat.png"}},
        {"image_url": {"url": "HTTPS://Example.COM:8443/cat.png?x=1#y"}},
    ):
        check_media(MediaPart({"type": next(iter(inner)), **inner}, "p"), {"data", "https"}, flat=False)


def test_the_configuration_allows_other_places(keyed: str, model: ModelServer) -> None:
    for name, url, status in (
        ("wide", "http://example.com/cat.png", 200),
        ("wide", "http://10.0.0.5/cat.png", 400),
        ("wide", PUBLIC, 400),
        ("all", "file:///srv/cat.png", 200),
    ):
        model.plays(said("Hi"))
        assert chat(keyed, image=url, model=name)[0] == status


def test_a_conversation_keeps_no_place_that_no_model_takes(serve: Served, model: ModelServer) -> None:
    url = serve(
        ModelConfig(name="m", upstream=model.url),
        ModelConfig(name="wide", upstream=model.url, media_urls=("http",)),
        keys=KEYS,
    )
    status, error, _ = _http(url, CONVERSATIONS, {"items": _input("file:///etc/passwd")})
    assert (status, error["param"]) == (400, "items[0].content[1].image_url")
    reply = request(url + CONVERSATIONS, {"items": _input("http://example.com/x.png")}, headers=HEADERS)
    assert reply.status == 200
    # What one model takes, another still does not.
    status, error, _ = responses(url, conversation=reply.json["id"])
    assert (status, error["param"]) == (400, "previous_response_id[0].content[1].image_url")


# --- the page ---


def test_the_page_has_every_field_that_passes() -> None:
    page = (ROOT / "docs" / "openai-fields.md").read_text(encoding="utf-8")
    section = page.partition("## What goes to the model's server")[2].partition("\n## ")[0]
    known = KNOWN_FIELDS.union(*(endpoint.known for endpoint in (COMPLETIONS, EMBEDDINGS, RERANK, SCORE)))
    assert not [name for name in sorted(known) if f"`{name}`" not in section]


def test_a_scheme_is_a_word(tmp_path: Any) -> None:
    path = tmp_path / "callwright.toml"
    path.write_text('[[models]]\nname = "m"\nupstream = "simulated"\nmedia_urls = ["https://"]\n')
    with pytest.raises(ConfigError, match="media_urls"):
        load_config(path)
    found = build_models(Config(models=(ModelConfig(name="m", upstream="simulated"),), keys=KEYS))["m"].passes
    assert found.media_urls == frozenset(("data", "https"))
