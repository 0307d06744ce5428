"""What a chat client gets from a model that goes wrong: through the gateway, and without it.

    python bench/recovery.py [--requests 2000] [--rate 0.3] [--dialects harmony,hermes,json]

One fault class befalls the simulated model's answers at this rate, class by class. `right`: the call that it means
without faults, or its text where it means none. `wrong`: another call, and nothing says so. `told`: a call with a
problem that the client can see. `false`: a call where none was meant. `text`: no call where one was meant. `error`: an
honest error. `asked`: requests to the model for one of the client. The tools are strict, as a client wants them that
asks for a guarantee.

Beside it the same outputs read as most people do: the trained form and strict JSON (`no check`), and the text from its
first brace to its last by json-repair.
"""

import argparse
import asyncio
import json
import re
import socket
import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import aiohttp
import json_repair
import uvicorn

import callwright
from callwright.conversation import Conversation
from callwright.dialects.base import read_options
from callwright.gateway.app import create_app
from callwright.gateway.config.config import Config, ModelConfig
from callwright.turn.model import Mode, Model
from callwright.turn.plan import build_generation_request
from callwright.turn.streams import each
from callwright.upstreams.base import TextDelta
from callwright.upstreams.simulated.faults import FAULTS, Faults
from callwright.upstreams.simulated.model import SimulatedUpstream
from callwright.wire.chat.request import read_request

Call = tuple[str, Any]


def tool(name: str, about: str, **properties: Mapping[str, Any]) -> dict[str, Any]:
    """A strict function tool."""
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": name, "description": about, "strict": True, "parameters": schema}}


TEXT, WHOLE, NUMBER, YES_NO = ({"type": kind} for kind in ("string", "integer", "number", "boolean"))
LANGUAGE = {"type": "string", "enum": ["de", "fr"]}
TOOLS = [
    tool("find_trains", "Finds trains between two cities.", origin_city=TEXT, max_changes=WHOLE),
    tool("water_garden", "Waters a bed of the garden.", bed_name=TEXT, litre_count=NUMBER),
    tool("set_alarm", "Sets an alarm.", label_text=TEXT, hour_of_day=WHOLE, is_loud=YES_NO),
    tool("translate_text", "Translates a text.", source_text=TEXT, target_language=LANGUAGE),
]
QUESTIONS = [
    "Find trains from 'Bergen' with at most 2 changes.",
    "Find the trains from 'Turin', 1 change.",
    "Water the garden bed 'north' with 12 litres.",
    "Please water the garden: bed 'roses', 7.5 litres.",
    "Set an alarm 'wake up' at 6.",
    "Set an alarm 'tea' for 16.",
    "Translate the text 'Good morning' to de.",
    "Translate the text 'See you soon' into fr.",
]
CHAT = ["Hello there!", "Tell me a joke.", "Why is the sky blue?"]


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--requests", type=int, default=2000)
    options.add_argument("--rate", type=float, default=0.3)
    options.add_argument("--dialects", default="harmony,hermes,json")
    given = options.parse_args()
    columns = ("right", "wrong", "told", "false", "text", "error")
    print(f"{'':34}" + "".join(f"{column:>8}" for column in columns) + f"{'asked':>8}")
    for dialect in given.dialects.split(","):
        faults = [name for name, fault in FAULTS.items() if fault.dialect in ("", dialect) and not fault.failure]
        share = max(len(QUESTIONS) + len(CHAT), given.requests // (2 * len(faults)))
        for streamed in (False, True):
            total: Counter[str] = Counter()
            for number, fault in enumerate(faults):
                total += asyncio.run(through_gateway(dialect, f"{fault}:{given.rate}", share, streamed, number))
            row(f"{dialect}, gateway, {'streamed' if streamed else 'whole'}", total, columns)
        for name, read in (("no check", verbatim), ("json-repair", repaired)):
            total = Counter()
            for number, fault in enumerate(faults):
                total += asyncio.run(without_gateway(dialect, f"{fault}:{given.rate}", share, read, number))
            row(f"{dialect}, {name}", total, columns)


def row(name: str, total: Counter[str], columns: tuple[str, ...]) -> None:
    """One line, in per cent of the requests."""
    count = total["requests"]
    shares = "".join(f"{100 * total[column] / count:7.1f}%" for column in columns)
    print(f"{name:34}{shares}{total['asked'] / count:8.2f}   ({count} requests)", flush=True)


def body(number: int, streamed: bool) -> dict[str, Any]:
    """The request of this number."""
    questions = QUESTIONS + CHAT
    return {
        "model": "m",
        "messages": [{"role": "user", "content": questions[number % len(questions)]}],
        "tools": TOOLS,
        "parallel_tool_calls": False,
        "stream": streamed,
    }


def conversation(number: int) -> Conversation:
    """The same, as a conversation."""
    return read_request(body(number, False)).conversation


async def meant(dialect: str, number: int) -> list[Call]:
    """The calls that the model means."""
    return verbatim(await written(dialect, Faults(), number), dialect)


async def written(dialect: str, faults: Faults, number: int) -> str:
    """What the model writes."""
    model = Model(
        name="m",
        upstream=SimulatedUpstream(faults),
        upstream_model="m",
        mode=mode_of(dialect),
        dialect=dialect,
        options=read_options(dialect, {}),
    )
    generation = build_generation_request(model, conversation(number), {}, "2026-01-01")
    pieces = [delta.text async for delta in each(model.upstream.stream(generation)) if isinstance(delta, TextDelta)]
    return "".join(pieces)


def mode_of(dialect: str) -> Mode:
    """How the model is asked."""
    return "prompt" if dialect == "json" else "raw"


def judge(calls: list[Call], wanted: list[Call], *, told: bool) -> str:
    """What an answer is worth."""
    same = len(calls) == len(wanted) and all(
        name == other and json.dumps(value, sort_keys=True) == json.dumps(want, sort_keys=True)
        for (name, value), (other, want) in zip(calls, wanted, strict=False)
    )
    if same:
        return "right"
    if not calls:
        return "text"
    if not wanted:
        return "false"
    return "told" if told else "wrong"


async def through_gateway(dialect: str, faults: str, count: int, streamed: bool, seed: int) -> Counter[str]:
    """Ask the gateway as a chat client."""
    total: Counter[str] = Counter()
    served = ModelConfig(name="m", upstream="simulated", mode=mode_of(dialect), dialect=dialect, faults=faults)
    app = create_app(Config(models=(served,)))
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1/chat/completions"
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    async with aiohttp.ClientSession() as session:
        for number in range(count):
            answer = await ask(session, url, body(number, streamed))
            verdict = "error" if answer.error else judge(answer.calls, await meant(dialect, number), told=answer.told)
            total.update({verdict: 1, "requests": 1, "asked": answer.asked})
    server.should_exit = True
    thread.join()
    return total


class Answer(NamedTuple):
    """Calls, whether a problem is told, whether it is an error, and how often the model was asked."""

    calls: list[Call]
    told: bool = True
    error: bool = False
    asked: int = 1


async def ask(session: aiohttp.ClientSession, url: str, asked: dict[str, Any]) -> Answer:
    """What a client gets."""
    async with session.post(url, json=asked) as response:
        text = await response.text()
        told = response.headers.get("x-callwright-problems", "")
        if response.status != 200:
            times = re.search(r"in (\d) attempts", text)
            return Answer([], error=True, asked=int(times[1]) if times else 1)
    calls: list[dict[str, str]] = []
    if not asked["stream"]:
        calls = [call["function"] for call in json.loads(text)["choices"][0]["message"].get("tool_calls") or ()]
    for line in text.splitlines() if asked["stream"] else ():
        told = line if line.startswith(": x-callwright-problems") else told
        chunk = json.loads(line[6:]) if line.startswith("data: {") else {"choices": []}
        if "error" in chunk:
            return Answer([], error=True)
        for choice in chunk["choices"]:
            for call in choice["delta"].get("tool_calls") or ():
                if call["index"] == len(calls):
                    calls.append({"name": call["function"]["name"], "arguments": ""})
                calls[call["index"]]["arguments"] += call["function"].get("arguments") or ""
    return Answer(
        parsed(calls), told="invalid" in told or "non_json" in told or "unknown" in told, asked=attempts(told)
    )


def attempts(told: str) -> int:
    """How often the model was asked, by what the gateway tells."""
    found = re.search(r"call_retried=(\d+)", told)
    return 1 + int(found[1]) if found else 1


def parsed(calls: list[dict[str, str]]) -> list[Call]:
    """Calls with their arguments as values, or as text where they are no JSON."""
    made: list[Call] = []
    for call in calls:
        try:
            made.append((call["name"], json.loads(call["arguments"])))
        except ValueError:
            made.append((call["name"], call["arguments"]))
    return made


async def without_gateway(dialect: str, faults: str, count: int, read: Any, seed: int) -> Counter[str]:
    """Read the same outputs without the gateway."""
    total: Counter[str] = Counter()
    chosen = Faults.parse(faults)
    for number in range(count):
        calls = read(await written(dialect, chosen, number), dialect)
        verdict = judge(calls, await meant(dialect, number), told=False)
        total.update({verdict: 1, "requests": 1, "asked": 1})
    return total


def verbatim(text: str, dialect: str) -> list[Call]:
    """The calls of a text in the trained form, unchecked."""
    turn = callwright.parse(text, dialect=dialect, tools=TOOLS, check="verbatim", parallel_tool_calls=False)
    return parsed([{"name": call.name, "arguments": call.arguments} for call in turn.calls])


def repaired(text: str, dialect: str) -> list[Call]:
    """The calls of a text by json-repair: from its first brace to its last, whatever stands around."""
    name = re.search(r"to=functions\.([\w-]+)", text)
    found = re.search(r"\{.*\}?", text, re.DOTALL)
    value = json_repair.loads(found[0]) if found else None
    values = value if isinstance(value, list) else [value]
    calls: list[Call] = []
    for one in values[:1]:
        if not isinstance(one, dict):
            continue
        called = one.get("name") or one.get("tool")
        if called and ("arguments" in one):
            calls.append((called, one["arguments"]))
        elif name and dialect == "harmony":
            calls.append((name[1], one))
    return calls


if __name__ == "__main__":
    main()
