"""A large request costs what it is long, and others do not wait for it to be rendered."""

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import pytest

import callwright
from callwright.conversation import Conversation, FunctionTool, Message, TextPart
from callwright.prompt import BREAK, Control, Prompt, Text
from callwright.turn import loop
from callwright.turn.model import Model
from callwright.turn.plan import build_generation_request
from callwright.turn.portions import portions
from callwright.turn.run import run_turn
from callwright.upstreams.base import Delta, FinishDelta, TextDelta
from callwright.upstreams.simulated import model as simulated
from callwright.upstreams.simulated.answer import answer
from callwright.upstreams.simulated.model import SimulatedUpstream
from callwright.wire.anthropic.request import decode_request as decode_messages
from callwright.wire.anthropic.request import read_request as read_messages
from callwright.wire.chat.request import read_request
from callwright.wire.responses.request import decode_request
from callwright.wire.responses.request import read_request as read_responses
from tests.support.entries import entered
from tests.support.fresh import caches, forget

MOST: Final = 2.5
SIZE: Final = 60


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def calls(count: int, id_: str = "c{}") -> dict[str, Any]:
    function = {"name": "f", "arguments": "{}"}
    made = [{"id": id_.format(number), "type": "function", "function": function} for number in range(count)]
    return {"role": "assistant", "content": None, "tool_calls": made}


def outputs(count: int, id_: str = "c{}") -> list[dict[str, Any]]:
    return [{"role": "tool", "tool_call_id": id_.format(number), "content": "ok"} for number in range(count)]


def chat(messages: list[dict[str, Any]], *, mend: bool = False) -> None:
    read_request({"model": "m", "messages": messages}, mend=mend)


def responses(size: int, *, backwards: bool) -> None:
    items: list[dict[str, Any]] = [
        {"type": "function_call", "call_id": f"c{number}", "name": "f", "arguments": "{}"} for number in range(size)
    ]
    answers = [{"type": "function_call_output", "call_id": f"c{number}", "output": "ok"} for number in range(size)]
    given = {"model": "m", "input": [*items, *(reversed(answers) if backwards else answers)]}
    read_responses(decode_request(given), given, [])


def anthropic(messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None = None) -> None:
    given = {"model": "m", "max_tokens": 5, "messages": messages, "tools": tools}
    read_messages(decode_messages(given), given, {})


def blocks(role: str, *given: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "content": list(given)}


def results(size: int, *, backwards: bool) -> None:
    uses = [{"type": "tool_use", "id": f"c{number}", "name": "f", "input": {}} for number in range(size)]
    told = [{"type": "tool_result", "tool_use_id": f"c{number}", "content": "ok"} for number in range(size)]
    anthropic([user("a"), blocks("assistant", *uses), blocks("user", *(reversed(told) if backwards else told))])


def deferred(size: int) -> None:
    tools = [
        {"name": f"f{number}", "input_schema": {"type": "object"}, "defer_loading": True} for number in range(size)
    ]
    use = {"type": "tool_use", "id": "c", "name": "g", "input": {}}
    found = [{"type": "tool_reference", "tool_name": f"f{number}"} for number in range(size)]
    anthropic(
        [
            user("a"),
            blocks("assistant", use),
            blocks("user", {"type": "tool_result", "tool_use_id": "c", "content": found}),
        ],
        tools,
    )


def defined(size: int) -> None:
    tools = [{"name": f"f{number}", "input_schema": {"type": "object"}} for number in range(size)]
    added = [{"type": "tool_addition", "tool": {"type": "tool_definition", "definition": tool}} for tool in tools]
    anthropic([user("a"), *(blocks("system", one) for one in added)])


READ: Final[dict[str, Callable[[int], None]]] = {
    "messages": lambda size: chat([user("a")] * size),
    "calls": lambda size: chat([user("a"), calls(size), *outputs(size)]),
    "calls, backwards": lambda size: chat([user("a"), calls(size), *reversed(outputs(size))]),
    "calls, mended": lambda size: chat([user("a"), calls(size), *reversed(outputs(size))], mend=True),
    "calls of one id, mended": lambda size: chat([calls(size, "c"), *outputs(size, "c")], mend=True),
    "outputs without calls, mended": lambda size: chat([calls(1), *outputs(1), *outputs(size, "c0")], mend=True),
    "items": lambda size: responses(size, backwards=False),
    "items, backwards": lambda size: responses(size, backwards=True),
    "messages of one role": lambda size: anthropic([user("a")] * size),
    "results": lambda size: results(size, backwards=False),
    "results, backwards": lambda size: results(size, backwards=True),
    "tools that are deferred and found": deferred,
    "tools that messages define": defined,
}


@pytest.mark.parametrize("case", READ)
def test_twice_the_messages_take_twice_the_work(case: str) -> None:
    READ[case](2 * SIZE)  # what is kept of tools by their text is there for both
    once, twice = (entered(partial(READ[case], size)) for size in (SIZE, 2 * SIZE))
    assert twice <= MOST * once


def joined(case: str, size: int) -> list[dict[str, Any]]:
    """Messages with so many texts that stand side by side."""
    texts = [{"type": "text", "text": "a" * 20}] * size
    if case == "parts":
        return [blocks("user", *texts)]
    if case == "messages":
        return [blocks("user", texts[0])] * size
    call = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
    return [blocks("assistant", call), blocks("user", {"type": "tool_result", "tool_use_id": "c", "content": texts})]


@pytest.mark.parametrize("case", ["parts", "messages", "parts of a result"])
def test_texts_that_stand_side_by_side_are_joined_once(case: str) -> None:
    """15 MB took 15 s where each was added to all before it."""
    anthropic(joined(case, 4))
    once, twice = (entered(partial(anthropic, joined(case, size))) for size in (SIZE, 2 * SIZE))
    assert twice <= MOST * once


@pytest.mark.parametrize("dialect", ["hermes", "harmony", "json"])
def test_twice_the_messages_are_rendered_with_twice_the_work(dialect: str) -> None:
    def rendered(size: int) -> str:
        messages = [user("a"), {"role": "assistant", "content": "<|im_end|>"}] * size
        return callwright.render(messages, dialect=dialect).wire_text

    rendered(SIZE)
    forget(caches())
    once, twice = (entered(partial(rendered, size)) for size in (SIZE, 2 * SIZE))
    assert twice <= MOST * once


def test_a_literal_in_a_text_costs_a_few_steps() -> None:
    controls = ("<|im_end|>", "<|im_start|>")
    count = 1_000
    prompt = Prompt((Control("<|im_start|>"), Text("<|im_end|>" * count), Control("<|im_end|>")), controls)
    assert entered(lambda: prompt.wire_text) < 4 * count
    assert prompt.wire_text.count(f"<{BREAK}|im_end|>") == count
    assert prompt.wire_text.startswith("<|im_start|>")
    assert entered(lambda: prompt.wire_text) < 10  # it is kept


@pytest.mark.parametrize(
    ("items", "about", "beside"),
    [
        ((Message("user", (TextPart("Hi"),)),), "Looks.", [False, False]),
        ((Message("user", (TextPart("Hi " * 100_000),)),), "Looks.", [True, True]),
        ((Message("user", (TextPart("Hi"),)),) * 1_000, "Looks.", [True, True]),
        (
            (Message("user", (TextPart("Hi"),)),),
            "Looks. " * 50_000,
            [True, False],
        ),  # which the simulated model does not read
    ],
    ids=["small", "long", "many", "tools"],
)
def test_a_large_conversation_is_rendered_beside_the_event_loop(
    items: tuple[Message, ...], about: str, beside: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []
    ours = threading.current_thread()

    def watched(*given: Any) -> Any:
        seen.append(threading.current_thread() is not ours)
        return build_generation_request(*given)

    def answers(conversation: Conversation) -> Any:
        seen.append(threading.current_thread() is not ours)
        return answer(conversation)

    monkeypatch.setattr(loop, "build_generation_request", watched)
    monkeypatch.setattr(simulated, "answer", answers)
    model = Model(name="m", upstream=SimulatedUpstream(), upstream_model="m", mode="raw", dialect="hermes")

    async def asked() -> bool:
        tools = (FunctionTool("look", about, {"type": "object"}),)
        turn = run_turn(model, Conversation(items=items, tools=tools), {}, today="2026-11-01")
        return bool([batch async for batch in turn])

    assert asyncio.run(asked())
    assert seen == beside


def test_a_long_answer_is_read_in_portions_with_pauses_for_others() -> None:
    text = "x" * 100_000
    whole = portions([TextDelta("a"), TextDelta(text), TextDelta("b", {"content": []}), FinishDelta("stop")])
    read = [list(portion) for portion in whole]
    assert len(read) > 10
    assert "".join(delta.text for portion in read for delta in portion if isinstance(delta, TextDelta)) == f"a{text}b"
    assert read[-1][-1] == FinishDelta("stop")
    short: list[Delta] = [TextDelta("a"), FinishDelta("stop")]
    assert list(portions(short)) == [short]
    with_logprobs = TextDelta(text, {"content": []})  # which cannot be divided
    assert [list(portion) for portion in portions([with_logprobs])] == [[with_logprobs]]


class Long:
    """A server that writes a long answer at once."""

    name = "long"

    async def stream(self, _: object) -> Any:
        yield [TextDelta("<think>" + "{" * 400_000), FinishDelta("stop")]


def test_the_event_loop_goes_round_while_an_answer_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callwright.turn.run.PAUSE_S", -1.0)  # whatever the machine's speed
    model = Model(name="m", upstream=Long(), upstream_model="m", mode="raw", dialect="hermes")  # type: ignore[arg-type]
    rounds = 0

    async def others() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            await asyncio.sleep(0)

    async def asked() -> None:
        beside = asyncio.create_task(others())
        conversation = Conversation(items=(Message("user", (TextPart("Hi"),)),))
        async for _ in run_turn(model, conversation, {}, today="2026-11-01", streamed=False):
            pass
        beside.cancel()

    asyncio.run(asked())
    assert rounds > 20
