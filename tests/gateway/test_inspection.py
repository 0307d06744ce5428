"""The pages of a gateway: what they get to show, of whom, and to whom."""

import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from callwright.gateway.access.keys import hash_of
from callwright.gateway.config.config import Config, InspectLevel, KeyConfig, ModelConfig, ServerConfig
from callwright.gateway.inspection.endpoint import PAGES
from callwright.gateway.inspection.turn_source import RecordedTurns
from callwright.gateway.observability.observability import inspect_level
from callwright.settings.bounds import Bounds
from callwright.turn.reread import RecordError
from tests.support.http_client import CHAT, Live, Reply, request
from tests.support.messages_client import MESSAGES
from tests.support.outputs import QUESTION, TOOLS, block
from tests.support.processes import gateway as process
from tests.support.processes import served
from tests.support.responses_client import RESPONSES
from tests.support.servers import Answer, Gateway, ModelServer, calling, completion, said, whole
from tests.support.waiting import PATIENCE_S, until

ANNA, OTTO, OPERATOR = ("cw-anna-" + "a" * 40, "cw-otto-" + "b" * 40, "cw-root-" + "c" * 40)
KEYS = (
    KeyConfig(name="anna", sha256=hash_of(ANNA)),
    KeyConfig(name="otto", sha256=hash_of(OTTO)),
    KeyConfig(name="root", sha256=hash_of(OPERATOR), operator=True),
)
SECRET = "the heron lands at nine"
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u202e"
ASKED: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": SECRET}], "tools": TOOLS}
Started = Callable[..., str]


@pytest.fixture
def start(model: ModelServer) -> Iterator[Started]:
    """Starts gateways before the model server."""
    with ExitStack() as stack:

        def begin(keys: tuple[KeyConfig, ...] = (), *, bounds: Bounds | None = None, **server: Any) -> str:
            models = (
                ModelConfig(name="m", upstream=model.url, mode="raw", dialect="hermes", retries=1),
                ModelConfig(name="n", upstream=model.url),
            )
            config = Config(models=models, keys=keys, server=ServerConfig(**server), limits=bounds or Bounds())
            gateway = Gateway(config)
            stack.callback(gateway.stop)
            return gateway.url

        yield begin


def get(url: str, path: str, key: str = "", **headers: str) -> Reply:
    own = {"authorization": f"Bearer {key}"} if key else {}
    return request(url + path, method="GET", headers={**own, **headers})


def post(url: str, path: str, body: Any, key: str = "", **headers: str) -> Reply:
    own = {"authorization": f"Bearer {key}"} if key else {}
    return request(url + path, body, headers={**own, **headers})


def rows(url: str, key: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = get(url, "/ui/api/turns", key).json["rows"]
    return found


def ended(url: str, count: int = 1, key: str = "") -> list[dict[str, Any]]:
    """The rows, once so many turns are over."""
    until(lambda: sum(row["over"] for row in rows(url, key)) >= count)
    return rows(url, key)


def turn(url: str, id_: str, key: str = "") -> Any:
    return get(url, f"/ui/api/turns/{id_}", key).json


# --- the pages ---


@pytest.mark.parametrize("path", [*PAGES, "/ui/turns/1-1"])
def test_every_page_is_one_that_loads_nothing_from_elsewhere(start: Started, path: str) -> None:
    reply = get(start(), path.replace("{id}", "x"), accept="text/html,*/*")
    assert reply.status == 200
    assert '<div id="app">' in reply.text
    assert "http://" not in reply.text
    assert "https://" not in reply.text
    policy = dict(part.strip().split(" ", 1) for part in reply.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert reply.headers["x-content-type-options"] == "nosniff"


def test_curl_gets_a_few_lines(start: Started) -> None:
    url = start()
    reply = get(url, "/")
    assert reply.headers["content-type"].startswith("text/plain")
    assert f"OPENAI_BASE_URL={url}/v1" in reply.text


def test_pages_are_open_and_what_they_show_is_not(start: Started) -> None:
    url = start(KEYS)
    assert get(url, "/ui", accept="text/html").status == 200
    assert get(url, "/ui/assets/app.js").status == 200
    for path in ("gateway", "turns", "turns/live", "turns/1-1", "quality"):
        assert get(url, f"/ui/api/{path}").status == 401
    assert post(url, "/ui/api/read", {"output": "x", "dialect": "json"}).status == 401


@pytest.mark.parametrize(
    "name", ["nothing.js", "../__init__.py", "..%2f__init__.py", "vendor/../../reading.py", "vendor", "", "/etc/passwd"]
)
def test_no_other_file_is_served(start: Started, name: str) -> None:
    assert get(start(), f"/ui/assets/{name}").status == 404


def test_a_file_that_is_known_is_not_sent_again(start: Started) -> None:
    url = start()
    first = get(url, "/ui/assets/style.css")
    assert first.headers["content-type"].startswith("text/css")
    again = get(url, "/ui/assets/style.css", **{"if-none-match": first.headers["etag"]})
    assert (again.status, again.text) == (304, "")


def test_all_files_together_are_small() -> None:
    folder = Path(__file__).parents[2] / "src/callwright/inspection/pages"
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".txt"]
    assert sum(path.stat().st_size for path in files) < 300_000
    for path in files:
        text = path.read_text(encoding="utf-8")
        if "vendor" not in path.parts:
            assert len(text.splitlines()) < 500, path
            assert "innerHTML" not in text, path


# --- what is kept ---


@pytest.mark.parametrize(
    ("server", "keys", "level"),
    [
        ({}, (), "full"),
        ({"host": "::1"}, (), "full"),
        ({"host": "0.0.0.0"}, (), "metadata"),
        ({}, KEYS, "metadata"),
        ({"hosts": ("gateway.lan",)}, (), "metadata"),
        ({"inspect": "off"}, (), "off"),
        ({"inspect": "full", "host": "0.0.0.0"}, KEYS, "full"),
    ],
)
def test_by_default_contents_are_shown_only_where_nobody_else_comes(
    server: dict[str, Any], keys: tuple[KeyConfig, ...], level: InspectLevel
) -> None:
    assert inspect_level(Config(server=ServerConfig(**server), keys=keys)) == level


def test_a_turn_is_shown_from_the_request_to_the_answer(start: Started, model: ModelServer) -> None:
    url = start()
    model.plays(completion(block("get_weather", '{"town": 7}')), completion(block("get_weather", "{'city': 'Rome'}")))
    reply = post(url, CHAT, {**ASKED, "seed": 4})
    assert reply.status == 200
    (row,) = ended(url)
    assert row["request_id"] == reply.headers["x-request-id"]
    assert (row["endpoint"], row["model"], row["mode"], row["dialect"]) == (CHAT, "m", "raw", "hermes")
    assert (row["tools"], row["calls"], row["attempts"], row["outcome"]) == (len(TOOLS), 1, 2, "asked_again")
    assert row["problems"]["call_retried"] == 1
    assert row["first_s"] > 0
    assert row["has_contents"]
    shown = turn(url, row["id"])
    assert shown["contents"] == "full"
    assert shown["request"] == {**ASKED, "seed": 4}
    first, second = shown["attempts"]
    prompt = "".join(piece["text"] for piece in first["prompt"])
    assert SECRET in prompt
    assert any(piece["kind"] == "tools" and "get_weather" in piece["text"] for piece in first["prompt"])
    assert any(piece == {"text": "<|im_start|>", "kind": "control"} for piece in first["prompt"])
    assert "city" in first["reading"]["problems"][0]["detail"]
    assert second["again"] == "invalid_arguments"
    assert second["told"][0].startswith("Error: this call was not run.")
    assert second["reading"]["calls"][0]["arguments"] == '{"city": "Rome"}'
    assert first["begun_s"] <= first["sent_s"] <= first["first_s"] <= first["ended_s"] <= second["begun_s"]
    assert shown["answer"]["calls"][0]["name"] == "get_weather"


def test_the_constraint_that_was_sent_is_shown(model: ModelServer) -> None:
    given = ModelConfig(name="v", upstream=model.url, mode="raw", dialect="hermes", server="vllm")
    gateway = Gateway(Config(models=(given,)))
    try:
        model.plays(completion('get_weather", "arguments": {"city": "Rome"}}\n</tool_call>'))
        post(gateway.url, CHAT, {**ASKED, "model": "v", "tool_choice": "required"})
        (attempt,) = turn(gateway.url, ended(gateway.url)[0]["id"])["attempts"]
        assert attempt["constraint"]["kind"] == "xgrammar"
        assert "get_weather" in attempt["constraint"]["text"]
    finally:
        gateway.stop()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, {"messages": [QUESTION]}),
        (RESPONSES, {"input": "Hi", "store": False}),
        (MESSAGES, {"messages": [QUESTION], "max_tokens": 20}),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
def test_each_api_has_its_rows(start: Started, model: ModelServer, path: str, body: Any, streamed: bool) -> None:
    url = start()
    model.plays(said("Good day."))
    post(url, path, {"model": "n", "stream": streamed, **body})
    (row,) = ended(url)
    assert (row["endpoint"], row["outcome"], row["streamed"]) == (path, "text", streamed)
    assert turn(url, row["id"])["answer"]["content"] == "Good day."


OUTCOMES: dict[str, tuple[Answer, str, str, str | None]] = {
    "right": (calling("get_weather", '{"city": "Oslo"}'), "right", "called", None),
    "text": (said("Mild."), "text", "answered", None),
    "mended": (calling("get_weather", '{"city": "Oslo",}'), "mended", "called", None),
    "unknown": (calling("get_whether", '{"city": "Oslo"}'), "invalid", "called", None),
    "cut": (calling("get_weather", '{"city": "Os', finish="length"), "invalid", "cut", None),
    "filtered": (said("Mi", finish="content_filter"), "text", "filtered", None),
    "failed": (whole({"error": {"message": "no"}}, status=500), "failed", "failed", "status"),
}


@pytest.mark.parametrize("case", OUTCOMES)
def test_how_a_turn_ended(start: Started, model: ModelServer, case: str) -> None:
    answer, outcome, end, error = OUTCOMES[case]
    url = start()
    model.plays(*([answer] * 4))
    with Live(url + CHAT, json.dumps({**ASKED, "model": "n", "stream": True}).encode()) as live:
        list(live.pieces())
    (row,) = ended(url)
    assert (row["outcome"], row["ended"], row["error"]) == (outcome, end, error)


REMINDER = {"type": "text", "text": "<system-reminder>It is late.</system-reminder>"}
OUTPUTS: list[dict[str, Any]] = [
    {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "get_weather", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "c", "content": "Mild."},
]
WORDS: dict[str, tuple[list[dict[str, Any]], str]] = {
    "one line": ([{"role": "user", "content": " How\n is\t\tit? "}], "How is it?"),
    "cut off": ([{"role": "user", "content": "é" * 201}], "é" * 199 + "…"),
    "the last": ([QUESTION, {"role": "assistant", "content": "Oslo?"}, {"role": "user", "content": "Rome"}], "Rome"),
    "before outputs": ([dict(QUESTION), *OUTPUTS], QUESTION["content"]),
    "beside a client's own": (
        [{"role": "user", "content": [{"type": "text", "text": "Rome?"}, REMINDER, {"type": "text", "text": "  "}]}],
        "Rome?",
    ),
    "a client's own": ([{"role": "user", "content": [REMINDER]}], REMINDER["text"]),
    "none": ([{"role": "system", "content": "Be brief."}], ""),
}


@pytest.mark.parametrize("case", WORDS)
def test_a_row_has_the_last_words_of_the_user(start: Started, model: ModelServer, case: str) -> None:
    messages, words = WORDS[case]
    url = start()
    model.plays(said("Good."))
    post(url, CHAT, {"model": "n", "messages": messages})
    assert ended(url)[0]["asked"] == words


def test_a_row_has_the_tools_that_were_called_in_order(start: Started, model: ModelServer) -> None:
    url = start()
    order = ["get_weather", "send_mail", "get_weather", *["send_mail"] * 20]
    needed = {"get_weather": '{"city": "Rome"}', "send_mail": '{"to": "a@b.c", "text": "b"}'}
    model.plays(completion("".join(block(name, needed[name]) for name in order)))
    post(url, CHAT, ASKED)
    (row,) = ended(url)
    assert (row["called"], row["calls"]) == (order[:16], len(order))


def test_turns_of_one_conversation_have_one_id(start: Started, model: ModelServer) -> None:
    url = start(KEYS, inspect="full")

    def asked(*messages: dict[str, Any], key: str = ANNA, **fields: Any) -> str:
        model.plays(said("Good."))
        count = len(rows(url, OPERATOR))
        post(url, CHAT, {"model": "n", "messages": messages, **fields}, key)
        id_: str = ended(url, count + 1, OPERATOR)[-1]["conversation"]
        return id_

    system, answer, more = [{"role": role, "content": role} for role in ("system", "assistant", "user")]
    first = asked(system, QUESTION)
    assert asked(system, QUESTION, answer, more) == first
    others = [
        asked(system, more),
        asked(QUESTION),
        asked(system, QUESTION, key=OTTO),
        asked(system, QUESTION, prompt_cache_key="t-1"),
        asked(system, QUESTION, prompt_cache_key="t-2"),
    ]
    assert len({first, *others}) == 6
    assert asked(more, QUESTION, prompt_cache_key="t-3") == asked(more, prompt_cache_key="t-3")


def test_a_response_that_is_continued_is_of_the_same_conversation(start: Started, model: ModelServer) -> None:
    url = start()
    model.plays(*[said("Good.")] * 5)
    first = post(url, RESPONSES, {"model": "n", "input": "One", "instructions": "Be brief."}).json["id"]
    second = post(url, RESPONSES, {"model": "n", "input": "Two", "previous_response_id": first}).json["id"]
    post(url, RESPONSES, {"model": "n", "input": "Three", "previous_response_id": second})
    post(url, RESPONSES, {"model": "n", "input": "Two"})
    *chain, other = ended(url, 4)
    again = post(url, f"/ui/api/turns/{chain[-1]['id']}/again", {}).json["id"]
    chain.append(next(row for row in rows(url) if row["id"] == again))
    assert len({row["conversation"] for row in chain}) == 1
    assert other["conversation"] != chain[0]["conversation"]


@pytest.mark.parametrize("inspect", ["metadata", "full"])
def test_a_client_that_leaves_is_told_apart(start: Started, model: ModelServer, inspect: InspectLevel) -> None:
    url = start(inspect=inspect)
    model.plays(Answer((b"data: {}\n\n", model.gate())))
    with closing(Live(url + CHAT, json.dumps({**ASKED, "model": "n", "stream": True}).encode())):
        until(lambda: len(rows(url)) == 1)
        (row,) = rows(url)
        assert (row["over"], row["outcome"]) == (False, "")
        if inspect == "full":
            assert turn(url, row["id"])["attempts"][0]["ended"] == "running"
    assert ended(url)[0]["outcome"] == "left"
    assert turn(url, row["id"])["attempts"][0]["ended"] == "left"


def test_a_request_that_is_refused_is_a_row_and_a_stranger_is_none(start: Started) -> None:
    url = start(KEYS)
    assert post(url, CHAT, {"model": "m"}, ANNA).status == 400
    assert post(url, CHAT, {**ASKED, "model": "none"}, ANNA).status == 404
    assert post(url, CHAT, ASKED, "cw-nobody").status == 401
    found = ended(url, 2, OPERATOR)
    assert [(row["outcome"], row["error"], row["key"]) for row in found] == [
        ("refused", "missing_required_parameter", "anna"),
        ("refused", "model_not_found", "anna"),
    ]
    assert turn(url, found[0]["id"], OPERATOR)["contents"] == "metadata"


def test_why_a_request_was_refused_is_kept_with_what_was_said(start: Started) -> None:
    url = start()
    reply = post(url, CHAT, {**ASKED, "tool_choice": "sometimes"})
    shown = turn(url, ended(url)[0]["id"])
    assert (shown["contents"], shown["error"]) == ("full", f"tool_choice: {reply.error['message']}")
    assert shown["request"]["tool_choice"] == "sometimes"


def test_without_contents_not_a_word_is_kept(start: Started, model: ModelServer) -> None:
    url = start(inspect="metadata")
    model.plays(completion(block("get_weather", '{"city": "Rome", "unit": "heron"}')))
    post(url, CHAT, ASKED)
    (row,) = ended(url)
    assert not row["has_contents"]
    shown = get(url, f"/ui/api/turns/{row['id']}")
    assert shown.json["contents"] == "metadata"
    assert shown.json["attempts"][0]["ended_s"] > 0
    for word in (SECRET, "heron", "Rome", "get_weather"):
        assert word not in shown.text
        assert word not in get(url, "/ui/api/turns").text


def test_off_keeps_nothing(start: Started, model: ModelServer) -> None:
    url = start(inspect="off")
    model.plays(said("Hi"))
    post(url, CHAT, {**ASKED, "model": "n"})
    assert rows(url) == []
    assert get(url, "/ui/api/gateway").json["inspect"] == "off"
    assert get(url, "/ui/api/quality").json["buckets"] == []
    assert get(url, "/ui/api/turns/1-1").status == 404


def test_only_operators_see_contents_and_a_key_its_own_rows(start: Started, model: ModelServer) -> None:
    url = start(KEYS, inspect="full")
    model.plays(said("One."), said("Two."))
    for key in (ANNA, OTTO):
        post(url, CHAT, {**ASKED, "model": "n"}, key)
    first, _ = ended(url, 2, OPERATOR)
    assert [(row["key"], row["asked"]) for row in rows(url, ANNA)] == [("anna", "")]
    assert first["asked"] == SECRET
    assert turn(url, first["id"], OPERATOR)["contents"] == "full"
    shown = get(url, f"/ui/api/turns/{first['id']}", ANNA)
    assert shown.json["contents"] == "operators"
    assert SECRET not in shown.text
    assert get(url, f"/ui/api/turns/{first['id']}", OTTO).status == 404
    assert get(url, "/ui/api/quality", ANNA).json["buckets"] == []
    refused = post(url, f"/ui/api/turns/{first['id']}/again", {}, ANNA)
    assert (refused.status, refused.error["code"]) == (403, "not_operator")


@pytest.mark.parametrize("header", ["x-forwarded-for", "x-forwarded-proto", "forwarded", "via", "x-real-ip"])
@pytest.mark.parametrize("inspect", [None, "full"])
def test_who_comes_by_a_proxy_sees_contents_only_where_that_is_said(
    start: Started, model: ModelServer, header: str, inspect: InspectLevel | None
) -> None:
    url = start(inspect=inspect)
    model.plays(said("One."))
    post(url, CHAT, {**ASKED, "model": "n"})
    path = f"/ui/api/turns/{ended(url)[0]['id']}"
    for shown in (path, "/ui/api/turns"):
        assert (SECRET in get(url, shown, **{header: "for=203.0.113.7"}).text) == (inspect == "full")
    assert SECRET in get(url, path).text
    if inspect is None:
        assert post(url, f"{path}/again", {}, **{header: "203.0.113.7"}).status == 403


def test_hostile_text_comes_as_text(start: Started, model: ModelServer) -> None:
    url = start()
    model.plays(said(HOSTILE))
    post(url, CHAT, {"model": "n", "messages": [{"role": "user", "content": HOSTILE}]})
    reply = get(url, f"/ui/api/turns/{ended(url)[0]['id']}")
    assert reply.headers["content-type"] == "application/json"
    assert reply.json["answer"]["content"] == HOSTILE


# --- live ---


def test_rows_come_as_they_change(start: Started, model: ModelServer) -> None:
    url = start()
    model.plays(said("Before."), said("Now."))
    post(url, CHAT, {**ASKED, "model": "n"})
    ended(url)
    with Live(url + "/ui/api/turns/live", method="GET") as live:
        assert live.headers["content-type"].startswith("text/event-stream")
        news = _news(live)
        assert [row["outcome"] for row in next(news)] == ["text"]
        post(url, CHAT, {**ASKED, "model": "n"})
        latest: dict[str, Any] = {}
        while latest.get("outcome") != "text":
            (latest,) = next(news)
    until(lambda: get(url, "/metrics").text.count("callwright_requests_in_flight 1.0") == 1)


def _news(live: Live) -> Iterator[list[dict[str, Any]]]:
    for event in live.events():
        if event.startswith(b"event: rows\ndata: "):
            yield json.loads(event.removeprefix(b"event: rows\ndata: "))


@pytest.mark.processes
def test_who_follows_is_let_go_when_the_gateway_ends() -> None:
    with process("--store", "none") as (url, running):
        with Live(url + "/ui/api/turns/live", method="GET") as live:
            assert live.status == 200
            running.send_signal(signal.SIGTERM)
            list(live.pieces())
        assert running.wait(PATIENCE_S) == 0


# --- posts ---


@pytest.mark.parametrize("keys", [(), KEYS])
@pytest.mark.parametrize(
    "headers",
    [{"origin": "https://elsewhere.example"}, {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}],
)
def test_a_post_comes_from_our_pages_alone(
    start: Started, keys: tuple[KeyConfig, ...], headers: dict[str, str]
) -> None:
    url = start(keys)
    body = {"output": "x", "dialect": "json"}
    assert post(url, "/ui/api/read", body, OPERATOR, **headers).status == 403
    own = {"origin": url, "sec-fetch-site": "same-origin"}
    assert post(url, "/ui/api/read", body, OPERATOR, **own).status == 200


def test_an_output_is_read(start: Started) -> None:
    reply = post(
        start(), "/ui/api/read", {"output": block("get_weather", '{"city": "Rome"}'), "dialect": "auto", "tools": TOOLS}
    )
    assert reply.json["found"] == "hermes"
    assert reply.json["calls"][0]["name"] == "get_weather"


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"dialect": "json"}, "output"),
        ({"output": "x"}, "dialect"),
        ({"output": 7, "dialect": "json"}, "output"),
        ({"output": "x" * 1_000_001, "dialect": "json"}, "output"),
        ({"output": "x", "dialect": "nope"}, "dialect"),
        ({"output": "x", "dialect": "json", "tools": [{"type": "function"}]}, "tools[0].function"),
        ({"output": "x", "dialect": "json", "finish_reason": "never"}, "finish_reason"),
        ({"output": "x", "dialect": "json", "start": "never"}, "start"),
    ],
)
def test_what_cannot_be_read_is_named(start: Started, body: Any, param: str) -> None:
    reply = post(start(), "/ui/api/read", body)
    assert (reply.status, reply.error["param"]) == (400, param)


@pytest.mark.parametrize(
    ("how", "mode", "dialect"),
    [
        ({}, "raw", "hermes"),
        ({"dialect": "qwen3_coder"}, "raw", "qwen3_coder"),
        ({"mode": "prompt", "dialect": "json"}, "prompt", "json"),
        ({"mode": "native"}, "native", None),
        ({"model": "n"}, "native", None),
        ({"model": "n", "mode": "raw", "dialect": "harmony"}, "raw", "harmony"),
    ],
)
def test_a_turn_is_asked_again(
    start: Started, model: ModelServer, how: dict[str, str], mode: str, dialect: str | None
) -> None:
    url = start()
    model.plays(completion("Good day."))
    post(url, CHAT, {**ASKED, "temperature": 0.25})
    (row,) = ended(url)
    model.plays(completion("Again.") if mode == "raw" else said("Again."))
    id_ = post(url, f"/ui/api/turns/{row['id']}/again", how).json["id"]
    new = next(row for row in rows(url) if row["id"] == id_)
    assert (new["again_of"], new["mode"], new["dialect"]) == (row["id"], mode, dialect)
    shown = turn(url, id_)
    assert "Again." in (shown["answer"]["content"] or "")
    asked = json.dumps(model.body)
    assert SECRET in asked
    assert '"temperature": 0.25' in asked


@pytest.mark.parametrize(
    ("how", "status"),
    [({"mode": "prompt", "dialect": "nope"}, 400), ({"mode": "never"}, 400), ({"model": "none"}, 404), ([], 400)],
)
def test_what_cannot_be_asked_again_is_named(start: Started, model: ModelServer, how: Any, status: int) -> None:
    url = start()
    model.plays(completion("Good day."))
    post(url, CHAT, ASKED)
    reply = post(url, f"/ui/api/turns/{ended(url)[0]['id']}/again", how)
    assert reply.status == status
    assert post(url, "/ui/api/turns/none/again", {}).status == 404


def test_a_turn_that_fails_again_is_a_turn(start: Started, model: ModelServer) -> None:
    url = start()
    model.plays(completion("Good day."))
    post(url, CHAT, ASKED)
    model.plays(whole({"error": {"message": "out of memory"}}, status=500))
    id_ = post(url, f"/ui/api/turns/{ended(url)[0]['id']}/again", {}).json["id"]
    assert "out of memory" in turn(url, id_)["error"]


# --- what the gateway is ---


def test_models_and_their_servers(start: Started, model: ModelServer) -> None:
    url = start()
    known = {one["name"]: one for one in get(url, "/ui/api/gateway").json["models"]}
    assert (known["m"]["mode"], known["m"]["dialect"], known["n"]["mode"]) == ("raw", "hermes", "native")
    assert known["m"]["upstream"] == model.url
    assert known["m"]["state"] in ("well", "failing")


def test_quality_counts_what_ended(start: Started, model: ModelServer) -> None:
    url = start()
    model.plays(calling("get_weather", '{"city": "Oslo"}'), calling("get_weather", '{"city": "Oslo",}'))
    for _ in range(2):
        post(url, CHAT, {**ASKED, "model": "n"})
    ended(url, 2)
    quality = get(url, "/ui/api/quality").json
    (bucket,) = quality["buckets"]
    assert (bucket["model"], bucket["turns"]) == ("n", 2)
    assert bucket["outcomes"] == {"right": 1, "mended": 1}
    assert bucket["problems"] == {"json_repaired": 1}
    assert len(bucket["first"]) == len(quality["bounds"]) + 1
    assert sum(bucket["seconds"]) == 2


# --- several processes, and files ---


@pytest.mark.processes
@pytest.mark.skipif(sys.platform == "win32", reason="there are no workers on Windows")
def test_workers_are_seen_as_one(model: ModelServer, tmp_path: Path) -> None:
    config = tmp_path / "callwright.toml"
    config.write_text(
        f'[server]\nworkers = 3\n[store]\nurl = "none"\n'
        f'[[models]]\nname = "n"\nupstream = "{model.url}"\nmode = "native"\n'
    )
    with process("--config", str(config)) as (url, _):
        model.plays(*(said(f"Answer {number}.") for number in range(12)))
        for _ in range(12):
            post(url, CHAT, {**ASKED, "model": "n"})
        found = ended(url, 12)
        assert len({row["id"] for row in found}) == 12
        assert len({row["id"].split("-")[0] for row in found}) > 1
        for row in found:
            assert turn(url, row["id"])["contents"] == "full"
        assert sum(bucket["turns"] for bucket in get(url, "/ui/api/quality").json["buckets"]) == 12
        with Live(url + "/ui/api/turns/live", method="GET") as live:
            seen: set[str] = set()
            for batch in _news(live):
                seen |= {row["id"] for row in batch}
                if len(seen) == 12:
                    break
        model.plays(*(said("Again.") for _ in found))
        ids = {post(url, f"/ui/api/turns/{row['id']}/again", {}).json["id"] for row in found}
        assert len(ids) == 12


@pytest.mark.processes
def test_records_are_shown_in_the_same_pages(start: Started, model: ModelServer, tmp_path: Path) -> None:
    folder = tmp_path / "turns"
    with process("--store", "none", "--record", str(folder), "--faults", "single_quotes:1") as (url, _):
        for _ in range(3):
            post(url, CHAT, {**ASKED, "model": "simulated-hermes", "messages": [QUESTION]})
        until(lambda: sum(len(path.read_bytes().splitlines()) for path in folder.glob("*")) == 3)
    (file,) = folder.glob("*")
    command = str(Path(sys.executable).parent / "callwright")
    with served(command, "replay", "--page", str(file), until_said=b" at http") as (url, _):
        address = url.removesuffix("/ui")
        about = get(address, "/ui/api/gateway").json
        assert (about["source"], about["kept"], about["models"]) == ("files", 3, [])
        found = rows(address)
        assert [row["outcome"] for row in found] == ["mended"] * 3
        assert [(row["asked"], row["called"], row["ended"]) for row in found] == [
            (QUESTION["content"], ["get_weather"], "called")
        ] * 3
        assert len({row["conversation"] for row in found}) == 1
        shown = turn(address, found[0]["id"])
        assert shown["attempts"][0]["reading"]["calls"][0]["name"] == "get_weather"
        assert shown["attempts"][0]["differs"] == []
        assert post(address, f"/ui/api/turns/{found[0]['id']}/again", {}).status == 404
        assert sum(bucket["turns"] for bucket in get(address, "/ui/api/quality").json["buckets"]) == 3


HEAD: dict[str, Any] = {"version": 1, "callwright": "0", "model": "m", "upstream": "u", "upstream_model": "m"}


@pytest.mark.parametrize(
    "record",
    [
        {},
        {**HEAD, "time": "nonsense", "attempts": []},
        {**HEAD, "time": "2026-01-01T00:00:00Z", "attempts": [], "problems": [{}]},
        {**HEAD, "time": "2026-01-01T00:00:00Z", "attempts": [{"mode": "raw", "ended": "nonsense"}]},
    ],
)
def test_a_file_that_holds_no_records_is_named(tmp_path: Path, record: dict[str, Any]) -> None:
    file = tmp_path / "turns.jsonl"
    file.write_text(json.dumps(record) + "\n")
    with pytest.raises(RecordError, match=r"turns\.jsonl"):
        RecordedTurns([file], 10)


@pytest.mark.parametrize("inspect", ["metadata", "full"])
def test_words_of_a_server_are_in_no_row(start: Started, model: ModelServer, inspect: InspectLevel) -> None:
    url = start(inspect=inspect)
    model.plays(whole({"error": {"message": SECRET, "code": "the_heron", "type": "heron"}}, status=400))
    post(url, CHAT, {**ASKED, "model": "n", "messages": [QUESTION]})
    (row,) = ended(url)
    assert (row["outcome"], row["ended"], row["error"]) == ("failed", "refused", "request_refused")
    assert "heron" not in get(url, "/ui/api/turns").text


def test_where_models_are_is_for_operators(start: Started, model: ModelServer) -> None:
    url = start(KEYS)
    assert model.url in get(url, "/ui/api/gateway", OPERATOR).text
    assert model.url not in get(url, "/ui/api/gateway", ANNA).text


def test_a_refused_request_has_the_model_that_it_names(start: Started) -> None:
    url = start()
    post(url, CHAT, {"model": "m"})
    assert [row["model"] for row in ended(url)] == ["m"]


def test_a_name_that_may_be_anybodys_is_refused(start: Started) -> None:
    assert get(start(), "/ui/api/turns", host="elsewhere.example").status == 403
