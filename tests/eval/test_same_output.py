"""The server's own reading beside ours: of the same output, asked for once, told apart by what each makes of it."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from callwright.doctor.findings import Findings, ProbeResult
from callwright.doctor.probes import CHAT, CONTROLS, RAW_CALL, TOOLS
from callwright.errors import ConfigError, UpstreamError
from callwright.eval.case import Case, Must, WantedCall
from callwright.eval.groups.tools import WHOLE, function, user
from callwright.eval.results import Plan, Result, ResultFile, read_records, read_results
from callwright.eval.run import run
from callwright.eval.same_output import TELLING, SameOutputs
from callwright.eval.suite import digest_of
from callwright.eval.ways import candidates, read_way
from callwright.eval.wires import WireAsker
from callwright.turn.reread import reread
from tests.support.eval_models import TODAY
from tests.support.servers import Answer, ModelServer, whole

BELL = function("ring_bell", "Rings the bell.", {"strokes": WHOLE})
RING = '{"name": "ring_bell", "arguments": {"strokes": 3}}'
BROKEN = RING.replace('"strokes"', "strokes")
WANTED = Must(calls=(WantedCall("ring_bell", {"strokes": 3}),))
CASES = [
    Case(id=name, messages=(user(f"Ring it, {name}."),), tools=(BELL,), must=WANTED, tool_choice=choice)
    for name, choice in (("well", None), ("broken", None), ("demanded", "required"))
]
PLAN = Plan("it", digest_of(CASES), "own")


def tokens(text: str, *, in_bytes: bool = True) -> list[dict[str, Any]]:
    """A token for each three bytes: some end within a character, as those of real models do."""
    data = text.encode()
    pieces = [data[at : at + 3] for at in range(0, len(data), 3)] if in_bytes else [text.encode()]
    return [
        {"token": piece.decode(errors="replace"), "logprob": -0.1, "bytes": list(piece) if in_bytes else None}
        for piece in pieces
    ]


def answers(body: Any) -> Answer:
    """Its parser reads what is right, and loses what is broken."""
    is_broken = "broken" in body["messages"][-1]["content"]
    written = f"Déjà vu.\n<tool_call>\n{BROKEN if is_broken else RING}\n</tool_call><|im_end|>"
    call = {"id": "c", "type": "function", "function": {"name": "ring_bell", "arguments": '{"strokes": 3}'}}
    made = {"content": ""} if is_broken else {"content": "Déjà vu.", "tool_calls": [call]}
    choice = {"index": 0, "message": {"role": "assistant", **made}, "finish_reason": "stop"}
    told = {"logprobs": {"content": tokens(written)}} if body.get("logprobs") else {}
    usage = {"prompt_tokens": 9, "completion_tokens": 20, "total_tokens": 29}
    return whole({"choices": [{**choice, **told}], "usage": usage})


def asked(server: ModelServer, folder: Path, play: Callable[[Any], Answer], times: int, **how: Any) -> list[Result]:
    server.plays(*[play] * times)
    outputs = SameOutputs(WireAsker(server.url, "m", "chat", fields=TELLING), TODAY)
    ways = {"direct:chat": outputs.own(), "reread:hermes": outputs.ours("hermes")}

    async def work() -> None:
        with ResultFile(folder, PLAN) as results:
            await run(CASES, ways, results, together=tuple(ways), **how)
        for asker in ways.values():
            await asker.close()

    asyncio.run(work())
    return read_results(folder)[1]


@pytest.mark.parametrize("at_once", [1, 4])
def test_one_output_is_asked_for_once_and_read_twice(model: ModelServer, tmp_path: Path, at_once: int) -> None:
    results = asked(model, tmp_path, answers, 3, at_once=at_once)
    assert len(model.asked) == 3
    right = {(result.way, result.case): result.right for result in results}
    assert right == {
        ("direct:chat", "well"): True,
        ("reread:hermes", "well"): True,
        ("direct:chat", "broken"): False,
        ("reread:hermes", "broken"): True,
        ("direct:chat", "demanded"): True,
    }
    ours = next(result for result in results if (result.way, result.case) == ("reread:hermes", "broken"))
    assert ours.verdict is not None
    assert dict(ours.verdict.problems) == {"json_repaired": 1}
    assert (ours.requests, ours.prompt_tokens, ours.completion_tokens) == (1, 9, 20)


def test_what_was_stopped_in_between_is_asked_again_for_both(model: ModelServer, tmp_path: Path) -> None:
    asked(model, tmp_path, answers, 3)
    path = tmp_path / "results.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if b'"reread:hermes"' not in line or b'"broken"' not in line]
    assert len(kept) == len(lines) - 1
    path.write_bytes(b"".join(kept))
    results = asked(model, tmp_path, answers, 1)
    assert len(model.asked) == 1
    assert len(results) == 5


def test_a_failing_case_of_ours_shows_what_was_written(model: ModelServer, tmp_path: Path) -> None:
    def silent(body: Any) -> Answer:
        answer = json.loads(answers(body).text)
        answer["choices"][0]["logprobs"]["content"] = tokens("I rang it — 3 times.")
        return whole(answer)

    asked(model, tmp_path, silent, 3)
    (record,) = read_records(tmp_path)["reread:hermes broken"]
    (one,) = reread(record)
    assert one is not None
    assert one.now.content == "I rang it — 3 times."
    assert one.differing == []


def test_a_token_without_bytes_is_its_text_and_a_cut_answer_is_cut(model: ModelServer) -> None:
    def cut(_: Any) -> Answer:
        choice = {"index": 0, "message": {"content": "x"}, "finish_reason": "length"}
        written = {"content": tokens("<tool_call>\n", in_bytes=False)}
        return whole({"choices": [{**choice, "logprobs": written}]})

    model.plays(cut)
    outputs = SameOutputs(WireAsker(model.url, "m", "chat", fields=TELLING), TODAY)

    async def work() -> Any:
        answer = await outputs.ours("hermes").ask(CASES[0].request(), "it")
        await outputs.close()
        return answer

    turn = asyncio.run(work()).turn
    assert turn.finish_reason == "length"


def test_a_server_that_tells_nothing_is_an_error_of_our_reading_only(model: ModelServer, tmp_path: Path) -> None:
    def tells_nothing(body: Any) -> Answer:
        return answers({**body, "logprobs": False})

    results = asked(model, tmp_path, tells_nothing, 3)
    errors = {result.error for result in results if result.way == "reread:hermes"}
    assert errors == {"The server does not return the model's output: its answer has no logprobs."}
    assert not any(result.error for result in results if result.way == "direct:chat")


def test_an_error_of_the_server_is_one_of_both_and_the_next_try_asks_anew(model: ModelServer) -> None:
    model.plays(whole({"error": {"message": "It broke."}}, status=500), answers)
    outputs = SameOutputs(WireAsker(model.url, "m", "chat", fields=TELLING), TODAY)
    readers = outputs.own(), outputs.ours("hermes")

    async def work() -> tuple[Any, ...]:
        body = CASES[0].request()
        first = await asyncio.gather(*(one.ask(body, "it") for one in readers), return_exceptions=True)
        second = await asyncio.gather(*(one.ask(body, "it") for one in readers))
        await outputs.close()
        return (*first, *second)

    one, two, *rest = asyncio.run(work())
    assert isinstance(one, UpstreamError)
    assert isinstance(two, UpstreamError)
    assert [len(answer.turn.calls) for answer in rest] == [1, 1]
    assert len(model.asked) == 2


def test_who_leaves_does_not_end_the_answer_for_the_other(model: ModelServer) -> None:
    model.plays(answers)
    outputs = SameOutputs(WireAsker(model.url, "m", "chat", fields=TELLING), TODAY)

    async def work() -> Any:
        body = CASES[0].request()
        leaving = asyncio.create_task(outputs.own().ask(body, "it"))
        staying = asyncio.create_task(outputs.ours("hermes").ask(body, "it"))
        await asyncio.sleep(0)
        leaving.cancel()
        answer = await staying
        await outputs.close()
        return answer

    assert len(asyncio.run(work()).turn.calls) == 1
    assert len(model.asked) == 1


FINDINGS = Findings(
    url="http://x/v1",
    server="vllm",
    model="m",
    dialect="hermes",
    results=tuple(ProbeResult("tools", probe, "works", "") for probe in (CHAT, CONTROLS, RAW_CALL, TOOLS)),
)


def test_the_same_output_is_among_the_ways_of_a_server_that_tells_it() -> None:
    named = [way.name for way in candidates(FINDINGS, tells=True)]
    assert named.index("reread:hermes") == named.index("direct:chat") + 1
    assert "reread:hermes" not in [way.name for way in candidates(FINDINGS)]


@pytest.mark.parametrize(
    ("dialect", "reasoning", "way"),
    [
        ("hermes", None, None),
        ("hermes", "reasoning_content", "raw:hermes+thinking=off"),
        ("glm47", "reasoning", "raw:glm47+thinking=off"),
        ("deepseek_v31", None, "raw:deepseek_v31+thinking=open"),
        ("deepseek_v31", "reasoning", "raw:deepseek_v31+thinking=open"),
        ("json", "reasoning", None),
    ],
)
def test_a_model_that_reasons_is_asked_without_too_and_one_that_could_with(
    dialect: str, reasoning: str | None, way: str | None
) -> None:
    found = msgspec.structs.replace(FINDINGS, dialect=dialect, reasoning=reasoning)
    ways = [one.name for one in candidates(found)]
    assert [one for one in ways if "thinking" in one] == ([way] if way else [])
    assert f"raw:{dialect}" in ways


@pytest.mark.parametrize("text", ["reread", "reread:auto", "reread:hermes+retries=0"])
def test_a_reading_needs_a_dialect_and_has_no_settings(text: str) -> None:
    with pytest.raises(ConfigError, match=r"hermes"):
        read_way(text)
