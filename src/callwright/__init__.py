"""OpenAI-grade tool calling for any model server: the library.

`parse` and `Parser` read a model's output, `render` builds its prompt, `write` writes calls in its format. Errors of
the caller raise `RequestError`; errors of the model are in `Turn.problems`. `tool`, `Agent` and `run` are the runtime:
functions as tools, and the loop that runs them.

Each name is loaded when it is first used: `import callwright` costs nothing, and reading an output loads neither the
grammar engine nor asyncio.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from callwright.agent.agent import Agent, Limits
    from callwright.agent.annotations import Context, Failed, From, Hidden, Result, Retry, RunContext
    from callwright.agent.connect import connect
    from callwright.agent.events import RunResult
    from callwright.agent.hooks import EndRun, Hooks
    from callwright.agent.mcp.tools import mcp_tools
    from callwright.agent.run import resume, run, run_sync, stream
    from callwright.agent.sessions.session import Session
    from callwright.agent.tools import bind, tool
    from callwright.api import Parser, dialects, loads, parse, render, strict_problems, typescript, write
    from callwright.chat_template.dialect import template_dialect
    from callwright.conversation import Call
    from callwright.errors import (
        ApprovalWarning,
        CallwrightError,
        ConfigError,
        GrammarError,
        RequestError,
        SessionError,
        UpstreamError,
    )
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
    from callwright.reading.collect import Turn, collect
    from callwright.reading.spans import Span
    from callwright.response_template.template import ResponseTemplate
    from callwright.tolerant_json.codec import NotJsonError

    __version__: str

# The modules of the runtime's names, and of all names.
_RUNTIME = {
    **dict.fromkeys(("Agent", "Limits"), "agent.agent"),
    **dict.fromkeys(("Context", "Failed", "From", "Hidden", "Result", "Retry", "RunContext"), "agent.annotations"),
    **dict.fromkeys(("resume", "run", "run_sync", "stream"), "agent.run"),
    **dict.fromkeys(("EndRun", "Hooks"), "agent.hooks"),
    "RunResult": "agent.events",
    "Session": "agent.sessions.session",
    "bind": "agent.tools",
    "connect": "agent.connect",
    "mcp_tools": "agent.mcp.tools",
    "tool": "agent.tools",
}
_FROM = {
    **_RUNTIME,
    **dict.fromkeys(("Parser", "loads", "parse", "render", "strict_problems", "typescript", "write"), "api"),
    **dict.fromkeys(("Turn", "collect"), "reading.collect"),
    **dict.fromkeys(
        (
            "ApprovalWarning",
            "CallwrightError",
            "ConfigError",
            "GrammarError",
            "RequestError",
            "SessionError",
            "UpstreamError",
        ),
        "errors",
    ),
    **dict.fromkeys(
        (
            *("ArgumentsDelta", "CallEnded", "CallStarted", "ContentDelta", "Event", "Finished", "Markup"),
            *("Problem", "ReasoningDelta"),
        ),
        "events",
    ),
    **dict.fromkeys(("Control", "Prompt", "Text"), "prompt"),
    "Call": "conversation",
    "Grammar": "grammar.grammar",
    "NotJsonError": "tolerant_json.codec",
    "ResponseTemplate": "response_template.template",
    "Span": "reading.spans",
    "template_dialect": "chat_template.dialect",
}

__all__ = [
    "Agent",
    "ApprovalWarning",
    "ArgumentsDelta",
    "Call",
    "CallEnded",
    "CallStarted",
    "CallwrightError",
    "ConfigError",
    "ContentDelta",
    "Context",
    "Control",
    "EndRun",
    "Event",
    "Failed",
    "Finished",
    "From",
    "Grammar",
    "GrammarError",
    "Hidden",
    "Hooks",
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
    "RunContext",
    "RunResult",
    "Session",
    "SessionError",
    "Span",
    "Text",
    "Turn",
    "UpstreamError",
    "bind",
    "collect",
    "connect",
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
    "template_dialect",
    "tool",
    "typescript",
    "write",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        found: Any = version("callwright")
    elif name == "dialects":  # the callable package, so that attribute and import are the same object
        found = import_module("callwright.dialects")
    elif name in _FROM:
        found = getattr(import_module(f"callwright.{_FROM[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*__all__, "__doc__", "__version__"])
