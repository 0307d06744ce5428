"""OpenAI-grade tool calling for any model server: the library.

`parse` and `Parser` read what a model wrote, `render` makes its prompt, `write` makes what it would write. Errors
of the caller are `RequestError`; what the model does wrong is in `Turn.problems`.
"""

from importlib.metadata import version

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

__version__ = version("toolwright")

__all__ = [
    "ArgumentsDelta",
    "Call",
    "CallEnded",
    "CallStarted",
    "ConfigError",
    "ContentDelta",
    "Control",
    "Event",
    "Finished",
    "Grammar",
    "GrammarError",
    "Markup",
    "NotJsonError",
    "Parser",
    "Problem",
    "Prompt",
    "ReasoningDelta",
    "RequestError",
    "Text",
    "ToolwrightError",
    "Turn",
    "UpstreamError",
    "collect",
    "dialects",
    "loads",
    "parse",
    "render",
    "strict_problems",
    "typescript",
    "write",
]
