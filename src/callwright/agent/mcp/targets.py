"""Where an MCP server is: a command that starts it, or a URL; how it is named in words, and how it is reached."""

import os
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from callwright.agent.mcp.bounds import bounded_responses
from callwright.settings.bounds import Bounds
from callwright.upstreams.base_urls import without_credentials

# What brings the programs that servers are usually started by.
_BRINGS: Final = {"npx": "Node.js", "uvx": "uv"}
_PLACE: Final = re.compile(r"\w+://[^/?#\s]*")
_SECRET: Final = 6  # words of a header from this length on may be a key


class Command(Struct, frozen=True):
    """A server that is started here and speaks over its standard input and output.

    It gets HOME, PATH and the like, and `env`; nothing else of this process's environment.
    """

    words: tuple[str, ...]
    env: Mapping[str, str] = {}
    cwd: str | None = None

    def __str__(self) -> str:
        return repr(self.words[0])  # there may be keys in the arguments


class Url(Struct, frozen=True):
    """A server that is there, asked over streamable HTTP."""

    url: str
    headers: Mapping[str, str] = {}

    def __str__(self) -> str:
        """Its scheme and host. Some servers take a key in the path or in the query, so the rest is not shown."""
        found = _PLACE.match(self.url)
        place = without_credentials(found[0]) if found else ""
        return place if self.url in (place, f"{place}/") else f"{place}/…"

    def without_secrets(self, words: str) -> str:
        """Words of others, which may quote the URL or a header."""
        words = words.replace(self.url, str(self))
        for value in self.headers.values():
            for part in value.split():
                words = words.replace(part, "…") if len(part) >= _SECRET and part.lower() != "bearer" else words
        return words


def missing_program(target: Command) -> str:
    """What is not there of a command, and what to do."""
    program = target.words[0]
    if target.cwd is not None and not Path(target.cwd).is_dir():
        return f"there is no folder {target.cwd!r} to start it in"
    if os.sep in program:
        return f"there is no program {program!r}"
    brings = f" ({program} comes with {_BRINGS[program]})" if program in _BRINGS else ""
    return f"there is no program {program!r} on the PATH. Install it{brings}, or name it with its folder"


@asynccontextmanager
async def http_transport(
    target: Url, bounds: Bounds, answered: Callable[[Any], Awaitable[None]]
) -> AsyncGenerator[Any, None]:
    """The transport of the SDK to a URL. `answered` hears of each response."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    # How long an answer may take is the runtime's matter.
    timeout = httpx2.Timeout(30.0, read=None)
    async with (
        httpx2.AsyncClient(
            headers={**target.headers, "accept-encoding": "identity"},  # an answer is as large as it looks
            timeout=timeout,
            event_hooks={"response": [answered, bounded_responses(bounds)]},
        ) as http,
        # The SDK's own bound of 1 MiB is less than one image.
        streamable_http_client(target.url, http_client=http, max_sse_event_size=bounds.max_answer_bytes) as streams,
    ):
        yield streams
