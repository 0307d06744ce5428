"""Messages that came before are not written again: what goes over the wire is what it would be."""

import json
import random
from typing import Any

import pytest

from callwright.memo.json_values import KnownObject
from callwright.tolerant_json.codec import encode
from callwright.upstreams.chat import _written


def message(random_: random.Random) -> Any:
    made = {"role": random_.choice(["user", "tool"]), "content": random_.choice(["", 'a "b"', "é\n", [{"x": 1}], None])}
    return KnownObject(made) if random_.randrange(20) else made


@pytest.mark.parametrize("seed", range(50))
def test_messages_are_written_as_they_are(seed: int) -> None:
    random_ = random.Random(seed)
    messages: list[Any] = []
    for _ in range(20):
        messages = [*messages[: random_.randrange(max(1, len(messages) - 2), len(messages) + 2)], message(random_)]
        assert json.loads(encode({"messages": _written(messages)})) == {"messages": messages}
    assert encode(_written([])) == b"[]"
