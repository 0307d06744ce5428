"""The command `callwright`: its subcommands by name, and its error handling.

A command's module is loaded when it is run, so that no command waits for the imports of others.
"""

import errno
import os
from importlib import import_module
from typing import Any, Final

import click

from callwright.cli.loading import loading
from callwright.errors import CallwrightError, ConfigError, RequestError, reason_of
from callwright.gateway.process.hangup import hold_hangup

# A full disk or quota is a problem of the machine, whichever file a command writes.
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)
_SERVES: Final = "serve"


class LazyCommand(click.Command):
    """A command before it is loaded: its text in the list of commands, and its module. Its function has the command's
    name, or the name after a colon.
    """

    def __init__(self, name: str, about: str, module: str) -> None:
        super().__init__(name, short_help=about)
        self._module = module

    def load(self) -> click.Command:
        """The command itself."""
        module, _, name = self._module.partition(":")
        with loading():
            command = getattr(import_module(module), name or str(self.name))
        assert isinstance(command, click.Command)
        return command


_COMMANDS: Final = tuple(
    LazyCommand(name, about, f"callwright.cli.{module}")
    for name, module, about in (
        ("bulk", "bulk", "Parse, render, check or convert a file of transcripts."),
        ("chat", "chat.command", "Talk to a model with tools."),
        ("config", "config", "Check a configuration file, or print its JSON Schema."),
        ("conform", "conform", "Check a server or gateway against the published APIs."),
        ("dialects", "dialects", "List the dialects, or say which one a model speaks."),
        ("doctor", "doctor", "Find out what a model server can do, and how to use it."),
        ("eval", "eval.command:measure", "Measure tool-calling accuracy, and compare ways of asking the model."),
        ("keys", "keys", "Add, list, limit, expire and revoke the API keys of clients."),
        ("launch", "launch.command", "Start a coding agent on a model of the gateway."),
        ("parse", "parse", "Read what a model wrote: content, reasoning, calls."),
        ("render", "render", "Print the prompt of a request, as the model sees it."),
        ("replay", "replay", "Read recorded turns again, and print what differs."),
        ("serve", "serve", "Start the gateway."),
    )
)


class _Commands(click.Group):
    """A group that maps our errors to one line and an exit status: 2 if the caller can fix them, else 1."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if name == _SERVES:  # before its imports, which take a second
            ctx.call_on_close(hold_hangup())
        return name, command.load() if isinstance(command, LazyCommand) else command, rest

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (ConfigError, RequestError) as error:
            click.echo(" ".join((f"Error: {error}", *getattr(error, "__notes__", ()))), err=True)
            ctx.exit(2)
        except CallwrightError as error:
            click.echo(f"Error: {error}", err=True)
            ctx.exit(1)
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            click.echo(f"Error: Cannot write {error.filename or 'the output'}: {reason_of(error)}.", err=True)
            ctx.exit(1)


@click.group(
    cls=_Commands,
    commands=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="callwright", prog_name="callwright")
@click.pass_context
def main(context: click.Context) -> None:
    """OpenAI-grade tool calling for any model server."""
    if os.environ.get("NO_COLOR"):  # https://no-color.org; click does not know it
        context.color = False
