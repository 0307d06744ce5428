"""The table of clients, for the terminal and for its page: rows of clients that were not run stay as they are."""

import datetime
from collections.abc import Mapping, Sequence
from typing import Final

from tests.clients.agents.judge import Outcome
from tests.clients.agents.rows import Client
from tests.support.paths import ROOT

__all__ = ["COLUMNS", "PAGE", "row_of", "rows_in", "table", "write"]

PAGE: Final = ROOT / "docs" / "contributing" / "clients-run.md"
COLUMNS: Final = ("client", "version", "API", "answers", "requests", "tools called", "result", "run")
_BEGIN: Final = "<!-- written by scripts/agents -->\n"
_END: Final = "<!-- end -->\n"
_APIS: Final[Mapping[str, str]] = {
    "chat": "Chat Completions",
    "responses": "Responses",
    "websocket": "Responses over WebSocket",
    "messages": "Messages",
}


def row_of(client: Client, outcome: Outcome, day: datetime.date) -> str:
    """A row, as Markdown."""
    cells = (
        _link(client),
        client.version,
        ", ".join(_APIS.get(api, api) for api in outcome.apis),
        outcome.streamed,
        str(outcome.requests or ""),
        ", ".join(f"`{name}`" for name in outcome.tools),
        outcome.result,
        str(day),
    )
    return "|" + "|".join(f" {cell} " if cell else " " for cell in map(_cell, cells)) + "|\n"


def _cell(text: str) -> str:
    """On one line, and without what ends a cell."""
    return " ".join(text.split()).replace("|", "\\|")


def table(rows: Sequence[str]) -> str:
    """The table of these rows."""
    return f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|\n{''.join(rows)}"


def rows_in(page: str, clients: Sequence[Client]) -> dict[str, str]:
    """The rows that stand in a page, by the names of their clients."""
    inside = page.partition(_BEGIN)[2].partition(_END)[0]
    lines = {line.split("|")[1].strip(): line for line in inside.splitlines(keepends=True)}
    return {client.name: lines[_link(client)] for client in clients if _link(client) in lines}


def _link(client: Client) -> str:
    return f"[{client.shown}]({client.page})"


def write(page: str, clients: Sequence[Client], made: Mapping[str, str]) -> str:
    """The page with these rows, by the names of their clients, and with those of the others that it had."""
    rows = {**rows_in(page, clients), **made}
    before, _, rest = page.partition(_BEGIN)
    after = rest.partition(_END)[2]
    return before + _BEGIN + table([rows[client.name] for client in clients if client.name in rows]) + _END + after
