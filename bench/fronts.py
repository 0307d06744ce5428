"""Three things in front of the same faulty model: the server itself, LiteLLM's proxy, and Callwright.

    python bench/fronts.py [--litellm PYTHON] [--rate 0.3] [--seed 0]     (scripts/fronts brings LiteLLM)

A model server whose model is right about the cases of `callwright eval`, but writes what it means with faults: in a
share of its answers one of those that the simulated model knows, the same ones for everybody who asks. It is a plain
server: its own parser wants `<tool_call>` and strict JSON between tags and leaves all else in the text, as those of
vLLM and others do; it has no grammars; it heeds no `tool_choice`. What clients get over Chat Completions is judged as
`callwright eval` judges it. `right`: cases with all that was wanted and nothing else; `false`, `lost`, `wrong`,
`invalid`: calls, see docs/eval.md; `asked`: requests to the model, of 100 of the client.
"""

import argparse
import asyncio
import json
import re
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from aiohttp import web

from callwright.conversation import Call, Conversation
from callwright.dialects.base import get_dialect
from callwright.eval.case import Case
from callwright.eval.results import Plan, ResultFile, read_results
from callwright.eval.run import run
from callwright.eval.suite import digest_of, suite
from callwright.eval.summary import WaySummary, summary_of
from callwright.eval.wires import WireAsker
from callwright.reading.collect import Turn
from callwright.upstreams.simulated.faults import FAULTS, SimulatedFault
from gateways import litellm_proxy
from loading import HOST, chunk, free_port, sse, started
from tests.support.eval_models import right_turn

GROUPS: Final = ("one_tool", "many_tools", "values", "texts", "optional", "parallel", "restraint")
DIALECT: Final = "hermes"
MODES: Final = ("native", "prompt", "raw")
_CALL: Final = re.compile(r"<tool_call>(.*?)</tool_call>|<tool_call>(.*)", re.DOTALL)
_BREAK: Final = "\u2060"  # what breaks control tokens in a prompt; models read over it
_KEY: Final = "sk-x"
_NO_CONVERSATION: Final = Conversation(())


class Model:
    """What the model writes, by the case that it is asked. `asked` counts its answers."""

    def __init__(self, cases: Sequence[Case], rate: float, seed: int) -> None:
        self._cases = {_last(case): case for case in cases}
        self._texts = sorted(self._cases, key=len, reverse=True)
        self._dialect = get_dialect(DIALECT)
        self._faults = [
            fault for fault in FAULTS.values() if not fault.failure and (not fault.dialect or fault.dialect == DIALECT)
        ]
        self._rate, self._seed = rate, seed
        self.asked: Counter[str] = Counter()

    def writes(self, shown: str) -> str:
        """The answer to what it is shown. The same case gets another one each time that it is asked."""
        plain = shown.replace(_BREAK, "")
        text = next(text for text in self._texts if text in plain)
        random = Random(f"{self._seed}/{text}/{self.asked[text]}")
        self.asked[text] += 1
        means = right_turn(self._cases[text], ())
        fault = random.choice(self._faults) if random.random() < self._rate else SimulatedFault("none")
        if fault.meaning is not None and means.calls:
            means = fault.meaning(means, _NO_CONVERSATION)
        written = self._dialect.write(means)
        return fault.writing(written) if fault.writing is not None and means.calls else written


def _last(case: Case) -> str:
    return next(str(message["content"]) for message in reversed(case.messages) if message["role"] == "user")


def told_apart(cases: Sequence[Case]) -> list[Case]:
    """The cases of one answer that are known by what the user says last, or are all answered alike."""
    said = Counter(_last(case) for case in cases)
    return [case for case in cases if case.must.calls == () or (case.steps == 1 and said[_last(case)] == 1)]


def own_parser(text: str) -> Turn:
    """What a plain server makes of an output: all calls, or all of it as text."""
    try:
        made = [json.loads(one or rest) for one, rest in _CALL.findall(text)]
        calls = tuple(Call(str(call["name"]), json.dumps(call["arguments"])) for call in made)
    except (ValueError, KeyError, TypeError):
        return Turn(text, None, (), "stop")
    before = text.partition("<tool_call>")[0] if calls else text
    return Turn(before.strip() or None, None, calls, "tool_calls" if calls else "stop")


# --- the server ---


class Server:
    """Answers over Chat Completions, by its own parser where tools are offered, and over Completions."""

    def __init__(self, model: Model) -> None:
        self._model = model

    async def chat(self, request: web.Request) -> web.StreamResponse:
        """`POST /v1/chat/completions`."""
        body = await request.json()
        said = [message["content"] for message in body["messages"] if isinstance(message.get("content"), str)]
        text = self._model.writes("\n".join(said))
        turn = own_parser(text) if body.get("tools") else Turn(text, None, (), "stop")
        finish = "tool_calls" if turn.calls else "stop"
        calls = [
            {"index": n, "id": f"call_{n}", "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
            for n, c in enumerate(turn.calls)
        ]
        message = {"role": "assistant", "content": turn.content, **({"tool_calls": calls} if calls else {})}
        if body.get("stream"):
            return await _streamed(request, chunk(message), chunk({}, finish))
        return web.json_response(
            {
                "id": "x",
                "object": "chat.completion",
                "created": 1,
                "model": "fake",
                "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            }
        )

    async def completions(self, request: web.Request) -> web.StreamResponse:
        """`POST /v1/completions`, streamed."""
        body = await request.json()
        text = self._model.writes(body["prompt"])
        choices = (
            [{"index": 0, "text": text, "finish_reason": None}],
            [{"index": 0, "text": "", "finish_reason": "stop"}],
        )
        return await _streamed(request, *({"id": "x", "choices": choice} for choice in choices))

    async def models(self, _: web.Request) -> web.Response:
        """`GET /v1/models`."""
        return web.json_response({"object": "list", "data": [{"id": "fake", "object": "model"}]})


async def _streamed(request: web.Request, *events: Mapping[str, Any]) -> web.StreamResponse:
    answer = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await answer.prepare(request)
    for event in sse(*events, "[DONE]"):
        await answer.write(event)
    return answer


@asynccontextmanager
async def serving(model: Model) -> AsyncIterator[str]:
    """The server on a port of its own: its base URL."""
    app = web.Application(client_max_size=16_000_000)
    server = Server(model)
    app.router.add_get("/v1/models", server.models)
    app.router.add_post("/v1/chat/completions", server.chat)
    app.router.add_post("/v1/completions", server.completions)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, HOST, port).start()
    yield f"http://{HOST}:{port}/v1"
    await runner.cleanup()


# --- what stands in front of it ---


class Front(NamedTuple):
    """Its base URL, and what it calls the model."""

    url: str
    model: str = "fake"


def fronts(folder: Path, upstream: str, litellm: str | None) -> Iterator[tuple[str, Any]]:
    """All of them by name, each as what starts it, or as it is."""
    yield "the server itself", Front(upstream)
    if litellm:
        proxy = litellm_proxy(litellm, folder, upstream)
        yield "LiteLLM", (proxy.command(port := free_port()), port, proxy.environment, ("fake",))
    path = folder / "callwright.toml"
    ours = f'dialect = "{DIALECT}"\nconstrain = "off"\n'
    entries = [
        f'[[models]]\nname = "{mode}"\nmodel = "fake"\nupstream = "{upstream}"\nmode = "{mode}"\nserver = "vllm"\n'
        + (ours if mode != "native" else "")
        for mode in MODES
    ]
    path.write_text("\n".join(['[store]\nurl = "none"', *entries]))
    port = free_port()
    command = [sys.executable, "-m", "callwright", "serve", "--config", str(path), "--port", str(port)]
    yield "Callwright", (command, port, {}, MODES)


async def measured(given: argparse.Namespace, folder: Path) -> dict[str, tuple[WaySummary, int]]:
    """What each front makes of the same answers, and how often it has asked for them."""
    cases = told_apart(suite("full", given.seed, GROUPS))
    model = Model(cases, given.rate, given.seed)
    found: dict[str, tuple[WaySummary, int]] = {}
    async with serving(model) as upstream:
        for name, start in fronts(folder, upstream, given.litellm):
            with ExitStack() as stack:
                asks: dict[str, Front] = {}
                if isinstance(start, Front):
                    asks[name] = start
                else:
                    command, port, environment, models = start
                    log = folder / f"{name}.log"
                    begun = asyncio.to_thread(stack.enter_context, started(command, port, environment, log))
                    await begun
                    for one in models:
                        shown = name if len(models) == 1 else f"{name}, {one}"
                        asks[shown] = Front(f"http://{HOST}:{port}/v1", one)
                for shown, front in asks.items():
                    model.asked.clear()
                    summary = await _asked(shown, front, cases, folder)
                    found[shown] = (summary, model.asked.total())
    return found


async def _asked(name: str, front: Front, cases: Sequence[Case], folder: Path) -> WaySummary:
    asker = WireAsker(front.url, front.model, "chat", {"authorization": f"Bearer {_KEY}"})
    where = folder / name
    with ResultFile(where, Plan(name, digest_of(cases), "full")) as results:
        await run(cases, {name: asker}, results)
    await asker.close()
    (way,) = summary_of(read_results(where)[1]).ways
    return way


def table(found: Mapping[str, tuple[WaySummary, int]]) -> Iterator[str]:
    """As Markdown."""
    yield "| in front of it | right | false | lost | wrong | invalid | failed | asked |"
    yield "|---|---|---|---|---|---|---|---|"
    for name, (way, asked) in found.items():
        counts = f"{way.false} | {way.lost} | {way.wrong} | {way.invalid} | {way.errors}"
        yield f"| {name} | {100 * way.right / way.cases:.1f} % | {counts} | {100 * asked / way.cases:.0f} |"


def main() -> None:
    """Measure and print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--litellm", metavar="PYTHON", help="of an environment with litellm[proxy]")
    options.add_argument("--rate", type=float, default=0.3, help="share of the answers that have a fault")
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    with TemporaryDirectory() as folder:
        found = asyncio.run(measured(given, Path(folder)))
    way = next(iter(found.values()))[0]
    print(f"{way.cases} cases with {way.wanted} calls; a fault in {100 * given.rate:.0f} % of the model's answers\n")
    for line in table(found):
        print(line)


if __name__ == "__main__":
    main()
