"""An MCP server over standard input and output, with nothing but the standard library: `get_weather`, and as many other
tools as its argument says.
"""

import json
import sys
from typing import Any

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"name": "get_weather", "description": "The weather in a city.", "inputSchema": CITY}]
TOOLS += [
    {"name": f"twin_{number}", "description": f"Twin town {number} of a city.", "inputSchema": CITY}
    for number in range(int(sys.argv[1]))
]


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a request; None for a method that this server does not have."""
    match method:
        case "initialize":
            server = {"name": "demo", "version": "1"}
            version = params["protocolVersion"]
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
        case "ping":
            return {}
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call":
            city = params["arguments"]["city"]
            return {"content": [{"type": "text", "text": f"18 degrees in {city}"}]}
    return None


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:  # a notification
            continue
        result = answer(message["method"], message.get("params") or {})
        outcome = {"error": {"code": -32601, "message": "no such method"}} if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}), flush=True)


if __name__ == "__main__":
    main()
