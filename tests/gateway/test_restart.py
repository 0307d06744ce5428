"""A gateway that is killed: what a client has seen completed can be continued from the next one."""

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.http_client import Live, request
from tests.support.processes import gateway
from tests.support.servers import ModelServer, said

RESPONSES = "/v1/responses"


def ask(url: str, **fields: Any) -> dict[str, Any]:
    reply = request(url + RESPONSES, {"model": "any", **fields})
    assert reply.status == 200, reply.text
    return dict(reply.json)


def contents(body: Any) -> list[Any]:
    return [message["content"] for message in body["messages"]]


@pytest.mark.processes
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_chain_goes_on_from_the_last_completed_response_after_a_kill(model: ModelServer, tmp_path: Path) -> None:
    gate = model.gate()
    half = said("The th", "ird answer")
    model.plays(said("first answer"), said("second answer"), half.__class__((*half.steps[:2], gate, *half.steps[2:])))
    options = ("--upstream", model.url, "--mode", "native", "--store", f"sqlite:///{tmp_path / 'kept.db'}")
    with gateway(*options) as (url, process):
        first = ask(url, input="one")
        second = ask(url, input="two", previous_response_id=first["id"])
        body = {"model": "any", "input": "three", "previous_response_id": second["id"], "stream": True}
        with Live(url + RESPONSES, json.dumps(body).encode()) as live:
            seen = next(piece for piece in live.pieces() if b"response.created" in piece)
            third = json.loads(seen.split(b"data: ", 1)[1])["response"]["id"]
            gate.wait_until_reached()
            process.send_signal(signal.SIGKILL)
            process.wait()
    gate.open()
    model.wait_until_left()
    model.plays(said("another third answer"))
    with gateway(*options) as (url, _):
        lost = request(f"{url}{RESPONSES}/{third}", method="GET")
        assert lost.status == 404
        again = ask(url, input="three", previous_response_id=second["id"])
        assert again["output"][-1]["content"][0]["text"] == "another third answer"
        assert contents(model.body) == ["one", "first answer", "two", "second answer", "three"]


@pytest.mark.processes
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_what_a_killed_gateway_made_in_the_background_is_ended_by_the_next(model: ModelServer, tmp_path: Path) -> None:
    gate = model.gate()
    half = said("Never ", "said")
    model.plays(half.__class__((*half.steps[:2], gate, *half.steps[2:])))
    options = ("--upstream", model.url, "--mode", "native", "--store", f"sqlite:///{tmp_path / 'kept.db'}")
    with gateway(*options) as (url, process):
        made = ask(url, input="one", background=True)["id"]
        gate.wait_until_reached()
        with gateway(*options) as (other, _):  # what lives is left alone
            assert request(f"{other}{RESPONSES}/{made}", method="GET").json["status"] == "in_progress"
        process.send_signal(signal.SIGKILL)
        process.wait()
    gate.open()
    model.wait_until_left()
    with gateway(*options) as (url, _):
        ended = request(f"{url}{RESPONSES}/{made}", method="GET").json
        assert (ended["status"], ended["error"]["code"]) == ("failed", "server_error")
        assert "has ended before it was finished" in ended["error"]["message"]
