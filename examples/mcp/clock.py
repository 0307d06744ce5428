"""An MCP server with one tool, for those of the examples and pages that want one; `callwright[mcp]` brings the SDK.

callwright chat --mcp ".venv/bin/python examples/mcp/clock.py"
"""

from datetime import datetime
from zoneinfo import ZoneInfo

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("clock")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def get_current_time(timezone: str) -> dict[str, str]:
    """Current time in a timezone, such as Europe/Oslo."""
    now = datetime.now(ZoneInfo(timezone))
    return {"timezone": timezone, "datetime": now.isoformat(timespec="seconds")}


if __name__ == "__main__":
    server.run()
