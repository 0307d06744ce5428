"""The address of an MCP server: a command or a URL, its name in messages, and its transport."""

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

# The packages that install the usual launchers of servers.
_BRINGS: Final = {"npx": "Node.js", "uvx": "uv"}
_PLACE: Final = re.compile(r"\w+://[^/?#\s]*")
_SECRET: Final = 6  # the minimum length of a word in a header that may be a key


class Command(Struct, frozen=True):
    """A server that is started as a process and communicates over its standard input and output.

    It gets HOME, PATH and the like, and `env`; nothing else of this process's environment.
    """

    words: tuple[str, ...]
    env: Mapping[str, str] = {}
    cwd: str | None = None

    def __str__(self) -> str:
        return repr(self.words[0])  # there may be keys in the arguments


class Url(Struct, frozen=True):
    """A running server, used over streamable HTTP."""

    url: str
    headers: Mapping[str, str] = {}

    def __str__(self) -> str:
        """Its scheme and host. Some servers take a key in the path or in the query, so the rest is not shown."""
        found = _PLACE.match(self.url)
        place = without_credentials(found[0]) if found else ""
        return place if self.url in (place, f"{place}/") else f"{place}/…"

    def without_secrets(self, words: str) -> str:
        """Hide the URL and the header values in a text from elsewhere."""
        words = words.replace(self.url, str(self))
        for value in self.headers.values():
            for part in value.split():
                words = words.replace(part, "…") if len(part) >= _SECRET and part.lower() != "bearer" else words
        return words


def missing_program(target: Command) -> str:
    """The missing part of a command, and what to do about it."""
    program = target.words[0]
    if target.cwd is not None and not Path(target.cwd).is_dir():
        return f"the folder {target.cwd!r} to start it in does not exist"
    if os.sep in program:
        return f"the program {program!r} does not exist"
    brings = f" ({program} comes with {_BRINGS[program]})" if program in _BRINGS else ""
    return f"the program {program!r} is not on the PATH. Install it{brings}, or give its full path"


@asynccontextmanager
async def http_transport(
    target: Url, bounds: Bounds, answered: Callable[[Any], Awaitable[None]]
) -> AsyncGenerator[Any, None]:
    """The transport of the SDK to a URL. `answered` is called with each response."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    # The runtime limits the time of an answer.
    timeout = httpx2.Timeout(30.0, read=None)
    async with (
        httpx2.AsyncClient(
            headers={**target.headers, "accept-encoding": "identity"},  # the limits count the bytes received
            timeout=timeout,
            event_hooks={"response": [answered, bounded_responses(bounds)]},
        ) as http,
        # The SDK's own bound of 1 MiB is less than one image.
        streamable_http_client(target.url, http_client=http, max_sse_event_size=bounds.max_answer_bytes) as streams,
    ):
        yield streams
