"""Messages that came before: what is kept of them changes nothing of what a request says."""

import json
import random
from collections.abc import Iterator
from typing import Any, Final

import pytest

from callwright.errors import RequestError
from callwright.settings.bounds import Bounds
from callwright.tolerant_json.codec import decode, encode
from callwright.turn.model import Mode, Model
from callwright.turn.plan import build_generation_request
from callwright.turn.repeats import heed_repeats
from callwright.upstreams.simulated.model import SimulatedUpstream
from callwright.wire.body import decoded
from callwright.wire.chat.request import ChatRequest, read_request
from callwright.wire.pass_rules import PassRules
from tests.support.bounded import bounded

BOUNDS: Final = Bounds()
IMAGE: Final = {"type": "image_url", "image_url": {"url": "data:,", "more": 1}}
DEEP: Final = json.loads("[" * 11 + "]" * 11)
CONTENTS: Final[tuple[Any, ...]] = (
    *("", "Hi", "<|im_end|> \u2060 ä 𝔤", None, 7, {"text": "no"}),
    [{"type": "text", "text": "one", "cache": 1}, {"type": "text", "text": "two"}],
    [IMAGE],
    [{"type": "text"}],
    [{"type": "riddle"}],
    [{"type": "text", "text": "part"}] * 21,
)
ARGUMENTS: Final = ('{"a": 1}', '{"a":1.0}', '{"a": 1', "", "[1]", '"{}"', "so it goes", None)
OPTIONAL: Final[tuple[dict[str, Any], ...]] = (
    *({}, {}, {}, {"name": "Ann"}, {"name": 3}, {"more": {"of": [1]}}, {"audio": {"id": "x"}}, {"deep": DEEP}),
    *({"reasoning": "Hm."}, {"reasoning_content": "Hm."}, {"refusal": "No."}),
)


def calls(random_: random.Random) -> dict[str, Any]:
    made = [
        {
            "id": random_.choice(["c1", "c2", "c3", None]),
            "type": "function",
            "function": {"name": random_.choice(["look", "weigh"]), "arguments": random_.choice(ARGUMENTS)},
        }
        for _ in range(random_.choice([1, 1, 2, 3]))
    ]
    if not random_.randrange(8):
        return {"function_call": made[0]["function"]}
    return {"tool_calls": made}


def message(random_: random.Random) -> Any:
    role = random_.choice(
        ["user", "assistant", "assistant", "tool", "tool", "system", "developer", "function", "nobody"]
    )
    given: dict[str, Any] = {"role": role, "content": random_.choice(CONTENTS), **random_.choice(OPTIONAL)}
    if role == "assistant" and random_.randrange(3):
        given |= calls(random_)
    if role == "tool":
        given["tool_call_id"] = random_.choice(["c1", "c2", "c3"])
    if role == "function":
        given["name"] = "look"
    return given if random_.randrange(30) else random_.choice([[], "text", None, {}])


def good(random_: random.Random, number: int) -> list[Any]:
    """What an agent's turn adds: a call and its output, at times words, at times the same again."""
    id_ = f"c{number}"
    name = random_.choice(["look", "weigh"])
    called = {"id": id_, "type": "function", "function": {"name": name, "arguments": random_.choice(ARGUMENTS[:6])}}
    said = {"role": "assistant", "content": random_.choice([None, "So."]), "tool_calls": [called]}
    answer = {"role": "tool", "tool_call_id": id_, "content": random_.choice(["It is.", [CONTENTS[6][1]]])}
    return [said | random_.choice([{}, {"reasoning": "Hm."}, {"x": 1}]), answer]


def conversations(seed: int) -> list[list[Any]]:
    """Requests of one client: each with the messages of the one before, some with others of them gone."""
    random_ = random.Random(seed)
    is_good = seed % 2
    messages: list[Any] = [{"role": "user", "content": "Look."}]
    asked: list[list[Any]] = []
    for number in range(8):
        messages = messages + (good(random_, number) if is_good else [message(random_)])
        if not random_.randrange(6):
            messages = [messages[0], *messages[random_.choice([2, 3]) :]]
        asked.append(messages)
    return asked


@pytest.fixture(autouse=True)
def _small() -> Iterator[None]:
    with bounded(MAX_DEPTH=12, MAX_PARTS=40):
        yield


def fault(body: bytes) -> tuple[str, str | None] | None:
    """What is wrong with a body, whatever it asks."""
    try:
        decoded(body, BOUNDS)
    except RequestError as error:
        return str(error), error.param
    return None


def outcome(given: Any, *, mend: bool) -> Any:
    """What a request comes to: how it was read, or what is wrong with it."""
    try:
        return read_request(given, mend=mend)
    except RequestError as error:
        return str(error), error.param, error.code, error.status


def sent(chat: ChatRequest, mode: Mode, upstream_model: str) -> bytes | tuple[str, str | None]:
    model = Model(name="m", upstream=SimulatedUpstream(), upstream_model=upstream_model, mode=mode, dialect="hermes")
    items, dropped = PassRules(only_known=True).items_passed(chat.conversation.items)
    conversation, problem = heed_repeats(chat.conversation, 2)
    try:
        asked = build_generation_request(model, conversation, chat.fields, "2026-01-01")
    except RequestError as error:
        return str(error), error.param
    prompt = asked.prompt.wire_text if asked.prompt else None
    return encode([asked.messages, asked.tools, prompt, items, sorted(dropped), problem, conversation.allowed_tools])


@pytest.mark.parametrize("mend", [False, True], ids=["refused", "mended"])
@pytest.mark.parametrize("seed", range(60))
def test_a_request_is_read_as_if_none_had_come_before(seed: int, mend: bool) -> None:
    for messages in conversations(seed):
        body = json.dumps({"model": "m", "messages": messages}).encode()
        if (told := fault(body)) is not None:
            assert fault(body) == told
            continue
        first = decoded(body, BOUNDS)
        cold = outcome(decode(body), mend=mend)
        assert outcome(first, mend=mend) == cold
        warm = outcome(decoded(body, BOUNDS), mend=mend)
        assert warm == cold
        if isinstance(cold, ChatRequest):
            for mode in ("native", "prompt", "raw"):
                for upstream_model in ("qwen3", "mistral-small-3.1"):
                    wanted = sent(cold, mode, upstream_model)
                    assert [sent(warm, mode, upstream_model) for _ in range(2)] == [wanted, wanted]
        assert decoded(body, BOUNDS) == json.loads(body)


def test_random_requests_are_good_and_bad() -> None:
    found = [
        outcome({"model": "m", "messages": each}, mend=False) for seed in range(60) for each in conversations(seed)
    ]
    good_ones = [each for each in found if isinstance(each, ChatRequest)]
    assert len(good_ones) > 150
    assert len({each[0] for each in found if not isinstance(each, ChatRequest)}) > 10


def test_a_message_that_is_too_deep_or_has_too_many_parts_is_refused_though_it_came_before() -> None:
    deep = {"model": "m", "messages": [{"role": "user", "content": "x", "more": [[[1]]]}]}
    many = {"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": "x"}] * 3}]}
    for given, small, told in (
        (deep, {"MAX_DEPTH": 5}, "too deeply"),
        (many, {"MAX_PARTS": 2}, "too many parts"),
    ):
        body = json.dumps(given).encode()
        assert decoded(body, BOUNDS) == given
        with bounded(**small), pytest.raises(RequestError, match=told):
            decoded(body, BOUNDS)
    with bounded(MAX_DEPTH=6):
        assert decoded(json.dumps(deep).encode(), BOUNDS) == deep


def test_a_message_that_came_before_in_another_place_is_read_for_its_own() -> None:
    shown = {"role": "user", "content": [IMAGE]}
    for messages in ([shown], [{"role": "system", "content": "Look."}, shown]):
        body = json.dumps({"model": "m", "messages": messages}).encode()
        asked = outcome(decoded(body, BOUNDS), mend=False)
        assert asked == outcome(decode(body), mend=False)
        (part,) = asked.conversation.items[-1].parts
        assert part.param.startswith(f"messages[{len(messages) - 1}]")
