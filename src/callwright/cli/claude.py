"""`callwright claude`: the environment with which Claude Code runs on a model of a gateway.

Claude Code knows Anthropic's models only. Of any other it takes the window for a million tokens, and it asks for names
of its own. What each variable does was tried with Claude Code 2.1.330, see docs/claude-code.md.
"""

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Final

import click
from msgspec import Struct

from callwright.cli.gateway_models import DEFAULT_WINDOW, checked_url, unlisted_warning, windows_of
from callwright.errors import ConfigError

_URL: Final = "http://127.0.0.1:8642"
_PROGRAM: Final = "claude"
_TOKEN: Final = "ANTHROPIC_AUTH_TOKEN"
# Claude Code sends the key of this one, too, beside the token: it is Anthropic's, and not for a gateway.
_FOREIGN_KEY: Final = "ANTHROPIC_API_KEY"
_ANY_KEY: Final = "any"  # without one it asks for a login
_MAX_OUTPUT_TOKENS: Final = 32_000
_OUTPUT_SHARE: Final = 4  # of the window, so much may be an answer
# Of the window that it is told, Claude Code keeps so much free beside the answer, to sum up in. That is nearly all of a
# small one, and it would sum up again and again; there an eighth of the window does as well.
_KEPT_FREE: Final = 13_000
_FREE_SHARE: Final = 8
# So much of an answer's length it keeps free, however long the answer may be.
_MAX_RESERVED: Final = 20_000
_TOOLS_TOKENS: Final = 12_000  # the instructions and tools of its first request: 49 kB
_SIMPLE_TOKENS: Final = 1_100  # 4 kB
_ROOM_TOKENS: Final = 4_000  # in less than this hardly a file can be read
_ALIASES: Final = ("OPUS", "SONNET", "HAIKU", "FABLE")
_ANTHROPIC: Final = "claude-"
_VARIABLE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Variable(Struct, frozen=True):
    """A variable of the environment. `about`: what it does, where its name does not say it. `of`: the variable whose
    value it takes; None where it has one of its own.
    """

    name: str
    value: str
    about: str = ""
    of: str | None = None

    def line(self) -> str:
        """As a shell reads it."""
        value = shlex.quote(self.value) if self.of is None else f'"${self.of}"'
        return f"export {self.name}={value}"


@click.command()
@click.argument("arguments", nargs=-1, metavar="[-- ARGUMENTS]")
@click.option("--model", metavar="NAME", help="The model; without it, the first that the gateway lists.")
@click.option("--url", metavar="URL", default=_URL, show_default=True, help="The gateway, with or without /v1.")
@click.option(
    "--context-window",
    type=click.IntRange(8_192, 100_000_000),
    metavar="TOKENS",
    help="How much the model's server takes at once; Claude Code sums up before that is full.  [default: "
    f"what the gateway says, else {DEFAULT_WINDOW}]",
)
@click.option("--key-env", metavar="VAR", help="Environment variable that holds the gateway's API key.")
@click.option("--simple", is_flag=True, help="Only three tools, for small windows and small models.")
@click.option("--start", is_flag=True, help="Start Claude Code with it; it gets what stands behind --.")
def claude(
    arguments: tuple[str, ...],
    model: str | None,
    url: str,
    context_window: int | None,
    key_env: str | None,
    simple: bool,
    start: bool,
) -> None:
    """Print the environment with which Claude Code runs on this gateway, or start it.

    \b
    Examples:
      callwright claude --model simulated > claude.env
      callwright claude --model simulated --start -- -p "Run the command 'echo hello'"
    """
    if arguments and not start:
        raise ConfigError(f"{shlex.join(arguments)} is for Claude Code: add --start.")
    url = checked_url(url, _URL).removesuffix("/v1").rstrip("/")
    key = _key(key_env, needed=start)
    name, window = next(iter(windows_of(model, f"{url}/v1", context_window, key).items()))
    output = min(_MAX_OUTPUT_TOKENS, window // _OUTPUT_SHARE)
    if model is not None and (warning := unlisted_warning(name, f"{url}/v1", key)):
        click.echo(warning, err=True)
    for warning in _warnings(name, window, output, simple=simple):
        click.echo(f"Warning: {warning}", err=True)
    variables = environment(name, url, window, output, key_env=key_env, simple=simple)
    if start:
        _start(arguments, variables)
    else:
        click.echo(_script(variables), nl=False)


def environment(
    model: str,
    url: str,
    context_window: int,
    max_output_tokens: int,
    *,
    key_env: str | None = None,
    simple: bool = False,
) -> list[Variable]:
    """The variables for a model of the gateway at a URL without /v1. The sizes are tokens."""
    key = Variable(_TOKEN, "", of=key_env) if key_env else Variable(_TOKEN, _ANY_KEY, "The gateway asks for no key.")
    names = [Variable(f"ANTHROPIC_DEFAULT_{alias}_MODEL", model) for alias in _ALIASES]
    names[0] = Variable(names[0].name, model, "So that no other model is asked for titles, checks, web searches.")
    told = context_window + max(0, _KEPT_FREE - context_window // _FREE_SHARE)
    kept = f"Claude Code keeps {_KEPT_FREE} of them free, which this window has not." if told > context_window else ""
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


def _script(variables: Sequence[Variable]) -> str:
    """Lines for a shell. Comments have lines of their own."""
    lines = [line for one in variables for line in (f"# {one.about}" * bool(one.about), one.line()) if line]
    return "\n".join((*lines, "# Claude Code would send it, too.", f"unset {_FOREIGN_KEY}", ""))


def _warnings(model: str, window: int, output: int, *, simple: bool) -> list[str]:
    """What will not go well with these settings."""
    found: list[str] = []
    if model.startswith(_ANTHROPIC):
        found.append(
            f"Claude Code ignores --context-window for names that begin with '{_ANTHROPIC}', such as {model!r}: it "
            "takes the window of Anthropic's models. Give the model another name in the gateway."
        )
    tools = _SIMPLE_TOKENS if simple else _TOOLS_TOKENS
    room = window - min(output, _MAX_RESERVED) - min(_KEPT_FREE, window // _FREE_SHARE) - tools
    if room < _ROOM_TOKENS:
        ways = ["a larger --context-window, if the server takes one", "a smaller --max-output-tokens"]
        ways += [] if simple else ["--simple"]
        found.append(
            f"Claude Code's tools take about {tools} of {window} tokens, and {max(0, room)} are left for work: it "
            f"would sum up again and again. Try {', or '.join(ways)}."
        )
    return found


def _key(name: str | None, *, needed: bool) -> str:
    """The value of the variable that is named for the key. Raises `ConfigError`."""
    if name is None:
        return ""
    if not _VARIABLE_NAME.fullmatch(name):
        raise ConfigError(f"--key-env: expected the name of an environment variable, got {name!r}.")
    if needed and not os.environ.get(name):
        raise ConfigError(f"--key-env: the environment variable {name} is not set.")
    return os.environ.get(name, "")


def _start(arguments: Sequence[str], variables: Sequence[Variable]) -> None:
    """Become Claude Code. Raises `ConfigError` where it is not there."""
    given: Mapping[str, str] = {one.name: os.environ[one.of] if one.of else one.value for one in variables}
    kept = {name: value for name, value in os.environ.items() if name != _FOREIGN_KEY}
    try:
        os.execvpe(_PROGRAM, [_PROGRAM, *arguments], {**kept, **given})
    except OSError as error:
        raise ConfigError(
            f"'{_PROGRAM}' cannot be started: {error.strerror}. Install Claude Code with `npm install -g "
            "@anthropic-ai/claude-code`, or leave --start out to print its environment."
        ) from error
