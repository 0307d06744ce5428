"""The gateway's OpenAPI document: it is valid and whole, real answers are as it says, and schemathesis finds no fault.

`CALLWRIGHT_API_EXAMPLES=1000 pytest tests/gateway/test_openapi.py` looks longer: so many requests for each operation,
and all of schemathesis' phases on all operations, with another seed each time.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from jsonschema_rs import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
from starlette.routing import Route

from callwright.gateway.access.keys import hash_of
from callwright.gateway.app import create_app
from callwright.gateway.config.config import KeyConfig, ModelConfig, ServerConfig, simulated_config
from tests.conftest import WAYS, Served
from tests.support.examples import share
from tests.support.http_client import CHAT, Reply, request
from tests.support.openapi_documents import deepened, with_models
from tests.support.outputs import QUESTION, TOOLS
from tests.support.paths import ROOT
from tests.support.responses_client import CONVERSATIONS, FUNCTIONS, OPEN_RESPONSES, RESPONSES, read_events

EXAMPLES: Final = os.environ.get("CALLWRIGHT_API_EXAMPLES")
KEY: Final = "cw-anna-" + "a" * 40
KEYS: Final = (KeyConfig(name="anna", sha256=hash_of(KEY)),)
MODELS: Final = tuple(
    ModelConfig(name=way, upstream="simulated", faults="sample" if how else "", **how) for way, how in WAYS.items()
)


def document_of(url: str) -> Any:
    reply = request(f"{url}/openapi.json", method="GET", headers={"authorization": f"Bearer {KEY}"})
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json"), reply.text
    return reply.json


@pytest.fixture
def keyed(serve: Served) -> str:
    """A gateway that wants a key."""
    return serve(*MODELS, keys=KEYS)


# --- the document ---


@pytest.mark.parametrize("keys", [KEYS, ()], ids=["with keys", "open"])
def test_the_document_is_valid_and_says_who_needs_a_key(serve: Served, keys: tuple[KeyConfig, ...]) -> None:
    document = document_of(serve(*MODELS, keys=keys))
    OpenAPIV31SpecValidator(document).validate()
    responses = document["paths"]["/v1/models"]["get"]["responses"]
    assert ("401" in responses, "403" in responses) == (bool(keys), not keys)
    assert ("security" in document) == bool(keys)
    assert document["paths"]["/healthz"]["get"].get("security") == ([] if keys else None)


@pytest.mark.parametrize("metrics", [True, False])
def test_every_route_is_in_the_document(serve: Served, metrics: bool) -> None:
    app = create_app(simulated_config(ServerConfig(metrics=metrics)))
    served = {
        (method, route.path.replace(":path", "").rstrip("/"))
        for route in app.state.running.revision.serve.router.routes
        if isinstance(route, Route)
        for method in route.methods or ()
        if method != "HEAD" and route.path != "/" and not route.path.startswith("/ui")  # the pages are for people
    }
    paths = document_of(serve(*MODELS, metrics=metrics))["paths"]
    assert {(method.upper(), path) for path, told in paths.items() for method in told} == served
    assert all(operation["summary"] for told in paths.values() for operation in told.values())
    identities = [operation["operationId"] for told in paths.values() for operation in told.values()]
    assert len(identities) == len(set(identities))


# --- real answers ---


def closed(value: Any) -> Any:
    """A schema that takes no properties but those it names."""
    if isinstance(value, list):
        return [closed(item) for item in value]
    if not isinstance(value, dict):
        return value
    inner = {key: closed(item) for key, item in value.items()}
    return {"additionalProperties": False, **inner} if isinstance(inner.get("properties"), dict) else inner


def operation(document: Any, method: str, path: str) -> Any:
    """What the document says of a request: a path as it is comes before one with parameters."""
    told = document["paths"]
    patterns = {known: re.sub(r"{\w+}", "[^/]+", known) for known in sorted(told, key=lambda known: "{" in known)}
    return told[next(known for known, pattern in patterns.items() if re.fullmatch(pattern, path))][method.lower()]


def holds(document: Any, method: str, path: str, reply: Reply) -> Any:
    """An answer is one that the document has for this request; answers its value."""
    told = operation(document, method, path)["responses"][str(reply.status)]
    kind = reply.headers["content-type"].partition(";")[0]
    schema = told["content"][kind]["schema"]
    components = closed(document["components"])
    components["schemas"]["Item"]["additionalProperties"] = True
    assert reply.headers.keys() >= told["headers"].keys()
    if kind == EVENTS:
        done, data = schema["properties"]["data"]["anyOf"]
        events = reply.events if path == CHAT else read_events(reply, done=path == OPEN_RESPONSES)
        assert done == {"const": "[DONE]"}
        Draft202012Validator({"items": data["contentSchema"], "components": components}).validate(events)
        return events
    Draft202012Validator({**schema, "components": components}).validate(reply.json)
    return reply.json


class Asked(NamedTuple):
    """A request, and the status of its answer. Where the path has `{id}`, what was made before is asked for."""

    method: str
    path: str
    body: Any = None
    status: int = 200


EVENTS: Final = "text/event-stream"
STREAM: Final = {"stream": True}
USAGE: Final = {"include_usage": True}
FORCED: Final = {"tool_choice": "required"}
CUSTOM: Final = {"type": "custom", "custom": {"name": "note"}}
STORY: Final[dict[str, tuple[Asked, ...]]] = {
    "chat": (
        Asked("POST", CHAT, {"model": "native", "messages": [QUESTION]}),
        Asked("POST", CHAT, {"model": "raw-hermes", "messages": [QUESTION], "tools": TOOLS}),
        Asked("POST", CHAT, {"model": "raw-harmony", "messages": [QUESTION], "functions": [TOOLS[0]["function"]]}),
        Asked("POST", CHAT, {"model": "native", "messages": [QUESTION], **STREAM, "stream_options": USAGE}),
        Asked("POST", CHAT, {"model": "raw-hermes", "messages": [QUESTION], "tools": TOOLS, **STREAM}),
        Asked("POST", CHAT, {"model": "native", "messages": [QUESTION], "tools": [CUSTOM], **FORCED, **STREAM}),
        Asked("POST", CHAT, {"model": "native", "messages": [QUESTION], "tools": [CUSTOM], **FORCED}),
        Asked(
            "POST",
            CHAT,
            {"model": "raw-harmony", "messages": [QUESTION], "functions": [TOOLS[0]["function"]], **STREAM},
        ),
        Asked("POST", CHAT, {"model": "native", "messages": []}, 400),
        Asked("POST", CHAT, {"model": "nativ", "messages": [QUESTION]}, 404),
    ),
    "responses": (
        Asked(
            "POST", RESPONSES, {"model": "raw-harmony", "input": "What is the weather in Paris?", "tools": FUNCTIONS}
        ),
        Asked("GET", f"{RESPONSES}/{{id}}"),
        Asked("GET", f"{RESPONSES}/{{id}}/input_items"),
        *(
            Asked("POST", path, {"model": "raw-harmony", "input": "Hi", "tools": tools, **FORCED, **STREAM, **how})
            for path, tools, how in (
                (RESPONSES, FUNCTIONS, {}),
                (RESPONSES, FUNCTIONS, {"reasoning": {"summary": "auto"}, "include": ["reasoning.encrypted_content"]}),
                (RESPONSES, [{"type": "custom", "name": "note"}], {"max_output_tokens": 16}),
                (RESPONSES, [{"type": "shell"}], {}),
                (RESPONSES, [{"type": "local_shell"}], {}),
                (RESPONSES, [{"type": "apply_patch"}], {}),
                (OPEN_RESPONSES, FUNCTIONS, {}),
            )
        ),
        Asked("POST", f"{RESPONSES}/{{id}}/cancel", {}, 400),
        Asked("DELETE", f"{RESPONSES}/{{id}}"),
        Asked("GET", f"{RESPONSES}/{{id}}", None, 404),
        Asked("POST", RESPONSES, {"model": "native", "input": "Hi", "background": True}),
        Asked("POST", f"{RESPONSES}/{{id}}/cancel", {}),
        Asked("POST", f"{RESPONSES}/compact", {"model": "native", "input": "Hi"}),
        Asked("POST", f"{RESPONSES}/input_tokens", {"model": "native", "input": "Hi"}),
        Asked("POST", OPEN_RESPONSES, {"model": "native", "input": "Hi", "reasoning": {"effort": "low"}}),
    ),
    "conversations": (
        Asked("POST", CONVERSATIONS, {"metadata": {"a": "b"}, "items": [{**QUESTION, "id": "msg_1"}]}),
        Asked("POST", f"{CONVERSATIONS}/{{id}}", {"metadata": {"c": "d"}}),
        Asked("GET", f"{CONVERSATIONS}/{{id}}"),
        Asked("GET", f"{CONVERSATIONS}/{{id}}/items"),
        Asked("POST", f"{CONVERSATIONS}/{{id}}/items", {"items": [QUESTION]}),
        Asked("GET", f"{CONVERSATIONS}/{{id}}/items/msg_1"),
        Asked("DELETE", f"{CONVERSATIONS}/{{id}}/items/msg_1"),
        Asked("DELETE", f"{CONVERSATIONS}/{{id}}"),
    ),
    "handed on": (
        Asked("POST", "/v1/completions", {"model": "native", "prompt": "The fox"}),
        Asked("POST", "/v1/completions", {"model": "native", "prompt": "The fox", "n": 0}, 400),
        Asked("POST", "/v1/embeddings", {"model": "native", "input": ["The fox"]}),
        *(
            Asked("POST", path, {"model": "native", "query": "fox", "documents": ["The fox"]})
            for path in ("/v1/rerank", "/rerank", "/v2/rerank")
        ),
        Asked("POST", "/v1/score", {"model": "native", "text_1": "fox", "text_2": ["The fox"]}),
        Asked("POST", "/v1/score", {"model": "nativ", "text_1": "fox", "text_2": "fox"}, 404),
    ),
    "the gateway": (
        Asked("GET", "/v1/models"),
        Asked("GET", "/v1/models/native"),
        Asked("GET", "/v1/models/nativ", None, 404),
        Asked("GET", "/healthz"),
    ),
}


@pytest.mark.parametrize("story", STORY)
def test_real_answers_are_as_the_document_says(keyed: str, story: str) -> None:
    document = document_of(keyed)
    made = ""
    for method, path, body, status in STORY[story]:
        asked = path.replace("{id}", made)
        reply = request(keyed + asked, body, method=method, headers={"authorization": f"Bearer {KEY}"})
        assert reply.status == status, reply.text
        value = holds(document, method, asked, reply)
        if method == "POST" and path in (RESPONSES, CONVERSATIONS) and "id" in value:
            made = value["id"]


def test_who_is_refused_is_told_as_the_document_says(keyed: str) -> None:
    document = document_of(keyed)
    assert holds(document, "GET", "/v1/models", request(f"{keyed}/v1/models", method="GET"))["error"]["code"]


# --- schemathesis ---


class Look(NamedTuple):
    """What schemathesis is to look at: its options, and what becomes of the document for it.

    `unchecked`: what need not hold.
    """

    options: tuple[str, ...]
    changed: Callable[[Any], Any] = lambda document: document
    unchecked: tuple[str, ...] = ()
    history: str = "strict"


LOOKS: Final = {
    "as documented": Look(("--phases", "fuzzing,stateful")),
    "each field": Look(("--phases", "coverage")),
    "what fits": Look(
        ("--phases", "fuzzing", "--mode", "positive"),
        deepened,
        ("negative_data_rejection", "not_a_server_error"),  # see `only_the_model_fails`
        history="mend",
    ),
}
# In the suite: what other paths do, too, is left out. The phase that goes through each field in turn sends thousands of
# requests to those that have many, however few are asked for.
SAME: Final = "openresponses|compact|input_tokens"
LONG: Final = "chat|responses|items$"
# A path that is not served with a method has no other answer than one that is not served at all. What fits the document
# may be refused, as it says.
NOT_CHECKED: Final = ("unsupported_method", "positive_data_acceptance")


@pytest.mark.processes
@pytest.mark.parametrize(
    "look", [pytest.param(look, marks=() if look == "as documented" else pytest.mark.slow) for look in LOOKS]
)
def test_schemathesis_finds_no_fault(serve: Served, tmp_path: Path, look: str) -> None:
    options, changed, unchecked, history = LOOKS[look]
    url = serve(*MODELS, keys=KEYS, history=history)
    document = changed(with_models(document_of(url), list(WAYS)))
    (tmp_path / "openapi.json").write_text(json.dumps(document), encoding="utf-8")
    (tmp_path / "schemathesis.toml").write_text("max-stream-events = 100000", encoding="utf-8")
    left_out = f"{SAME}|{LONG}" if look == "each field" else SAME
    brief = ("--exclude-path-regex", left_out, "--generation-deterministic")
    run = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "run", "openapi.json", "--url", url, "--no-color"),
            *("--header", f"Authorization: Bearer {KEY}", "--request-timeout", "20", "--warnings", "off"),
            *(
                "--checks",
                "all",
                "--exclude-checks",
                ",".join((*NOT_CHECKED, *unchecked)),
                "--suppress-health-check",
                "all",
            ),
            *("--max-examples", EXAMPLES or str(share(6)), *(() if EXAMPLES else brief), *options),
        ],
        cwd=tmp_path,
        env={
            **os.environ,
            "SCHEMATHESIS_HOOKS": "tests.support.openapi_streams",
            "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src"))),
        },
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "generated" in run.stdout, run.stdout
