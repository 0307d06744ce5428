"""The AI SDK over Anthropic's API against a started gateway, whole and streamed: `ai_sdk.mjs` says what it does."""

import pytest

from tests import conftest
from tests.clients.node import run_node
from tests.support import outputs
from tests.support.outputs import played
from tests.support.servers import ModelServer, whole
from tests.support.turns import broken_off, wrote

pytestmark = pytest.mark.clients

SCRIPT = "ai_sdk.mjs"
CONVERSATIONS = 4  # that the script holds with each model


@pytest.mark.parametrize("what", ["messages", "messages-rest"])
def test_it_talks_with_the_simulated_model(simulated: str, what: str) -> None:
    run_node(SCRIPT, simulated, what, *conftest.WAYS)


def test_it_talks_with_real_outputs(gateway: str, model: ModelServer) -> None:
    turns = [played(way, what) for way in outputs.WAYS for _ in range(CONVERSATIONS) for what in ("call", "text")]
    model.plays(*turns)
    run_node(SCRIPT, gateway, "messages", *outputs.WAYS)
    assert len(model.asked) == len(turns)


def test_it_tells_what_went_wrong(gateway: str, model: ModelServer) -> None:
    fire = whole({"error": {"message": "the engine is on fire"}}, 500)
    cuts = [broken_off(wrote(way, outputs.TEXT)) for way in outputs.FEW_WAYS]
    model.plays(*(answer for broken in cuts for answer in (fire, fire, broken, broken)))
    run_node(SCRIPT, gateway, "messages-fail", *outputs.FEW_WAYS)
