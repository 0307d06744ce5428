"""Search in a knowledge base, streamed: each event as it comes, the tool with what the program knows."""

import asyncio
from dataclasses import dataclass
from typing import Annotated

import callwright
from callwright import Context, From
from callwright.agent.events import RunEnded, TextDelta, ToolEnded, ToolProgress

PAGES = {"Opening hours": "We are open from 9 to 17.", "Returns": "Send it back within 30 days."}


@dataclass
class Page:
    title: str
    text: str


def get_pages() -> dict[str, str]:
    return PAGES


@callwright.tool
async def search_knowledge(
    query: str, pages: Annotated[dict[str, str], From(get_pages)], context: Context, limit: int = 3
) -> list[Page]:
    """Search the knowledge base for pages.

    Args:
        query: Words to look for.
        limit: So many pages at most.
    """
    context.progress(f"{len(pages)} pages to look at")
    words = query.lower().split()
    found = [Page(title, text) for title, text in pages.items() if any(word in title.lower() for word in words)]
    return found[:limit]


async def main() -> None:
    agent = callwright.Agent(model="simulated", tools=[search_knowledge])
    async for event in callwright.stream(agent, "Search the knowledge base for opening hours"):
        match event:
            case ToolProgress(value=value):
                print("…", value)
            case ToolEnded(name=name, text=text):
                print(name, "->", text)
            case TextDelta(text):
                print(text, end="")
            case RunEnded(result):
                print(f"\n{result.stop} after {result.turns} turns")


if __name__ == "__main__":
    asyncio.run(main())
