"""Demanded calls of a real model: each is valid, or cut by the client's own `max_tokens`; anything else is a fault.

    python bench/demanded.py MODEL.gguf [--calls 200] [--from 0] [--tokens 400] [--ways embedded,llamacpp,prompt]

Each call has one of the schemas below, a dialect, a seed and a temperature; every second one is streamed, and some may
be several at once. `embedded`: the file in the gateway's process; `llamacpp`: llama.cpp's server over HTTP, with the
gateway in mode raw before it; `prompt`: the same in mode prompt, which sends a JSON schema. No answer is asked for
again. All ways have one thread of the CPU. `slow` are the calls that took longer than a minute, `hanging` those without
an answer after five.
"""

import argparse
import http.client
import json
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import jsonschema_rs

from callwright.gateway.config.config import ModelConfig
from callwright.upstreams.embedded.engine import EngineOptions
from constrained import HOST, folded, own_server, serve

DIALECTS: Final = (
    *("hermes", "qwen3_coder", "mistral_v11", "lfm2", "gemma4", "glm45", "kimi_k2", "deepseek_v32", "minimax_m2"),
    *("harmony", "pythonic", "json"),
)
SLOW_S: Final = 60.0
HANGING_S: Final = 300.0
TEXT: Final = {"type": "string"}
WHOLE: Final = {"type": "integer"}
NUMBER: Final = {"type": "number"}
TREE: Final = {
    "type": "object",
    "properties": {"value": TEXT, "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
    "required": ["value", "children"],
    "additionalProperties": False,
}
EXPRESSION: Final = {
    "anyOf": [
        NUMBER,
        {
            "type": "object",
            "properties": {
                "op": {"enum": ["+", "-", "*"]},
                "left": {"$ref": "#/$defs/e"},
                "right": {"$ref": "#/$defs/e"},
            },
            "required": ["op", "left", "right"],
            "additionalProperties": False,
        },
    ]
}


def items(of: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A list."""
    return {"type": "array", "items": of, **more}


def members(**properties: Any) -> dict[str, Any]:
    """An object with all of these."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


SCHEMAS: Final[Mapping[str, dict[str, Any]]] = {
    "hello": members(),
    "anything": {"type": "object"},
    "forecast": {"type": "object", "properties": {"city": TEXT, "days": WHOLE}, "required": ["city"]},
    "note": members(title=TEXT, body=TEXT),
    "essay": members(text={"type": "string", "minLength": 40}),
    "letter": members(text={"type": "string", "maxLength": 5000}),
    "greet_unicode": members(text={"type": "string", "description": "Japanese, Greek and emoji"}),
    "names": members(names=items(TEXT)),
    "some_names": members(names=items(TEXT, minItems=3)),
    "unique": members(tags=items({"enum": ["a", "b", "c"]}, uniqueItems=True)),
    "counts": members(counts=items(WHOLE)),
    "grid": members(rows=items(items(NUMBER))),
    "cube": members(cells=items(items(items(WHOLE)))),
    "outline": {**members(root={"$ref": "#/$defs/tree"}), "$defs": {"tree": TREE}},
    "compute": {**members(expression={"$ref": "#/$defs/e"}), "$defs": {"e": EXPRESSION}},
    "price": members(price={"type": "number", "multipleOf": 0.01, "minimum": 0}),
    "even": members(number={"type": "integer", "multipleOf": 2}),
    "measure": members(value=NUMBER, error=NUMBER),
    "positive": members(value={"type": "number", "exclusiveMinimum": 0}),
    "percent": members(value={"type": "number", "minimum": 0, "maximum": 1}),
    "large": members(value={"type": "integer", "minimum": 10**12}),
    "pick_one": members(word={"enum": [f"word-{number}" for number in range(300)]}),
    "fixed": members(text={"const": "always the same " * 20}),
    "code": members(code={"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"}),
    "words": members(words={"type": "string", "pattern": "^[a-z]+( [a-z]+)*$"}),
    "has_digit": members(text={"type": "string", "pattern": "[0-9]"}),
    "starts": members(text={"type": "string", "pattern": "^# "}),
    "when": members(day={"type": "string", "format": "date"}),
    "mail": members(address={"type": "string", "format": "email"}),
    "either": members(value={"anyOf": [WHOLE, TEXT, {"type": "null"}, items(WHOLE)]}),
    "one_of": members(shape={"oneOf": [members(radius=NUMBER), members(width=NUMBER, height=NUMBER)]}),
    "labels": members(labels={"type": "object", "additionalProperties": TEXT}),
    "scores": members(scores={"type": "object", "additionalProperties": NUMBER}),
    "open": {"type": "object", "properties": {"a": TEXT}, "additionalProperties": True},
    "free": members(value={}),
    "deep": members(a=members(b=members(c=members(d=members(e=TEXT))))),
    "person": members(name=TEXT, age=WHOLE, address=members(street=TEXT, city=TEXT, tags=items(TEXT))),
    "options": {
        "type": "object",
        "properties": dict.fromkeys("abcdefgh", TEXT),
        "required": ["h"],
        "additionalProperties": False,
    },
    "condition": {
        **members(kind={"enum": ["a", "b"]}, value=TEXT),
        "if": {"properties": {"kind": {"const": "a"}}},
        "then": {"properties": {"value": {"minLength": 1}}},
    },
    "pair": members(
        pair={"type": "array", "prefixItems": [TEXT, NUMBER], "minItems": 2, "maxItems": 2, "items": False}
    ),
    "not_empty": members(names={**items(TEXT, minItems=1), "not": {"maxItems": 0}}),
    "not_red": members(color={"type": "string", "minLength": 1, "not": {"const": "red"}}),
    "exactly": members(bits=items({"enum": [0, 1]}, minItems=20, maxItems=20)),
    "orders": members(orders=items(members(id=WHOLE, lines=items(members(item=TEXT, price=NUMBER))), minItems=1)),
}


def main() -> None:
    """Ask, and print how often each verdict was reached, by way and dialect."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("model", help="a GGUF file")
    options.add_argument("--calls", type=int, default=200)
    options.add_argument("--from", type=int, default=0, dest="first", help="the number of the first call")
    options.add_argument("--tokens", type=int, default=400, help="max_tokens of each request")
    options.add_argument("--ways", default="embedded,llamacpp,prompt", help="with commas")
    options.add_argument("--show", action="store_true", help="print what was not valid")
    given = options.parse_args()
    engine = own_server(given.model) if given.ways != "embedded" else None
    for way in given.ways.split(","):
        began = time.perf_counter()
        ports: dict[str, int] = {}
        verdicts: Counter[str] = Counter()
        for number in range(given.first, given.first + given.calls):
            dialect = DIALECTS[number % len(DIALECTS)] if way != "prompt" else "json"
            if dialect not in ports:
                ports[dialect] = serve(_model(way, dialect, given.model, engine))
            name = list(SCHEMAS)[number % len(SCHEMAS)]
            started = time.perf_counter()
            verdict, shown = _asked(ports[dialect], name, number, given.tokens)
            took = time.perf_counter() - started
            verdicts[verdict] += 1
            verdicts["slow"] += took > SLOW_S
            if given.show and verdict != "valid":
                print(f"  {verdict}: {way} {dialect} {name} #{number} {took:.1f} s: {shown[-700:]}", flush=True)
        seconds = time.perf_counter() - began
        counts = ", ".join(
            f"{verdicts[verdict]} {verdict}" for verdict in ("valid", "cut", "invalid", "error", "hanging", "slow")
        )
        print(f"{way}: {given.calls} demanded calls: {counts}; {seconds:.0f} s", flush=True)


def _model(way: str, dialect: str, path: str, engine: Any) -> ModelConfig:
    options = EngineOptions(slots=1, threads=1, context_tokens=4096)
    if way == "embedded":
        return ModelConfig(name="m", upstream=path, dialect=dialect, retries=0, engine=options)
    url = f"{engine.listening_address}/v1"
    return ModelConfig(
        name="m",
        upstream=url,
        server="llamacpp",
        mode="raw" if way == "llamacpp" else "prompt",
        dialect=dialect,
        retries=0,
    )


def _asked(port: int, name: str, seed: int, tokens: int) -> tuple[str, str]:
    """The verdict on one demanded call, and the answer."""
    tool = {"type": "function", "function": {"name": name, "description": name, "parameters": SCHEMAS[name]}}
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": f"Call {name} with values of your own."}],
        "tools": [tool],
        "tool_choice": "required" if seed % 3 else {"type": "function", "function": {"name": name}},
        "parallel_tool_calls": seed % 4 == 0,
        "max_tokens": tokens,
        "temperature": (0.0, 0.7, 1.0)[seed % 3],
        "seed": seed,
        "stream": seed % 2 == 1,
    }
    connection = http.client.HTTPConnection(HOST, port, timeout=HANGING_S)
    try:
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"})
        response = connection.getresponse()
        answer = response.read().decode()
    except TimeoutError:
        return "hanging", ""
    finally:
        connection.close()
    read = folded(answer) if response.status == 200 else None
    if read is None:
        return "error", answer
    calls, finish = read
    if finish == "length":
        return "cut", answer
    return ("valid" if calls and all(_fits(name, *call) for call in calls) else "invalid"), answer


def _fits(name: str, called: str, written: str) -> bool:
    try:
        return called == name and bool(jsonschema_rs.is_valid(SCHEMAS[name], json.loads(written)))
    except ValueError:
        return False


if __name__ == "__main__":
    main()
