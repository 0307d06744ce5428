"""The gateways that benchmarks put side by side, and how each is started: a pass-through, nginx, others' and ours.

`bare` hands requests and answers on as they are, with Starlette and aiohttp on uvicorn (`pass_through.py`); with
another server or client below it, it is named by that. nginx does the same in C, with connections that stay open and
without buffers. Neither looks at what it hands on, so both ask for chat completions
whatever the client's API is. SMG (Rust) and LiteLLM (Python) read requests; SMG needs the Python of an environment
where `smg` is installed, LiteLLM where `litellm[proxy]` is. Ours runs in each mode, with all that is on by default but
the store, and takes any number of requests.
"""

import json
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

import pass_through
from fake_model import MODEL, PATHS, Wire
from loading import HOST, free_port

__all__ = ["MODES", "Gateway", "callwright", "gateways", "litellm_proxy", "smg_router"]

MODES: Final = {
    "native": "mode = 'native'",
    "prompt": "dialect = 'hermes'",
    "raw": "mode = 'raw'\ndialect = 'hermes'\nserver = 'vllm'",
}
ALL_WIRES: Final = frozenset[Wire](PATHS)


class Gateway(NamedTuple):
    """How one is started: its command, by the port, what stands in its environment, and the APIs that it translates."""

    command: Callable[[int], list[str]]
    environment: Mapping[str, str] = MappingProxyType({})
    wires: frozenset[Wire] = ALL_WIRES


def gateways(
    folder: Path, upstream: str, smg: str | None, litellm: str | None, transports: str | None
) -> dict[str, Gateway]:
    """All that can be started here, by name; what is missing is told. Their files go into the folder. The last three
    are the Pythons that have them.
    """
    found = {"bare": _bare(sys.executable, upstream)}
    if program := shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin"):
        found["nginx"] = _nginx(program, folder, upstream)
    else:
        print("nginx is not installed: left out")
    for name, python, made in (("smg", smg, smg_router), ("litellm", litellm, litellm_proxy)):
        if python:
            found[name] = made(python, folder, upstream)
        else:
            print(f"{name}: left out, --{name} names the Python of an environment that has it")
    if transports:
        found["granian"] = _bare(transports, upstream, "--server", "granian")
        found["pyreqwest"] = _bare(transports, upstream, "--client", "pyreqwest")
        found["httptools"] = _bare(transports, upstream, "--server", "httptools", "--client", "httptools")
    return found | {f"callwright {mode}": callwright(folder, upstream, mode) for mode in MODES}


def callwright(folder: Path, upstream: str, mode: str, *more: str) -> Gateway:
    """Ours in one mode, without a store; `more` are options of `callwright serve`."""
    path = folder / f"{mode}.toml"
    path.write_text(f"""
server.max_requests = 100_000
limits.max_connections = 100_000
store.url = 'none'
[[models]]
name = '{MODEL}'
upstream = '{upstream}'
{MODES[mode]}
""")
    command = [str(Path(sys.executable).with_name("callwright")), "serve", "--config", str(path), *more]
    return Gateway(lambda port: [*command, "--port", str(port)])


def _bare(python: str, upstream: str, *more: str) -> Gateway:
    command = [python, pass_through.__file__, "--upstream", upstream, *more]
    return Gateway(lambda port: [*command, "--port", str(port)])


def _nginx(program: str, folder: Path, upstream: str) -> Gateway:
    places = "".join(
        f"{name}_temp_path {folder}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    server = upstream.removeprefix("http://").removesuffix("/v1")

    def command(port: int) -> list[str]:
        path = folder / "nginx.conf"
        path.write_text(f"""
worker_processes 1;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log;
events {{ worker_connections 16384; }}
http {{
{places}
access_log off;
client_max_body_size 32m;
client_body_buffer_size 1m;
keepalive_requests 1000000000;
upstream model {{ server {server}; keepalive 1024; keepalive_requests 1000000000; }}
server {{
    listen {HOST}:{port};
    location / {{
        rewrite ^ {PATHS["chat"]} break;
        proxy_pass http://model;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_buffering off;
        proxy_read_timeout 1h;
    }}
}}
}}
""")
        return [program, "-p", str(folder), "-c", str(path)]

    return Gateway(command)


def smg_router(python: str, folder: Path, upstream: str) -> Gateway:
    server = upstream.removesuffix("/v1")
    start = [str(Path(python).with_name("smg")), "launch", "--worker-urls", server, "--host", HOST]
    quiet = ["--log-level", "error", "--disable-health-check", "--disable-load-monitoring", "--history-backend", "none"]

    def command(port: int) -> list[str]:
        return [*start, *quiet, "--prometheus-host", HOST, "--prometheus-port", str(free_port()), "--port", str(port)]

    return Gateway(command, wires=frozenset({"chat"}))


def litellm_proxy(python: str, folder: Path, upstream: str, model: str = MODEL) -> Gateway:
    """LiteLLM's proxy before one model of a server. It wants a key, which is `sk-x`."""
    path = folder / "litellm.yaml"
    params = {"model": f"openai/{model}", "api_base": upstream, "api_key": "x"}
    path.write_text(json.dumps({"model_list": [{"model_name": model, "litellm_params": params}]}))
    start = [str(Path(python).with_name("litellm")), "--config", str(path), "--host", HOST]
    quiet = ["--num_workers", "1", "--telemetry", "False"]
    settings = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MASTER_KEY": "sk-x", "LITELLM_LOG": "ERROR"}
    return Gateway(lambda port: [*start, *quiet, "--port", str(port)], settings, frozenset({"chat"}))
