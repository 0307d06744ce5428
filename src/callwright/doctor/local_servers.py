"""Finds the model servers of this machine, on the ports that each kind uses by default."""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Final

from callwright.doctor.examine import probe
from callwright.doctor.findings import Findings

# The default port of each server.
PORTS: Final[Mapping[int, str]] = {
    11434: "Ollama",
    1234: "LM Studio",
    8000: "vLLM",
    30000: "SGLang",
    8080: "llama-server",
}
_HOST: Final = "localhost"
_CONNECT_S: Final = 0.5
_ANSWERS_S: Final = 3.0


async def local_servers(ports: Mapping[int, str] = PORTS) -> dict[str, Findings]:
    """What listens on these ports, by its URL. No model is asked. A web page is found too: its findings have a
    `message`.
    """
    urls = [f"http://{_HOST}:{port}" for port in ports]
    found = await asyncio.gather(*(_probe_port(url, port) for url, port in zip(urls, ports, strict=True)))
    return {url: findings for url, findings in zip(urls, found, strict=True) if findings is not None}


async def _probe_port(url: str, port: int) -> Findings | None:
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(_CONNECT_S):
            _, writer = await asyncio.open_connection(_HOST, port)
        writer.close()
        return await probe(url, depth="server", timeout_s=_ANSWERS_S)
    return None
