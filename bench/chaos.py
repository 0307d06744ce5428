"""Model servers that are killed at random, and a gateway with fallbacks, budgets, and a file that changes.

    python bench/chaos.py [--minutes 10] [--clients 8] [--seed 0]

Three servers, each a process with the simulated model, are killed and started again at random times. Clients send
requests for a call, whole and streamed, over three APIs. Meanwhile the gateway reads its file again, each time with
other prices, limits and keys. `right`: the one call that was asked for. `all down`: an error with a message, each
server having been down during the request. `broken off`: an error after the arguments had begun. `unanswered`: any
other error. `refused`: a 429 of the key whose budget is used up. `wrong`: anything else. `hanging`: no answer within
half a minute. `other`: answers of another model. At the end the costs in the answers are compared with those that the
gateway has counted. Ends with exit status 1 if an answer is unanswered, wrong or hanging, a cost is lost or counted
twice, or the small budget is exceeded by more than one request.
"""

import argparse
import asyncio
import hashlib
import json
import random
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import aiohttp

from loading import HOST, free_port

_LONGEST_S: Final = 30.0
_UP_S: Final = (4.0, 12.0)  # between the start of a server and its end
_DOWN_S: Final = (0.2, 2.0)
_RELOAD_S: Final = (0.5, 3.0)
_NAMES: Final = ("first", "second", "third")
_MILLION: Final = 1_000_000
_POOR_BUDGET: Final = 0.05
# Requests by their number are by this key, of which one has a small budget.
_KEYS: Final = ("rich", *["anna"] * 8, "poor")
_PARTS: Final = ("right", "all down", "broken off", "unanswered", "refused", "wrong", "hanging")
_SCHEMA: Final = {
    "type": "object",
    "properties": {"label_text": {"type": "string"}, "hour_of_day": {"type": "integer"}},
    "required": ["label_text", "hour_of_day"],
    "additionalProperties": False,
}
_TOOL: Final = {"name": "set_alarm", "description": "Sets an alarm.", "parameters": _SCHEMA}


def _asked(api: str, number: int) -> tuple[str, dict[str, Any]]:
    """The path and the body of a request."""
    question = f"Set an alarm 'tea {number}' for {number % 24}."
    message = {"role": "user", "content": question}
    if api == "chat":
        tools = [{"type": "function", "function": _TOOL}]
        return "/v1/chat/completions", {"messages": [message], "tools": tools, "tool_choice": "required"}
    if api == "responses":
        tools = [{"type": "function", **_TOOL}]
        return "/v1/responses", {"input": question, "tools": tools, "tool_choice": "required", "store": False}
    tool = {"name": _TOOL["name"], "description": _TOOL["description"], "input_schema": _SCHEMA}
    more = {"max_tokens": 500, "tools": [tool], "tool_choice": {"type": "any"}}
    return "/v1/messages", {"messages": [message], **more}


def _calls(api: str, text: str, *, stream: bool) -> list[Any]:
    """The arguments of each call in an answer; raises `ValueError` or `LookupError` for one that is cut."""
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: {")]
    events = [json.loads(line) for line in lines] if stream else [json.loads(text)]
    if any(event.get("error") or event.get("type") in ("error", "response.failed") for event in events):
        raise LookupError("an error within the answer")
    if api == "responses":
        answer = events[-1]["response"] if stream else events[0]
        return [json.loads(item["arguments"]) for item in answer["output"] if item["type"] == "function_call"]
    pieces: dict[int, str] = {}
    if api == "chat":
        for event in events:
            choice = event["choices"][0] if event["choices"] else {}
            for call in (choice.get("delta") or choice.get("message") or {}).get("tool_calls") or []:
                index = call.get("index", len(pieces))
                pieces[index] = pieces.get(index, "") + (call["function"].get("arguments") or "")
        return [json.loads(piece) for piece in pieces.values()]
    if not stream:
        return [block["input"] for block in events[0]["content"] if block["type"] == "tool_use"]
    for event in events:
        if event["type"] == "content_block_delta" and event["delta"]["type"] == "input_json_delta":
            pieces[event["index"]] = pieces.get(event["index"], "") + event["delta"]["partial_json"]
    return [json.loads(piece) for piece in pieces.values()]


@dataclass
class _Found:
    """Results of all clients: answers by verdict, and the costs that they state, in millionths and by key."""

    verdicts: Counter[str] = field(default_factory=Counter)
    costs: Counter[str] = field(default_factory=Counter)
    largest: int = 0
    down: dict[int, list[tuple[float, float]]] = field(default_factory=dict)  # times of each server

    def were_all_down(self, begun_s: float) -> bool:
        """Whether each server has been down since then, or is."""
        return all(any(end_s >= begun_s for _, end_s in times[-2:]) for times in self.down.values())


def _cost(headers: Mapping[str, str], text: str) -> int:
    """The cost that an answer states, in millionths."""
    if (whole := headers.get("x-callwright-cost")) is not None:
        return round(float(whole) * _MILLION)
    found = re.findall(r'"cost":([0-9.e-]+)', text)
    return round(float(found[-1]) * _MILLION) if found else 0


def _has_begun(text: str) -> bool:
    """Whether a part of a call was sent."""
    return any(mark in text for mark in ('"tool_calls":[', "input_json_delta", "function_call_arguments.delta"))


async def _ask(session: aiohttp.ClientSession, url: str, number: int, found: _Found) -> str:
    """The verdict of one request."""
    api, stream = ("chat", "responses", "messages")[number % 3], number % 2 == 0
    who = _KEYS[number % len(_KEYS)]
    path, body = _asked(api, number)
    if stream and api == "chat":
        body["stream_options"] = {"include_usage": True}
    begun_s, headers = time.monotonic(), {"authorization": f"Bearer {who}"}
    try:
        async with asyncio.timeout(_LONGEST_S):
            asking = session.post(url + path, json={"model": "first", "stream": stream, **body}, headers=headers)
            async with asking as reply:
                text = await reply.text()
    except TimeoutError:
        return "hanging"
    if "x-callwright-fallback" in reply.headers:
        found.verdicts["other"] += 1
    cost = _cost(reply.headers, text)
    found.costs[who] += cost
    found.largest = max(found.largest, cost)
    expected = [{"label_text": f"tea {number}", "hour_of_day": number % 24}]
    try:
        if reply.status == 429 and who == "poor" and "the budget of the key 'poor'" in text:
            return "refused"
        if reply.status < 500 or not json.loads(text)["error"]["message"]:
            is_right = _calls(api, text, stream=stream) == expected
            return "right" if is_right else f"wrong {reply.status}: {text}"
    except LookupError:
        pass  # an error within the answer
    except ValueError:
        return f"wrong {reply.status}: {text}"
    if _has_begun(text):
        return "broken off"
    return "all down" if found.were_all_down(begun_s) else f"unanswered {reply.status}: {text}"


async def _started(port: int, *options: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "callwright", "serve", "--host", HOST, "--port", str(port), *options),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )


async def _until_ready(session: aiohttp.ClientSession, url: str) -> None:
    async with asyncio.timeout(_LONGEST_S):
        while True:
            try:
                async with session.get(f"{url}/v1/models") as reply:
                    if reply.status in (200, 401):  # a gateway with keys answers 401
                        return
            except aiohttp.ClientError:
                await asyncio.sleep(0.1)


async def _up_and_down(
    session: aiohttp.ClientSession, port: int, dice: random.Random, found: _Found, end_s: float
) -> None:
    """One server, killed and started again until the end."""
    down = found.down[port] = [(0.0, float("inf"))]
    server = await _started(port, "--upstream", "simulated")
    try:
        while time.monotonic() < end_s:
            await _until_ready(session, f"http://{HOST}:{port}")
            down[-1] = down[-1][0], time.monotonic()
            await asyncio.sleep(dice.uniform(*_UP_S))
            down.append((time.monotonic(), float("inf")))
            server.kill()
            await server.wait()
            found.verdicts["kills"] += 1
            await asyncio.sleep(dice.uniform(*_DOWN_S))
            server = await _started(port, "--upstream", "simulated")
    finally:
        server.kill()
        await server.wait()


async def _client(session: aiohttp.ClientSession, url: str, first: int, step: int, found: _Found, end_s: float) -> None:
    number = first
    while time.monotonic() < end_s:
        verdict = await _ask(session, url, number, found)
        kind = next(part for part in _PARTS if verdict.startswith(part))
        if verdict != kind:
            print(f"request {number}, {verdict[:400]}", flush=True)
        found.verdicts[kind] += 1
        number += step


def _configuration(folder: Path, ports: Sequence[int], number: int) -> str:
    """The file of the gateway after this number of changes. Names of models and of budgets stay."""
    lines = [f'[store]\nurl = "sqlite:///{folder / "store.db"}"\n']
    for name, port in zip(_NAMES, ports, strict=True):
        lines += [
            f'[[models]]\nname = "{name}"\nupstream = "http://{HOST}:{port}/v1"\nmodel = "simulated"\nmode = "native"'
        ]
        lines += [f"price = {{input = {3 + number % 3}.0, output = 15.0}}", "budget = {cost_per_day = 1000.0}"]
        if number % 4 == 3:
            lines += ["idle_timeout_s = 200"]  # another part, whose requests end with the earlier one
        if name == "first":
            others = ("second", "third") if number % 2 else ("third", "second")
            lines += [f'fallback = ["{others[0]}", "{others[1]}"]']
    for name in (*dict.fromkeys(_KEYS), *(["new"] if number % 2 else [])):
        limit = _POOR_BUDGET if name == "poor" else 1000.0
        lines += [f'[[keys]]\nname = "{name}"\nsha256 = "{hashlib.sha256(name.encode()).hexdigest()}"']
        lines += [
            f"budget = {{cost_per_day = {limit}}}",
            "max_requests = 1000",
            f"operator = {str(name == 'rich').lower()}",
        ]
    return "\n".join(lines)


async def _reload(
    gateway: asyncio.subprocess.Process, folder: Path, ports: Sequence[int], dice: random.Random, found: _Found
) -> None:
    """Change the file again and again, until cancelled."""
    while True:
        await asyncio.sleep(dice.uniform(*_RELOAD_S))
        found.verdicts["reloads"] += 1
        (folder / "new.toml").write_text(_configuration(folder, ports, found.verdicts["reloads"]))
        (folder / "new.toml").replace(folder / "callwright.toml")
        gateway.send_signal(signal.SIGHUP)


async def _counted(session: aiohttp.ClientSession, url: str) -> Counter[str]:
    """The millionths that the gateway has counted, by key."""
    counted: Counter[str] = Counter()
    async with session.get(f"{url}/ui/api/spend?days=2", headers={"authorization": "Bearer rich"}) as reply:
        for row in (await reply.json())["rows"]:
            counted[row["key"]] += row["cost"]
    return counted


async def _run(minutes: float, clients: int, seed: int) -> tuple[_Found, Counter[str]]:
    ports, dice, found = [free_port() for _ in _NAMES], random.Random(seed), _Found()
    with TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        path, url = folder / "callwright.toml", f"http://{HOST}:{port}"
        path.write_text(_configuration(folder, ports, 0))
        gateway = await _started(port, "--config", str(path))
        try:
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
                end_s = time.monotonic() + 60 * minutes
                servers = [asyncio.create_task(_up_and_down(session, each, dice, found, end_s)) for each in ports]
                for each in (*ports, port):
                    await _until_ready(session, f"http://{HOST}:{each}")
                changing = asyncio.create_task(_reload(gateway, folder, ports, dice, found))
                await asyncio.gather(
                    *(_client(session, url, number, clients, found, end_s) for number in range(clients))
                )
                changing.cancel()
                await asyncio.gather(*servers)
                return found, await _counted(session, url)
        finally:
            gateway.kill()
            await gateway.wait()


def main() -> None:
    """Run and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--minutes", type=float, default=10.0)
    options.add_argument("--clients", type=int, default=8)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    found, counted = asyncio.run(_run(given.minutes, given.clients, given.seed))
    print(", ".join(f"{found.verdicts[name]:,} {name}" for name in (*_PARTS, "other", "kills", "reloads")))
    lost = sum((found.costs - counted).values())
    twice = sum((counted - found.costs).values())
    print(f"millionths: {found.costs.total():,} in answers, {lost:,} not counted, {twice:,} counted only")
    excess = max(0, counted["poor"] - round(_POOR_BUDGET * _MILLION))
    print(f"the small budget was exceeded by {excess:,}, of at most {found.largest:,} for a request")
    bad = found.verdicts["unanswered"] + found.verdicts["wrong"] + found.verdicts["hanging"] + lost + twice
    sys.exit(1 if bad or excess > found.largest else 0)


if __name__ == "__main__":
    main()
