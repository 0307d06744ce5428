"""Several gateways on one PostgreSQL, asked in turn by a real client: each goes on with what another one has begun."""

import itertools
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from tests.support import http_client as asking
from tests.support.nginx import nginx
from tests.support.processes import gateway
from tests.support.responses_client import RESPONSES
from tests.support.servers import Answer, ModelServer, said
from tests.support.streaming import assert_flows

pytestmark = [pytest.mark.clients, pytest.mark.postgres]
pytest_plugins = ["tests.support.databases"]
MODEL = "any"


class Replicas:
    """Two gateways. `next()` is a client of one of them, in turn, or of the proxy before them."""

    def __init__(self, urls: Sequence[str], doors: Sequence[str], processes: Sequence["Popen[bytes]"]) -> None:
        openai = pytest.importorskip("openai", reason="openai is not installed")
        self.urls = urls
        self.doors = doors
        self.processes = processes
        self._clients = [openai.OpenAI(base_url=f"{url}/v1", api_key="none") for url in doors]
        self._turn = itertools.cycle(self._clients)

    def next(self) -> Any:
        return next(self._turn)

    def close(self) -> None:
        for client in self._clients:
            client.close()


@contextmanager
def started(url: str, store: str, folder: Path | None) -> Iterator[Replicas]:
    """Two gateways before a model server, behind an nginx that writes into a folder, if there is one."""
    options = ("--upstream", url, "--mode", "native", "--store", store)
    with ExitStack() as running:
        urls, processes = zip(*(running.enter_context(gateway(*options)) for _ in range(2)), strict=True)
        doors = urls if folder is None else (running.enter_context(nginx(folder, urls)),)
        made = Replicas(urls, doors, processes)
        running.callback(made.close)
        yield made


@pytest.fixture(scope="module", params=["in turn", "nginx"])
def pair(
    request: pytest.FixtureRequest,
    postgres: Callable[[], str],
    _model_server: ModelServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Replicas]:
    folder = tmp_path_factory.mktemp("nginx") if request.param == "nginx" else None
    with started(_model_server.url, postgres(), folder) as made:
        yield made


@pytest.fixture
def replicas(pair: Replicas, model: ModelServer) -> Replicas:
    """Two gateways whose model server has nothing to say yet."""
    return pair


def shown(model: ModelServer) -> list[str]:
    """What the model was shown at last."""
    return [message["content"] for message in model.asked[-1].body["messages"]]


def test_a_chain_goes_from_gateway_to_gateway(replicas: Replicas, model: ModelServer) -> None:
    model.plays(*(said(f"answer {number}") for number in range(6)), said("another"))
    previous: str | None = None
    ids: list[str] = []
    for number in range(6):
        asked = {"model": MODEL, "input": f"question {number}", "previous_response_id": previous}
        if number % 2:
            with replicas.next().responses.stream(**asked) as stream:
                response = stream.get_final_response()
        else:
            response = replicas.next().responses.create(**asked)
        assert response.output_text == f"answer {number}"
        ids.append(previous := response.id)
    spoken = [text for number in range(6) for text in (f"question {number}", f"answer {number}")]
    assert shown(model) == spoken[:-1]
    fork = replicas.next().responses.create(model=MODEL, input="instead", previous_response_id=ids[1])
    assert fork.output_text == "another"
    assert shown(model) == [*spoken[:4], "instead"]


def test_what_one_gateway_deletes_is_gone_for_all(replicas: Replicas, model: ModelServer) -> None:
    model.plays(said("one"), said("two"))
    first = replicas.next().responses.create(model=MODEL, input="1")
    assert replicas.next().responses.retrieve(first.id).output_text == "one"
    second = replicas.next().responses.create(model=MODEL, input="2", previous_response_id=first.id)
    replicas.next().responses.delete(first.id)
    for url in replicas.urls:
        assert status_of(f"{url}{RESPONSES}/{first.id}") == 404
        assert status_of(f"{url}{RESPONSES}/{second.id}") == 200


def test_a_conversation_is_everywhere(replicas: Replicas, model: ModelServer) -> None:
    model.plays(said("one"), said("two"))
    conversation = replicas.next().conversations.create(metadata={"topic": "boats"})
    for text in ("1", "2"):
        replicas.next().responses.create(model=MODEL, input=text, conversation=conversation.id)
    assert shown(model) == ["1", "one", "2"]
    items = replicas.next().conversations.items.list(conversation.id, order="asc").data
    assert [item.content[0].text for item in items] == ["1", "one", "2", "two"]
    replicas.next().conversations.delete(conversation.id)
    for url in replicas.urls:
        assert status_of(f"{url}/v1/conversations/{conversation.id}") == 404


def test_what_is_made_in_the_background_is_seen_and_cancelled_from_anywhere(
    replicas: Replicas, model: ModelServer
) -> None:
    gates = [model.gate(), model.gate(), model.gate()]
    model.plays(*(Answer((gate, *said("made").steps)) for gate in gates))
    for end in ("completed", "cancelled", "deleted"):
        made = replicas.next().responses.create(model=MODEL, input="Go.", background=True)
        gate = gates.pop(0)
        gate.wait_until_reached()
        assert {replicas.next().responses.retrieve(made.id).status for _ in range(2)} == {"in_progress"}
        if end == "completed":
            gate.open()
            while (found := replicas.next().responses.retrieve(made.id)).status == "in_progress":
                pass
            assert (found.status, found.output_text) == ("completed", "made")
            continue
        if end == "cancelled":
            assert replicas.next().responses.cancel(made.id).status == "cancelled"
        else:
            replicas.next().responses.delete(made.id)
        model.wait_until_left()
        statuses = {status_of(f"{url}{RESPONSES}/{made.id}") for url in replicas.urls}
        assert statuses == {200 if end == "cancelled" else 404}
        if end == "cancelled":
            assert {replicas.next().responses.retrieve(made.id).status for _ in range(2)} == {"cancelled"}


def test_a_stream_is_not_held_up(replicas: Replicas, model: ModelServer) -> None:
    assert_flows(replicas.doors[0], MODEL, model)


def test_a_gateway_that_ends_costs_no_request_behind_nginx(
    postgres: Callable[[], str], model: ModelServer, tmp_path: Path
) -> None:
    halves = said("Both", " halves.").steps
    gates = [model.gate(), model.gate()]
    model.plays(*(Answer((*halves[:2], gate, *halves[2:])) for gate in gates), *(said("fine") for _ in range(8)))
    with started(model.url, postgres(), tmp_path) as replicas, ExitStack() as streams:
        client = replicas.next().with_options(max_retries=0)
        asked = {"model": MODEL, "input": "Begin."}
        opened = [streams.enter_context(client.responses.stream(**asked)) for _ in gates]
        for gate in gates:
            gate.wait_until_reached()
        assert [in_flight(url) for url in replicas.urls] == [2, 2]  # one on each; the scrape is the other
        replicas.processes[0].send_signal(signal.SIGTERM)
        while asking.request(f"{replicas.urls[0]}/healthz", method="GET").status == 200:
            pass
        for _ in range(4):
            assert client.responses.create(model=MODEL, input="Go on.").output_text == "fine"
        for gate in gates:
            gate.open()
        assert [stream.get_final_response().output_text for stream in opened] == ["Both halves."] * 2
        assert replicas.processes[0].wait(10) in (0, -signal.SIGTERM)
        for _ in range(4):
            assert client.responses.create(model=MODEL, input="Go on.").output_text == "fine"


def status_of(url: str) -> int:
    return asking.request(url, method="GET").status


def in_flight(url: str) -> float:
    lines = asking.request(f"{url}/metrics", method="GET").text.splitlines()
    (line,) = [line for line in lines if line.startswith("callwright_requests_in_flight ")]
    return float(line.split()[1])
