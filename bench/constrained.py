"""Calls that are demanded of a model with random weights: only the grammar can make them right.

    python bench/constrained.py [--seeds 1000] [--dialects harmony,hermes,qwen3_coder] [--retries 0]

llama.cpp runs in this process (the extra `embedded`) with a file that tests/support/tiny_gguf.py writes. Each seed is
one chat request to the gateway on loopback, every second one streamed; no answer is asked for again.

`calls`: answers that end by themselves and make calls; `text`: those without; `cut`: ended by the token limit, after
which no call is promised; `error`: HTTP errors, also in a stream. `valid`: of the calls of whole answers, those of a
tool that may be called with arguments that fit. Beside it the same engine's own chat endpoint, with the same requests.
"""

import argparse
import http.client
import json
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import jsonschema_rs
import uvicorn
import xllamacpp
from msgspec import Struct

from callwright import Grammar
from callwright.gateway.app import create_app
from callwright.gateway.config.config import Config, ModelConfig
from callwright.upstreams.embedded.engine import EngineOptions

HOST: Final = "127.0.0.1"
WRITER: Final = Path(__file__).parent.parent / "tests" / "support" / "tiny_gguf.py"
CODE: Final = r"[A-Z]{2}-[0-9]{3}( (red|blue))?"
SUM: Final = """start: "total " sum
sum: NUMBER (OP NUMBER)~1..3
OP: " + " | " \\"-\\" "
NUMBER: /[0-9]{1,4}/
"""


def function(name: str, **properties: Mapping[str, Any]) -> dict[str, Any]:
    """A strict function tool."""
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": name, "strict": True, "parameters": schema}}


def custom(name: str, syntax: str, definition: str) -> dict[str, Any]:
    """A custom tool with a grammar."""
    grammar = {"type": "grammar", "grammar": {"syntax": syntax, "definition": definition}}
    return {"type": "custom", "custom": {"name": name, "format": grammar}}


CITY: Final = {"type": "string", "maxLength": 12}
WEATHER: Final = function(
    "get_weather",
    city=CITY,
    days={"type": "integer", "minimum": 1, "maximum": 14},
    unit={"enum": ["celsius", "kelvin"]},
)
LINES: Final = {"type": "array", "items": {"type": "string", "maxLength": 8}, "maxItems": 3}
OPTIONS: Final = {
    "type": "object",
    "properties": {"force": {"type": "boolean"}, "level": {"type": ["integer", "null"], "minimum": 0, "maximum": 9}},
    "required": ["force", "level"],
    "additionalProperties": False,
}
SAVE: Final = function("save_lines", lines=LINES, options=OPTIONS)
ORDER: Final = function("order", item={"type": "string", "pattern": "^[a-z]{2,6}-[0-9]{3}$"})
FUNCTIONS: Final = [WEATHER, SAVE, ORDER]
NAMES: Final = ["get_weather", "save_lines"]
ALLOWED: Final = {
    "type": "allowed_tools",
    "allowed_tools": {
        "mode": "required",
        "tools": [{"type": "function", "function": {"name": name}} for name in NAMES],
    },
}
# With random weights a list of calls hardly ever ends.
ONE: Final = {"parallel_tool_calls": False}
CASES: Final[Mapping[str, dict[str, Any]]] = {
    "required": {"tools": FUNCTIONS, "tool_choice": "required", **ONE},
    "several": {"tools": FUNCTIONS, "tool_choice": "required"},
    "named": {"tools": FUNCTIONS, "tool_choice": {"type": "function", "function": {"name": "order"}}, **ONE},
    "allowed": {"tools": FUNCTIONS, "tool_choice": ALLOWED, **ONE},
    "strict": {"tools": FUNCTIONS, **ONE},
    "regex": {
        "tools": [WEATHER, custom("code", "regex", CODE)],
        "tool_choice": {"type": "custom", "custom": {"name": "code"}},
        **ONE,
    },
    "lark": {"tools": [custom("add", "lark", SUM)], "tool_choice": "required", **ONE},
}
MAY_CALL: Final[Mapping[str, list[str]]] = {"named": ["order"], "allowed": NAMES, "regex": ["code"]}
# What the engine's own endpoint knows.
OWN_CASES: Final = ("required", "strict")


class Tally(Struct):
    """What came of the requests of one case. `wrong` are examples of what is not right."""

    requests: int = 0
    answers: int = 0
    texts: int = 0
    cut: int = 0
    errors: int = 0
    calls: int = 0
    valid: int = 0
    seconds: float = 0.0
    wrong: list[str] = []


def main() -> None:
    """Measure and print one table, or its rows as JSON."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seeds", type=int, default=1000)
    options.add_argument("--dialects", default="harmony,hermes,qwen3_coder", help="with commas")
    options.add_argument("--cases", default=",".join(CASES), help="with commas")
    options.add_argument("--tokens", type=int, default=300, help="max_tokens of each request")
    options.add_argument("--retries", type=int, default=0, help="of the gateway")
    options.add_argument("--ours", action="store_true", help="leave out the engine's own endpoint")
    options.add_argument(
        "--json", action="store_true", help="print a row a line as JSON, with examples of what is wrong"
    )
    given = options.parse_args()
    if not given.json:
        print(f"{'':34}{'calls':>7}{'text':>7}{'cut':>7}{'error':>7}{'valid':>9}{'mean ms':>9}")
    for dialect in given.dialects.split(","):
        for by, case, tally in rows(dialect, given.cases.split(","), given):
            if given.json:
                fields = {name: getattr(tally, name) for name in tally.__struct_fields__}
                print(json.dumps({"dialect": dialect, "by": by, "case": case, **fields}), flush=True)
            else:
                valid = f"{100 * tally.valid / tally.calls:8.1f}%" if tally.calls else f"{'-':>9}"
                counts = f"{tally.answers:7}{tally.texts:7}{tally.cut:7}{tally.errors:7}"
                mean = f"{1000 * tally.seconds / tally.requests:9.1f}"
                print(f"{f'{dialect}, {case}, {by}':34}{counts}{valid}{mean}", flush=True)


def rows(dialect: str, cases: list[str], given: argparse.Namespace) -> Iterator[tuple[str, str, Tally]]:
    """The rows of one dialect: who was asked, the case, what came of it."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / f"{dialect}.gguf")
        subprocess.run([sys.executable, str(WRITER), path, "--dialect", dialect], check=True)
        port = serve(
            ModelConfig(name="tiny", upstream=path, retries=given.retries, engine=EngineOptions(slots=1, threads=1))
        )
        for case in cases:
            yield "gateway", case, asked(port, case, given)
        if not given.ours:
            engine = own_server(path)
            for case in OWN_CASES:
                if case in cases:
                    yield (
                        "llama.cpp",
                        case,
                        asked(int(engine.listening_address.rpartition(":")[2]), case, given),
                    )


def serve(model: ModelConfig) -> int:
    """The gateway on a port of its own, until the process ends."""
    listener = socket.create_server((HOST, 0))
    config = uvicorn.Config(create_app(Config(models=(model,))), log_config=None, access_log=False)
    threading.Thread(target=uvicorn.Server(config).run, args=([listener],), daemon=True).start()
    port: int = listener.getsockname()[1]
    return port


def own_server(path: str) -> Any:
    """The engine's own server, with the chat template that stands in the file."""
    asked_for = xllamacpp.CommonParams()
    asked_for.model.path = path
    asked_for.n_ctx, asked_for.n_parallel, asked_for.cpuparams.n_threads = 8192, 1, 1
    asked_for.use_jinja = True
    asked_for.verbosity = -1
    return xllamacpp.Server(asked_for)


# --- asking ---


def asked(port: int, case: str, given: argparse.Namespace) -> Tally:
    """What comes of a case, seed by seed."""
    tally = Tally()
    message = {"role": "user", "content": "What is the weather in Oslo?"}
    for seed in range(given.seeds):
        body = {"model": "tiny", "messages": [message], "seed": seed, "max_tokens": given.tokens, **CASES[case]}
        body["stream"] = seed % 2 == 1
        connection = http.client.HTTPConnection(HOST, port, timeout=120)
        started = time.perf_counter()
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"})
        response = connection.getresponse()
        answer = response.read().decode()
        connection.close()
        tally.seconds += time.perf_counter() - started
        tally.requests += 1
        count(tally, case, answer if response.status == 200 else None, answer)
    return tally


def count(tally: Tally, case: str, answer: str | None, shown: str) -> None:
    """Count one answer; None is an error."""
    read = folded(answer) if answer is not None else None
    if read is None:
        tally.errors += 1
        tally.wrong.append(shown[:600])
        return
    calls, finish = read
    if finish == "length":
        tally.cut += 1
        return
    tally.answers += bool(calls)
    tally.texts += not calls
    if not calls and "tool_choice" in CASES[case]:
        tally.wrong.append(shown[:600])
    for name, written in calls:
        tally.calls += 1
        good = fits(case, name, written)
        tally.valid += good
        if not good:
            tally.wrong.append(f"{name} {written}")


def folded(answer: str) -> tuple[list[tuple[str, str]], str] | None:
    """The calls of an answer, and how it ended; None for an error. A stream is put together."""
    if not answer.startswith("data:"):
        whole = json.loads(answer)["choices"][0]
        calls = [call.get("function") or call["custom"] for call in whole["message"].get("tool_calls") or ()]
        return [(call["name"], call.get("arguments", call.get("input", ""))) for call in calls], whole["finish_reason"]
    found: dict[int, list[str]] = {}
    finish = ""
    for line in re.findall(r"^data: (\{.*)$", answer, re.MULTILINE):
        event = json.loads(line)
        if "error" in event:
            return None
        for choice in event["choices"]:
            finish = choice["finish_reason"] or finish
            for piece in choice["delta"].get("tool_calls") or ():
                call = found.setdefault(piece["index"], ["", ""])
                inner = piece.get("function") or piece.get("custom") or {}
                call[0] += inner.get("name") or ""
                call[1] += inner.get("arguments") or inner.get("input") or ""
    return [(name, written) for name, written in found.values()], finish


def fits(case: str, name: str, written: str) -> bool:
    """Whether a call may be made, and its arguments fit."""
    if name not in MAY_CALL.get(case, [name]):
        return False
    for tool in CASES[case]["tools"]:
        inner = tool[tool["type"]]
        if inner["name"] != name:
            continue
        if tool["type"] == "custom":
            grammar = inner["format"]["grammar"]
            return bool(Grammar(grammar["syntax"], grammar["definition"]).accepts(written))
        try:
            return bool(jsonschema_rs.is_valid(inner["parameters"], json.loads(written)))
        except ValueError:
            return False
    return False


if __name__ == "__main__":
    main()
