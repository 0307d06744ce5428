"""The official openai package reads what a server says beside text and calls: refusals, annotations, its tier."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.outputs import QUESTION
from tests.support.servers import ModelServer
from tests.wire.test_server_events import CASES, CITED, NO, played

pytestmark = pytest.mark.clients

both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
ASKED = {"model": "native", "messages": [QUESTION]}
ASKED_RESPONSES = {"model": "native", "input": QUESTION["content"]}


@pytest.fixture
def client(gateway: str) -> Iterator[Any]:
    openai = pytest.importorskip("openai", reason="the openai package is not installed")
    with openai.OpenAI(base_url=f"{gateway}/v1", api_key="any", max_retries=0) as made:
        yield made


def completed(client: Any, *, stream: bool) -> Any:
    """A chat completion, from the package's own helper where it is streamed."""
    if not stream:
        return client.chat.completions.create(**ASKED)
    with client.chat.completions.stream(**ASKED) as chunks:
        chunks.until_done()
        return chunks.get_final_completion()


def responded(client: Any, *, stream: bool) -> Any:
    if not stream:
        return client.responses.create(**ASKED_RESPONSES)
    with client.responses.stream(**ASKED_RESPONSES) as events:
        events.until_done()
        return events.get_final_response()


@both
def test_a_refusal(client: Any, model: ModelServer, stream: bool) -> None:
    model.plays(played(CASES["a refusal"], stream=stream), played(CASES["a refusal"], stream=stream))
    message = completed(client, stream=stream).choices[0].message
    assert (message.content, message.refusal) == (None, NO)
    ((part,),) = [item.content for item in responded(client, stream=stream).output]
    assert (part.type, part.refusal) == ("refusal", NO)


def test_a_refusal_where_the_answer_is_parsed(client: Any, model: ModelServer) -> None:
    pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed")
    sight = pydantic.create_model("Sight", place=(str, ...))
    model.plays(*(played(CASES["a refusal"], stream=False) for _ in range(2)))
    message = client.chat.completions.parse(**ASKED, response_format=sight).choices[0].message
    assert (message.parsed, message.refusal) == (None, NO)
    parsed = client.responses.parse(**ASKED_RESPONSES, text_format=sight)
    assert parsed.output_parsed is None
    assert parsed.output[0].content[0].refusal == NO


@both
def test_annotations(client: Any, model: ModelServer, stream: bool) -> None:
    case = CASES["annotations behind the text"]
    model.plays(played(case, stream=stream), played(case, stream=stream))
    if not stream:  # the package's helper for streams of chunks knows no annotations
        first, _ = completed(client, stream=stream).choices[0].message.annotations
        assert first.url_citation.url == CITED["url"]
    else:
        completed(client, stream=stream)
    ((part,),) = [item.content for item in responded(client, stream=stream).output]
    assert [one.title for one in part.annotations] == ["Paris", "Weather"]


@both
def test_the_tier_and_the_fingerprint(client: Any, model: ModelServer, stream: bool) -> None:
    case = CASES["a fingerprint and a tier"]
    model.plays(played(case, stream=stream), played(case, stream=stream))
    answer = completed(client, stream=stream)
    assert (answer.service_tier, answer.system_fingerprint) == ("priority", case.said["system_fingerprint"])
    assert responded(client, stream=stream).service_tier == "priority"
