"""Whether an upstream is this gateway itself: then it would send each request to itself again and again."""

import asyncio
import os
from collections.abc import Collection
from typing import Final
from urllib.parse import urlsplit

from callwright.doctor.client import Asker, Reply
from callwright.errors import ConfigError
from callwright.gateway.config.config import Config, servers_of
from callwright.upstreams.base_urls import without_credentials
from callwright.wire.server import INSTANCE_HEADER, INSTANCE_VARIABLE

_REQUEST_S: Final = 3.0


def server_urls(config: Config) -> Collection[str]:
    """The URLs of the servers of all models, each once."""
    urls = (url for model in config.models for url in servers_of(model))
    return dict.fromkeys(url for url in urls if url.startswith(("http://", "https://"))).keys()


async def ask_health(url: str) -> Reply:
    """The answer of an upstream to `/healthz`, if it has that."""
    parts = urlsplit(url)
    async with Asker(url, {}, request_s=_REQUEST_S, total_s=_REQUEST_S) as asker:
        return await asker.get(f"{parts.scheme}://{parts.netloc}/healthz")


def is_own(health: Reply) -> bool:
    """Whether this gateway, or one of its workers, has answered."""
    instance = os.environ.get(INSTANCE_VARIABLE)
    return instance is not None and health.headers.get(INSTANCE_HEADER) == instance


def own_address_error(url: str) -> ConfigError:
    """The error for an upstream that is this gateway."""
    return ConfigError(
        f"The upstream {without_credentials(url)} is this gateway itself: each request would be sent to itself again "
        "and again. Name the model server's own address, or another --port for the gateway."
    )


async def refuse_own_address(running: Config, wanted: Config) -> None:
    """Raises `ConfigError` if an upstream that the `wanted` configuration adds is this gateway. One that does not
    answer is another server, which may not have started yet.
    """
    urls = [url for url in server_urls(wanted) if url not in server_urls(running)]
    for url, health in zip(urls, await asyncio.gather(*map(ask_health, urls)), strict=True):
        if is_own(health):
            raise own_address_error(url)
