"""The openai package's `parse` against models that write prose, fences, wrong types and half JSON: what it gets for a
strict schema is valid, or an error of the API, and never something that does not parse.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import Served, scripted_models
from tests.support.outputs import QUESTION, spoken
from tests.support.servers import Answer, ModelServer, said

pytestmark = pytest.mark.clients

WAYS = ("native", "prompt-json", "prompt-hermes", "raw-hermes-openai", "raw-hermes-vllm", "raw-harmony-vllm")
GOOD = '{"place": "Eiffel Tower", "height": 330}'
# What the model writes first, and how often it is asked again for that.
FIRST = {
    "a fence": (f"```json\n{GOOD}\n```", 0),
    "prose around": (f"Here is the sight:\n{GOOD}\nDo you need more?", 0),
    "a number as text": ('{"place": "Eiffel Tower", "height": "330"}', 0),
    "other quotes": ("{'place': 'Eiffel Tower', 'height': 330}", 0),
    "prose": ("The Eiffel Tower has 330 m.", 1),
    "another type": ('{"place": "Eiffel Tower", "height": "very high"}', 1),
    "a part": ('{"place": "Eiffel Tower"}', 1),
    "half": ('{"place": "Eiffel Tower", "height": 33', 1),
    "nothing": ("", 1),
}
# A raw stream that the server was told the form of is not held: it goes out as far as it keeps the form.
STREAMED = [(way, first) for way in WAYS for first in FIRST if "vllm" not in way or not FIRST[first][0].startswith("{")]


@pytest.fixture
def client(serve: Served, model: ModelServer) -> Iterator[Any]:
    openai = pytest.importorskip("openai", reason="the openai package is not installed")
    gateway = serve(*scripted_models(model.url, retries=2))
    with openai.OpenAI(base_url=f"{gateway}/v1", api_key="none", max_retries=0) as made:
        yield made


def sight() -> Any:
    """A class that answers are parsed into."""
    pydantic = pytest.importorskip("pydantic")
    return pydantic.create_model("Sight", place=(str, ...), height=(int, ...))


def answers(way: str, *texts: str) -> list[Answer]:
    if "harmony" in way:
        return [spoken(way, f"<|channel|>final<|message|>{text}<|return|>") for text in texts]
    return [said(text) if way == "native" else spoken(way, text) for text in texts]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("first", FIRST)
def test_chat_completions_parse(client: Any, model: ModelServer, way: str, first: str) -> None:
    text, again = FIRST[first]
    model.plays(*answers(way, text, GOOD))
    kind = sight()
    made = client.chat.completions.parse(model=way, messages=[QUESTION], response_format=kind)
    assert made.choices[0].message.parsed == kind(place="Eiffel Tower", height=330)
    assert len(model.asked) == 1 + again


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("first", FIRST)
def test_responses_parse(client: Any, model: ModelServer, way: str, first: str) -> None:
    text, again = FIRST[first]
    model.plays(*answers(way, text, GOOD))
    kind = sight()
    made = client.responses.parse(model=way, input="How high is it?", text_format=kind)
    assert made.output_parsed == kind(place="Eiffel Tower", height=330)
    assert len(model.asked) == 1 + again


@pytest.mark.parametrize(("way", "first"), STREAMED)
def test_the_stream_helpers(client: Any, model: ModelServer, way: str, first: str) -> None:
    text, again = FIRST[first]
    model.plays(*answers(way, text, GOOD))
    kind = sight()
    with client.chat.completions.stream(model=way, messages=[QUESTION], response_format=kind) as stream:
        made = stream.get_final_completion()
    assert made.choices[0].message.parsed == kind(place="Eiffel Tower", height=330)
    assert len(model.asked) == 1 + again
    model.plays(*answers(way, text, GOOD))
    with client.responses.stream(model=way, input="How high is it?", text_format=kind) as stream:
        assert stream.get_final_response().output_parsed == kind(place="Eiffel Tower", height=330)


@pytest.mark.parametrize("way", WAYS)
def test_what_never_comes_is_an_error_of_the_api(client: Any, model: ModelServer, way: str) -> None:
    openai = pytest.importorskip("openai")
    kind = sight()
    model.plays(*answers(way, "No.", "Never.", "Not at all."))
    with pytest.raises(openai.InternalServerError, match="No valid answer in the requested form in 3 attempts"):
        client.chat.completions.parse(model=way, messages=[QUESTION], response_format=kind)
    model.plays(*answers(way, "No.", "Never.", "Not at all."))
    with pytest.raises(openai.InternalServerError, match="No valid answer in the requested form in 3 attempts"):
        client.responses.parse(model=way, input="How high is it?", text_format=kind)
