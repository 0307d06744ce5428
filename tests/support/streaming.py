"""Whether a stream reaches its client while the model still writes, whatever stands in between."""

import json

from tests.support.http_client import CHAT, Live
from tests.support.outputs import QUESTION
from tests.support.servers import Answer, ModelServer, said

__all__ = ["assert_flows"]


def assert_flows(url: str, name: str, model: ModelServer) -> None:
    """Ask for a stream of the model of this name, whose server waits in the middle."""
    gate, answer = model.gate(), said("The first half", " and the second.")
    model.plays(Answer((*answer.steps[:2], gate, *answer.steps[2:])))
    body = {"model": name, "messages": [QUESTION], "stream": True}
    with Live(url + CHAT, json.dumps(body).encode()) as live:
        pieces = live.pieces()
        seen = b""
        while b"The first half" not in seen:
            seen += next(pieces)
        assert b"second" not in seen
        gate.open()
        assert b" and the second." in b"".join(pieces)
