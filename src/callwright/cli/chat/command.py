"""`callwright chat`: talk with a model that has tools, in a terminal or through a pipe."""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from callwright.agent.agent import Agent
from callwright.agent.events import RunEnded, RunResult
from callwright.agent.mcp.tools import mcp_tools
from callwright.agent.run import stream
from callwright.agent.tools import Tool
from callwright.cli.chat.background import Background
from callwright.cli.chat.questions import asking_in
from callwright.cli.chat.screen import Screen, plain
from callwright.cli.chat.tools_file import load_tools
from callwright.cli.chat.transcript import Transcript
from callwright.cli.options import checked, model_settings, server_options, state_folder, told_as_options
from callwright.cli.terminal import count_noun
from callwright.errors import CallwrightError, ConfigError, did_you_mean
from callwright.gateway.config.build_models import build_models, default_name
from callwright.gateway.config.config import ANY_MODEL, SIMULATED_UPSTREAM, Config, ModelConfig, with_default_mode
from callwright.turn.model import AUTO, SIMULATED, Model, open_models
from callwright.upstreams.embedded.gguf import is_file

if TYPE_CHECKING:
    from callwright.agent.sessions.session import Session


_COMMANDS: Final[Mapping[str, str]] = {
    "/help": "this list",
    "/tools": "the tools, with what they take",
    "/reset": "begin a new conversation",
    "/quit": "end the chat, as Ctrl-D does",
}
_NOBODY: Final = (
    "Nobody is there to approve this call, so it was not run. Start the chat with --yes to allow all calls."
)
_FIRST_LINE: Final = 90
# The timeout of a call that may ask the person, which includes the time for the answer.
_PATIENCE_S: Final = 600.0


@click.command()
@click.option(
    "--upstream",
    metavar="URL",
    help="Base URL of an OpenAI-compatible server, a model.gguf to run, smollm2, or simulated, the default.",
)
@click.option("--model", metavar="NAME", help="The model; without it the first that the server lists.")
@server_options
@click.option(
    "--tools", multiple=True, type=click.Path(path_type=Path), metavar="FILE.py", help="Functions to give the model."
)
@click.option(
    "--mcp",
    multiple=True,
    metavar="COMMAND",
    help="An MCP server: the command that starts it, or its URL, with -H 'Name: value' before it for headers.",
)
@click.option("--system", default="", metavar="TEXT", help="Instructions for the model.")
@click.option("--yes", is_flag=True, help="Run calls that want approval without asking.")
@click.option(
    "--save", type=click.Path(path_type=Path), metavar="FILE.jsonl", help="Keep the conversation, one message a line."
)
@click.option("--session", metavar="NAME", help="Continue the conversation of this name, and save it.")
def chat(
    tools: Sequence[Path],
    mcp: Sequence[str],
    system: str,
    yes: bool,
    save: Path | None,
    session: str | None,
    **model: str | None,
) -> None:
    """Talk to a model with tools; through a pipe, each line is a turn.

    \b
    Examples:
      callwright chat --tools tools.py
      callwright chat --upstream http://localhost:8000/v1 --mcp "python server.py"
      callwright chat --upstream model.gguf
      callwright chat --session alice
      echo "What is the weather in Oslo?" | callwright chat --tools tools.py
    """
    logging.getLogger().addHandler(logging.NullHandler())  # the chat shows everything itself
    functions: list[Tool] = []
    hidden: dict[str, Any] = {}
    for number, path in enumerate(tools):
        found, values = load_tools(path, number)
        functions += found
        hidden |= values
    config = _config(**model_settings(model))
    with Background() as background:
        try:
            asked = background.enter(_model(config))
            screen = Screen()
            elicit = asking_in(screen, background)
            for command in mcp:
                timeout_s = None if elicit is None else _PATIENCE_S
                functions += background.enter(mcp_tools(command, elicit=elicit, timeout_s=timeout_s))
            agent = Agent(model=asked, tools=functions, instructions=system)
            transcript = None if save is None else Transcript(save, system)
            kept = None
            if session is not None:
                kept = _session(background, session)
            _Chat(agent, screen, background, hidden, transcript, kept, says_yes=yes).run()
        except KeyboardInterrupt:  # while it starts, or twice in a row
            click.echo()


def _session(background: Background, name: str) -> "Session":
    from callwright.agent.sessions.session import Session  # a chat without a session loads no database

    with told_as_options():
        return background.enter(Session(name, f"sqlite:///{state_folder() / 'sessions.db'}"))


# --- the model ---


def _config(upstream: str | None = None, **given: str) -> ModelConfig:
    if upstream in (None, SIMULATED_UPSTREAM):
        name = given.get("model", "simulated")
        rest = {key: value for key, value in given.items() if key != "model"}
        if name not in SIMULATED:
            near = did_you_mean(name, SIMULATED)
            raise ConfigError(f"--model {name!r} needs an upstream: add --upstream URL.{near}")
        if "api_key_env" in rest or "server" in rest:
            raise ConfigError("--key-env and --server are for an upstream: add --upstream URL.")
        mode, dialect = SIMULATED[name]
        settings = rest or {"mode": mode, **({"dialect": dialect} if dialect else {})}
        settings |= {"name": name, "upstream": "simulated", "media": "tell"}
    else:
        settings = {"name": given.get("model", default_name(upstream)), "upstream": upstream, **given}
        if is_file(upstream):  # it needs no model name
            settings.pop("model", None)
    return with_default_mode(checked(settings, ModelConfig))


@asynccontextmanager
async def _model(config: ModelConfig) -> AsyncGenerator[Model, None]:
    """The model. Without a name, the first that the server lists."""
    with told_as_options():
        models = build_models(Config(models=(config,)))
    model = models[config.name]
    try:
        await open_models(models)
        if config.name == ANY_MODEL:
            names = await model.upstream.models()
            if not names:
                raise ConfigError("The upstream lists no models. Name one with --model.")
            model = model.for_model(names[0])
        yield model
    finally:
        await model.close()


# --- the chat ---


class _Chat:
    """One chat, from its first line to its last."""

    def __init__(
        self,
        agent: Agent,
        screen: Screen,
        background: Background,
        hidden: Mapping[str, Any],
        transcript: Transcript | None,
        session: "Session | None",
        *,
        says_yes: bool,
    ) -> None:
        self._agent = agent
        self._screen = screen
        self._background = background
        self._hidden = hidden
        self._transcript = transcript
        self._session = session
        self._says_yes = says_yes
        self._always: set[str] = set()
        self._history: RunResult | None = None

    def run(self) -> None:
        """Run until the end of the input. An error of the server ends it only outside a terminal."""
        screen = self._screen
        if screen.is_interactive:
            with suppress(ImportError):
                import readline  # noqa: F401  # for the editing of lines
            model = self._agent.model
            assert isinstance(model, Model)
            mode = AUTO if model.mode_selector else model.mode
            how = f"{mode} {model.dialect}" if model.dialect else mode
            tools = count_noun(len(self._agent.tools), "tool")
            screen.line(f"{model.name} ({how}), {tools}. /help for help, Ctrl-D ends.", dim=True)
            if self._session is not None and (before := self._background.call(self._session.get_items())):
                told = plain(self._session.session_id)
                screen.line(f"Going on with {told}: {count_noun(len(before), 'message')}.", dim=True)
        while True:
            try:
                line = screen.ask("> ", bold=True).strip()
            except EOFError:
                break
            except KeyboardInterrupt:  # the line is thrown away
                screen.line()
                continue
            if line == "/quit":
                break
            try:
                if re.fullmatch(r"/\w+", line):
                    self._command(line)
                elif line:
                    self._turn(line)
            except CallwrightError as error:
                if not screen.is_interactive:
                    raise
                screen.line(f"Error: {plain(str(error))}", fg="red")
        if screen.is_interactive:
            screen.line()

    def _command(self, line: str) -> None:
        screen = self._screen
        match line:
            case "/help":
                for name, told in _COMMANDS.items():
                    screen.line(f"{name:8} {told}")
                screen.line("Ctrl-C   end this turn")
            case "/tools":
                for tool in self._agent.tools.values():
                    takes = ", ".join(tool.parameters.get("properties", {}))
                    first = plain(tool.definition.description or "").strip().partition("\n")[0]
                    asks = "  (asks)" if tool.options.approve and not self._says_yes else ""
                    screen.line(f"{plain(tool.name)}({plain(takes)}){asks}", fg="cyan")
                    screen.line(f"    {first[:_FIRST_LINE]}")
                if not self._agent.tools:
                    screen.line("No tools. Give some with --tools FILE.py or --mcp COMMAND.")
            case "/reset":
                self._history = None
                if self._session:
                    self._background.call(self._session.clear_session())
                if self._transcript:
                    self._transcript.begin_anew()
                screen.line("A new conversation.", dim=True)
            case _:
                screen.line(f"Unknown command {line}.{did_you_mean(line, _COMMANDS)} /help lists the commands.")

    def _turn(self, line: str) -> None:
        """One line of the person, until the model has answered."""
        try:
            result = self._run(line, None)
            while result is not None and result.stop == "pending":
                decisions = self._decide(result)
                result = None if decisions is None else self._run(result, decisions)
        finally:
            if self._transcript and self._history:
                self._transcript.keep(self._history.to_messages())

    def _run(self, given: str | RunResult, decisions: Mapping[str, Any] | None) -> RunResult | None:
        cancel = asyncio.Event()
        return self._background.call(self._stream(given, decisions, cancel), cancel)

    async def _stream(
        self, given: str | RunResult, decisions: Mapping[str, Any] | None, cancel: asyncio.Event
    ) -> RunResult | None:
        run = stream(
            self._agent,
            given,
            history=self._history if decisions is None and self._session is None else None,
            session=self._session,
            hidden=self._hidden,
            decisions=decisions,
            cancel=cancel,
            on_end=self._keep,
        )
        ended: RunEnded | None = None
        async with aclosing(run) as events:
            async for event in events:
                if isinstance(event, RunEnded):
                    ended = event
                else:
                    self._screen.show(event)
        self._screen.end_line()
        if ended is None:
            return None
        self._screen.show(ended)
        return ended.result

    def _keep(self, result: RunResult) -> None:
        self._history = result

    def _decide(self, result: RunResult) -> dict[str, Any] | None:
        """A decision for each call that waits; None when the person ends the turn."""
        assert result.pending is not None
        decisions: dict[str, Any] = {}
        for call in result.pending["calls"]:
            name = call["name"]
            if self._says_yes or name in self._always:
                decisions[call["id"]] = True
                continue
            if not self._screen.is_interactive:
                decisions[call["id"]] = _NOBODY
                continue
            try:
                answer = self._screen.ask_approval(name, call["arguments"])
            except (EOFError, KeyboardInterrupt):
                self._screen.line("[not run]", fg="yellow")
                return None
            if answer == "always":
                self._always.add(name)
            decisions[call["id"]] = {"yes": True, "always": True, "no": False}.get(answer, answer)
        return decisions
