"""The simulated model draws random answers of what a constraint allows; with faults it is wrong as they say."""

import asyncio
import re
from typing import Any

import msgspec
import pytest

import callwright
from callwright.calls.custom_tools import custom_tool
from callwright.calls.toolset import Toolset
from callwright.constraints.compile import compiled, constraint_key
from callwright.conversation import Conversation, FunctionTool, Message, NamedTool, TextPart, ToolChoice
from callwright.dialects.base import get_dialect
from callwright.gateway.config.config import ModelConfig
from callwright.grammar.grammar import Grammar
from callwright.turn.model import Mode, Model
from callwright.turn.plan import build_generation_request
from callwright.upstreams.base import GenerationRequest, TextDelta
from callwright.upstreams.simulated.faults import Faults
from callwright.upstreams.simulated.model import SimulatedUpstream
from tests.conftest import WAYS, Served
from tests.support.constraint_cases import DIVERSE, SHAPED, TOOLS
from tests.support.examples import share
from tests.support.grammar_engines import Llguidance
from tests.support.http_client import CHAT, ask, request
from tests.support.outputs import QUESTION
from tests.support.outputs import TOOLS as SOME_TOOLS

MANY = tuple(tool for tool, _, _ in DIVERSE.values())
SEEDS = max(3, share(8))
FEW = ("harmony", "hermes", "qwen3_coder", "json", "minicpm5", "deepseek_v32", "pythonic", "lfm2", "gemma4")


def asked(
    name: str, seed: int, tools: tuple[FunctionTool, ...] = TOOLS, choice: ToolChoice = "required", mode: Mode = "raw"
) -> GenerationRequest:
    model = Model("m", SimulatedUpstream(), "m", mode=mode, dialect=name)
    question = Message("user", (TextPart("Hi"),))
    return build_generation_request(
        model, Conversation((question,), tools, tool_choice=choice), {"seed": seed}, "2026-01-15"
    )


def drawn(upstream: SimulatedUpstream, generation: GenerationRequest) -> str:
    async def text() -> str:
        deltas = [delta async for together in upstream.stream(generation) for delta in together]
        return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))

    return asyncio.run(text())


def judge_of(generation: GenerationRequest) -> Llguidance:
    assert generation.constraint is not None
    found = compiled(generation.constraint, "llguidance", constraint_key(generation.constraint))
    assert found is not None
    return Llguidance(found.text)


def matches(judged: Llguidance, name: str, text: str) -> bool:
    return any(judged.accepts(text + end) for end in ("", *get_dialect(name).stops))


@pytest.mark.parametrize("choice", ["required", NamedTool("get_weather")], ids=["required", "named"])
@pytest.mark.parametrize("name", SHAPED)
def test_what_it_writes_is_of_the_grammar(name: str, choice: ToolChoice) -> None:
    upstream = SimulatedUpstream(Faults.parse("sample"))
    judged = judge_of(asked(name, 0, choice=choice))
    texts = [drawn(upstream, asked(name, seed, choice=choice)) for seed in range(SEEDS)]
    assert all(matches(judged, name, text) for text in texts), texts
    assert len(set(texts)) > 1


@pytest.mark.parametrize("name", FEW)
@pytest.mark.parametrize("what", DIVERSE)
def test_so_it_is_for_tools_of_all_kinds(name: str, what: str) -> None:
    upstream = SimulatedUpstream(Faults.parse("sample"))
    tools = (DIVERSE[what][0],)
    judged = judge_of(asked(name, 0, tools))
    for seed in range(SEEDS):
        text = drawn(upstream, asked(name, seed, tools))
        assert matches(judged, name, text), text


@pytest.mark.parametrize("name", ["hermes", "qwen3_coder", "json"])
def test_so_it_is_for_the_answer_of_a_chat_server(name: str) -> None:
    upstream = SimulatedUpstream(Faults.parse("sample"))
    judged = judge_of(asked(name, 0, mode="prompt"))
    assert all(matches(judged, name, drawn(upstream, asked(name, seed, mode="prompt"))) for seed in range(SEEDS))


def test_the_same_seed_draws_the_same_and_without_one_it_goes_on() -> None:
    upstream = SimulatedUpstream(Faults.parse("sample"))
    assert drawn(upstream, asked("hermes", 5)) == drawn(upstream, asked("hermes", 5))
    one, other = (drawn(upstream, _without_seed()) for _ in range(2))
    assert one != other


def _without_seed() -> GenerationRequest:
    return msgspec.structs.replace(asked("hermes", 0), fields={})


def test_unasked_it_draws_nothing() -> None:
    upstream = SimulatedUpstream()
    assert len({drawn(upstream, asked("hermes", seed)) for seed in range(SEEDS)}) == 1


def tool_of(tool: FunctionTool) -> dict[str, Any]:
    return tool.as_openai()


@pytest.fixture
def sampling(serve: Served) -> str:
    ways = {way: how for way, how in WAYS.items() if how}
    return serve(
        *(ModelConfig(name=way, upstream="simulated", faults="sample", retries=0, **how) for way, how in ways.items())
    )


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("way", [way for way, how in WAYS.items() if how])
def test_every_call_that_leaves_the_gateway_holds_at_once(sampling: str, way: str, stream: bool) -> None:
    tools = [tool_of(tool) for tool in (*TOOLS, *MANY)]
    known = Toolset((*TOOLS, *MANY))
    for seed in range(SEEDS):
        body = {"model": way, "messages": [QUESTION], "tools": tools, "tool_choice": "required", "seed": seed}
        calls = ask(sampling, body, stream=stream).calls
        assert calls
        for name, arguments in calls:
            assert not known.faults(name, arguments), (name, arguments)


def test_a_grammar_of_a_custom_tool_is_drawn_from_too() -> None:
    tools = (custom_tool("note", None, Grammar("lark", NOTE["definition"])),)
    upstream = SimulatedUpstream(Faults.parse("sample"))
    given = [{"type": "custom", "custom": {"name": "note", "format": {"type": "grammar", "grammar": NOTE}}}]
    turns = [
        callwright.parse(_whole("hermes", seed, upstream, tools), dialect="hermes", tools=given) for seed in range(4)
    ]
    inputs = [call.arguments for turn in turns for call in turn.calls]
    assert all(re.fullmatch("a[0-9]{2}b", text) for text in inputs)
    assert len(set(inputs)) > 1


NOTE = {"syntax": "lark", "definition": 'start: "a" /[0-9]{2}/ "b"'}


def _whole(name: str, seed: int, upstream: SimulatedUpstream, tools: tuple[FunctionTool, ...]) -> str:
    generation = asked(name, seed, tools)
    assert generation.prompt is not None
    return generation.prompt.prefill + drawn(upstream, generation)


def test_with_a_fault_the_drawn_call_is_wrong_in_the_way_it_names(serve: Served) -> None:
    how: dict[str, Any] = {"upstream": "simulated", "mode": "raw", "dialect": "hermes", "retries": 0}
    gateway = serve(ModelConfig(name="faulty", faults="sample,unknown_tool", **how))
    body = {"model": "faulty", "messages": [QUESTION], "tools": [tool_of(tool) for tool in TOOLS], "seed": 3}
    reply = request(gateway + CHAT, {**body, "tool_choice": "required"})
    assert reply.status == 502
    assert "_v2" in reply.error["message"]


@pytest.mark.parametrize("way", WAYS)
def test_the_reasoning_that_was_written_is_counted(simulated: str, way: str) -> None:
    body = {"model": way, "messages": [QUESTION], "tools": SOME_TOOLS}
    whole, cut = (request(simulated + CHAT, {**body, **limit}).json for limit in ({}, {"max_tokens": 3}))
    reasoning = whole["choices"][0]["message"].get("reasoning") or ""
    counted = whole["usage"]["completion_tokens_details"]["reasoning_tokens"]
    assert abs(counted - len(reasoning) / 4) < 2
    assert counted or not reasoning
    assert cut["usage"]["completion_tokens_details"]["reasoning_tokens"] <= cut["usage"]["completion_tokens"] == 3
