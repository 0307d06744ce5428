"""Tools with parameters of every kind, for round trips."""

from typing import Any

__all__ = ["TOOLS"]

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "save_text",
            "description": "Saves a text.",
            "parameters": {
                "type": "object",
                "properties": {
                    "path": {"type": "string"},
                    "text": {"type": "string"},
                    "mode": {"type": "integer"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "meta": {
                        "type": "object",
                        "properties": {
                            "deep": {
                                "type": "object",
                                "properties": {"er": {"type": "array", "items": {"type": "integer"}}},
                            },
                            "s": {"type": "string"},
                            "none": {"type": ["integer", "null"]},
                        },
                    },
                    "ratio": {"type": "number"},
                    "force": {"type": "boolean"},
                    "owner": {"type": ["string", "null"]},
                },
                "required": ["path", "text"],
            },
        },
    },
    {"type": "function", "function": {"name": "clock", "parameters": {"type": "object", "properties": {}}}},
]
