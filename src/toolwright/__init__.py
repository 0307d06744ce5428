"""OpenAI-grade tool calling for any model server: the library.

`parse` and `Parser` read what a model wrote, `render` makes its prompt, `write` makes what it would write. Errors
of the caller are `RequestError`; what the model does wrong is in `Turn.problems`. `tool`, `Agent` and `run` are the
runtime: functions as tools, and the loop that runs them.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from toolwright.api import NotJsonError, Parser, dialects, loads, parse, render, strict_problems, typescript, write
from toolwright.collect import Turn, collect
from toolwright.conversation import Call
from toolwright.errors import ConfigError, GrammarError, RequestError, ToolwrightError, UpstreamError
from toolwright.events import (
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    ContentDelta,
    Event,
    Finished,
    Markup,
    Problem,
    ReasoningDelta,
)
from toolwright.grammar.user import Grammar
from toolwright.prompt import Control, Prompt, Text
from toolwright.response_template import ResponseTemplate

if TYPE_CHECKING:
    from toolwright.agent.agents import Agent, Limits
    from toolwright.agent.events import RunResult
    from toolwright.agent.marks import Context, Failed, From, Hidden, Result, Retry
    from toolwright.agent.mcp import mcp_tools
    from toolwright.agent.run import resume, run, run_sync, stream
    from toolwright.agent.tools import bind, tool

# The runtime is imported when it is used: it brings asyncio, which the rest does not need.
_RUNTIME = {
    **dict.fromkeys(("Agent", "Limits"), "agents"),
    **dict.fromkeys(("Context", "Failed", "From", "Hidden", "Result", "Retry"), "marks"),
    **dict.fromkeys(("resume", "run", "run_sync", "stream"), "run"),
    "RunResult": "events",
    "bind": "tools",
    "mcp_tools": "mcp",
    "tool": "tools",
}

__version__ = version("toolwright")

__all__ = [
    "Agent",
    "ArgumentsDelta",
    "Call",
    "CallEnded",
    "CallStarted",
    "ConfigError",
    "ContentDelta",
    "Context",
    "Control",
    "Event",
    "Failed",
    "Finished",
    "From",
    "Grammar",
    "GrammarError",
    "Hidden",
    "Limits",
    "Markup",
    "NotJsonError",
    "Parser",
    "Problem",
    "Prompt",
    "ReasoningDelta",
    "RequestError",
    "ResponseTemplate",
    "Result",
    "Retry",
    "RunResult",
    "Text",
    "ToolwrightError",
    "Turn",
    "UpstreamError",
    "bind",
    "collect",
    "dialects",
    "loads",
    "mcp_tools",
    "parse",
    "render",
    "resume",
    "run",
    "run_sync",
    "stream",
    "strict_problems",
    "tool",
    "typescript",
    "write",
]


def __getattr__(name: str) -> Any:
    if name not in _RUNTIME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"toolwright.agent.{_RUNTIME[name]}"), name)
