"""OpenAI-grade tool calling for any model server: the library.

`parse` and `Parser` read what a model wrote, `render` makes its prompt, `write` makes what it would write. Errors
of the caller are `RequestError`; what the model does wrong is in `Turn.problems`. `tool`, `Agent` and `run` are the
runtime: functions as tools, and the loop that runs them.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from callwright.api import NotJsonError, Parser, dialects, loads, parse, render, strict_problems, typescript, write
from callwright.collect import Turn, collect
from callwright.conversation import Call
from callwright.errors import CallwrightError, ConfigError, GrammarError, RequestError, UpstreamError
from callwright.events import (
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
from callwright.grammar.grammar import Grammar
from callwright.prompt import Control, Prompt, Text
from callwright.response_template.template import ResponseTemplate

if TYPE_CHECKING:
    from callwright.agent.agent import Agent, Limits
    from callwright.agent.events import RunResult
    from callwright.agent.marks import Context, Failed, From, Hidden, Result, Retry
    from callwright.agent.mcp.tools import mcp_tools
    from callwright.agent.run import resume, run, run_sync, stream
    from callwright.agent.tools import bind, tool

# The runtime is imported when it is used: it brings asyncio, which the rest does not need.
_RUNTIME = {
    **dict.fromkeys(("Agent", "Limits"), "agent"),
    **dict.fromkeys(("Context", "Failed", "From", "Hidden", "Result", "Retry"), "marks"),
    **dict.fromkeys(("resume", "run", "run_sync", "stream"), "run"),
    "RunResult": "events",
    "bind": "tools",
    "mcp_tools": "mcp.tools",
    "tool": "tools",
}

__version__ = version("callwright")

__all__ = [
    "Agent",
    "ArgumentsDelta",
    "Call",
    "CallEnded",
    "CallStarted",
    "CallwrightError",
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
    return getattr(import_module(f"callwright.agent.{_RUNTIME[name]}"), name)
