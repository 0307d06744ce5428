"""Model servers that are killed at random, and a gateway whose models have others as fallbacks.

    python bench/chaos.py [--minutes 10] [--clients 8] [--seed 0]

Three servers, each a process with the simulated model, are killed and started again at random times. Clients send
requests for a call, whole and streamed, over three APIs. `right`: the one call that was asked for. `error`: an error
with a message. `wrong`: anything else. `hanging`: no answer within half a minute. `other`: answers of another model.
Ends with exit status 1 if anything is wrong or hanging.
"""

import argparse
import asyncio
import json
import random
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import aiohttp

from loading import HOST, free_port

_LONGEST_S: Final = 30.0
_UP_S: Final = (4.0, 12.0)  # between the start of a server and its end
_DOWN_S: Final = (0.2, 2.0)
_NAMES: Final = ("first", "second", "third")
_MODES: Final = ('mode = "native"', 'mode = "prompt"\ndialect = "hermes"', 'mode = "native"')
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


async def _ask(session: aiohttp.ClientSession, url: str, number: int) -> tuple[str, bool]:
    """The verdict of one request, and whether another model answered."""
    api, stream = ("chat", "responses", "messages")[number % 3], number % 2 == 0
    path, body = _asked(api, number)
    try:
        async with asyncio.timeout(_LONGEST_S):
            async with session.post(url + path, json={"model": "first", "stream": stream, **body}) as reply:
                text, is_other = await reply.text(), "x-callwright-fallback" in reply.headers
    except TimeoutError:
        return "hanging", False
    expected = [{"label_text": f"tea {number}", "hour_of_day": number % 24}]
    try:
        if reply.status >= 500 and json.loads(text)["error"]["message"]:
            return "error", is_other
        return "right" if _calls(api, text, stream=stream) == expected else f"wrong {reply.status}: {text}", is_other
    except LookupError:
        return "error", is_other
    except ValueError:
        return f"wrong {reply.status}: {text}", is_other


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
                    if reply.status == 200:
                        return
            except aiohttp.ClientError:
                await asyncio.sleep(0.1)


async def _up_and_down(port: int, dice: random.Random, kills: Counter[str], end_s: float) -> None:
    """One server, killed and started again until the end."""
    server = await _started(port, "--upstream", "simulated")
    try:
        while time.monotonic() < end_s:
            await asyncio.sleep(dice.uniform(*_UP_S))
            server.kill()
            await server.wait()
            kills["kills"] += 1
            await asyncio.sleep(dice.uniform(*_DOWN_S))
            server = await _started(port, "--upstream", "simulated")
    finally:
        server.kill()
        await server.wait()


async def _client(session: aiohttp.ClientSession, url: str, first: int, step: int, end_s: float) -> Counter[str]:
    found: Counter[str] = Counter()
    number = first
    while time.monotonic() < end_s:
        verdict, is_other = await _ask(session, url, number)
        if verdict.startswith("wrong"):
            print(f"request {number}, {verdict[:400]}", flush=True)
        found.update([verdict.split()[0], *(["other"] if is_other else [])])
        number += step
    return found


async def _run(minutes: float, clients: int, seed: int) -> Counter[str]:
    ports, dice, kills = [free_port() for _ in _NAMES], random.Random(seed), Counter[str]()
    tables = [
        f'[[models]]\nname = "{name}"\nupstream = "http://{HOST}:{port}/v1"\nmodel = "simulated"\n{mode}\n'
        + ('fallback = ["second", "third"]\n' if name == "first" else "")
        for name, port, mode in zip(_NAMES, ports, _MODES, strict=True)
    ]
    with TemporaryDirectory() as folder:
        path = Path(folder, "callwright.toml")
        path.write_text("".join(tables))
        port = free_port()
        url = f"http://{HOST}:{port}"
        gateway = await _started(port, "--config", str(path))
        try:
            async with aiohttp.ClientSession() as session:
                end_s = time.monotonic() + 60 * minutes
                servers = [asyncio.create_task(_up_and_down(each, dice, kills, end_s)) for each in ports]
                for each in (*ports, port):
                    await _until_ready(session, f"http://{HOST}:{each}")
                asking = [_client(session, url, number, clients, end_s) for number in range(clients)]
                found: Counter[str] = sum(await asyncio.gather(*asking), start=Counter())
                await asyncio.gather(*servers)
        finally:
            gateway.kill()
            await gateway.wait()
    return found + kills


def main() -> None:
    """Run and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--minutes", type=float, default=10.0)
    options.add_argument("--clients", type=int, default=8)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    found = asyncio.run(_run(given.minutes, given.clients, given.seed))
    print(", ".join(f"{found[name]:,} {name}" for name in ("right", "error", "wrong", "hanging", "other", "kills")))
    sys.exit(1 if found["wrong"] or found["hanging"] else 0)


if __name__ == "__main__":
    main()
