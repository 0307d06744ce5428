"""Claude Code: the environment with which it runs on a model of a gateway.

Claude Code knows Anthropic's models only. Of any other it takes the window for a million tokens, and it asks for names
of its own. Each variable was tried with Claude Code 2.1.330, see docs/claude-code.md.
"""

from typing import Final

from callwright.cli.launch.setup import ANY_KEY, Setup, Target, Variable

_TOKEN: Final = "ANTHROPIC_AUTH_TOKEN"
# Claude Code would send this key too, in addition to the token: it is Anthropic's, and not for a gateway.
_FOREIGN_KEY: Final = "ANTHROPIC_API_KEY"
# Of the window that it is given, Claude Code leaves this much free for a summary, in addition to the answer. That is
# nearly all of a small window, and it would summarize again and again; an eighth of a small window is enough.
_KEPT_FREE: Final = 13_000
_FREE_SHARE: Final = 8
# Claude Code reserves at most this much for an answer, however long the answer may be.
_MAX_RESERVED: Final = 20_000
_TOOLS_TOKENS: Final = 12_000  # the instructions and tools of its first request: 49 kB
_SIMPLE_TOKENS: Final = 1_100  # 4 kB
_ROOM_TOKENS: Final = 4_000  # in less than this hardly a file can be read
_ALIASES: Final = ("OPUS", "SONNET", "HAIKU", "FABLE")
_ANTHROPIC: Final = "claude-"


def claude(target: Target) -> Setup:
    """The setup of Claude Code."""
    return Setup(
        variables=tuple(
            environment(
                target.model, target.url, target.window, target.output, key_env=target.key_env, simple=target.simple
            )
        ),
        unset=(_FOREIGN_KEY,),
        warnings=tuple(_warnings(target.model, target.window, target.output, simple=target.simple)),
    )


def environment(
    model: str,
    url: str,
    context_window: int,
    max_output_tokens: int,
    *,
    key_env: str | None = None,
    simple: bool = False,
) -> list[Variable]:
    """The variables for a model of the gateway at a URL without /v1. Sizes are in tokens."""
    key = Variable(_TOKEN, "", of=key_env) if key_env else Variable(_TOKEN, ANY_KEY, "The gateway asks for no key.")
    names = [Variable(f"ANTHROPIC_DEFAULT_{alias}_MODEL", model) for alias in _ALIASES]
    names[0] = Variable(names[0].name, model, "So that no other model is asked for titles, checks, web searches.")
    told = context_window + max(0, _KEPT_FREE - context_window // _FREE_SHARE)
    kept = f"Claude Code leaves {_KEPT_FREE} of them free: more than this window has." if told > context_window else ""
    found = [
        Variable("ANTHROPIC_BASE_URL", url),
        key,
        Variable("ANTHROPIC_MODEL", model),
        *names,
        Variable("CLAUDE_CODE_MAX_CONTEXT_TOKENS", str(told), kept),
        Variable("CLAUDE_CODE_MAX_OUTPUT_TOKENS", str(max_output_tokens)),
        Variable("CLAUDE_CODE_ATTRIBUTION_HEADER", "0", "Off: a line that differs in each conversation."),
        Variable("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1", "It contacts the gateway and nothing else."),
    ]
    if simple:
        found.append(Variable("CLAUDE_CODE_SIMPLE", "1", "Three tools: run a command, read and edit a file."))
    return found


def _warnings(model: str, window: int, output: int, *, simple: bool) -> list[str]:
    """What will not work well with these settings."""
    found: list[str] = []
    if model.startswith(_ANTHROPIC):
        found.append(
            f"Claude Code ignores --context-window for names that begin with '{_ANTHROPIC}', such as {model!r}: it "
            "takes the window of Anthropic's models. Give the model another name in the gateway."
        )
    tools = _SIMPLE_TOKENS if simple else _TOOLS_TOKENS
    room = window - min(output, _MAX_RESERVED) - min(_KEPT_FREE, window // _FREE_SHARE) - tools
    if room < _ROOM_TOKENS:
        ways = ["a larger --context-window, if the server takes one"]
        ways += [] if simple else ["--simple"]
        found.append(
            f"Claude Code's tools take about {tools} of {window} tokens, and {max(0, room)} are left for work: it "
            f"would summarize again and again. Try {', or '.join(ways)}."
        )
    return found
