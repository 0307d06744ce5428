"""Tools that the gateway runs itself within a turn, whichever API asked: tool search, tools of MCP servers."""
