"""`callwright launch`: set up an agent for a model of the gateway, and become it."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from callwright.cli.launch.agents import AGENTS, Agent
from callwright.cli.launch.gateway import DEFAULT_WINDOW, URL, Listing, check_model, list_models, root_of
from callwright.cli.launch.setup import KEY_ARGUMENT, Setup, Target
from callwright.cli.options import state_folder
from callwright.cli.terminal import is_terminal
from callwright.errors import ConfigError, did_you_mean

_VARIABLE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# A file in each folder that was written by this command.
_MARK: Final = ".callwright"
_MARKED: Final = "Files here are written by `callwright launch`.\n"
_END: Final = "CALLWRIGHT_END"


@click.command()
@click.argument("agent", required=False, metavar="[AGENT]", shell_complete=lambda *_: list(AGENTS))
@click.argument("arguments", nargs=-1, metavar="[-- ARGUMENTS]")
@click.option("--model", metavar="NAME", help="The model; without it you choose, or it is the first that chats.")
@click.option("--url", metavar="URL", default=URL, show_default=True, help="The gateway, with or without /v1.")
@click.option("--print", "prints", is_flag=True, help="Print a shell script that sets the agent up; start nothing.")
@click.option(
    "--context-window",
    type=click.IntRange(8_192, 100_000_000),
    metavar="TOKENS",
    help=f"The model's window; agents summarize before it is full.  [default: the gateway's, else {DEFAULT_WINDOW}]",
)
@click.option("--key-env", metavar="VAR", help="Environment variable that holds the gateway's API key.")
@click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder for the agent's configuration.  [default: ~/.local/state/callwright/launch/AGENT]",
)
@click.option("--images", is_flag=True, help="The model sees images (codex, opencode, kilo, pi).")
@click.option("--simple", is_flag=True, help="Only three tools, for small windows and small models (claude).")
def launch(
    agent: str | None,
    arguments: tuple[str, ...],
    model: str | None,
    url: str,
    prints: bool,
    context_window: int | None,
    key_env: str | None,
    home: Path | None,
    images: bool,
    simple: bool,
) -> None:
    """Start a coding agent on a model of the gateway. Your own configuration of the agent is not changed.

    AGENT is one of: claude, codex, opencode, qwen, cline, continue, vibe, crush, pi, kilo, aider, mini, gptme.
    Arguments after -- are passed to it.

    \b
    Examples:
      callwright launch
      callwright launch claude --model simulated -- -p "Run the command 'echo hello'"
      callwright launch codex --model simulated --print
    """
    name = _chosen_agent(agent)
    chosen = AGENTS[name]
    for option, given in (("images", images), ("simple", simple)):
        if given and option not in chosen.options:
            takes = ", ".join(known for known, one in AGENTS.items() if option in one.options)
            raise ConfigError(f"--{option}: {chosen.shown} has no such setting; {takes} can have it.")
    if not prints:
        _check_installed(name, chosen)
    root = root_of(url)
    listing = list_models(root, _key(key_env, needed=not prints))
    model = _chosen_model(model, root, listing)
    folder = (home or state_folder() / "launch" / name).absolute()
    target = Target(
        url=root,
        model=model,
        windows=_windows(model, listing, context_window),
        folder=folder,
        key_env=key_env,
        simple=simple,
        images=images,
        searches=listing.searches,
    )
    setup = chosen.setup(target)
    for warning in setup.warnings:
        click.echo(f"Warning: {warning}", err=True)
    command = (chosen.program, *setup.arguments, *arguments)
    if prints:
        click.echo(_script(setup, folder, command), nl=False)
    else:
        _write(folder, setup.files)
        _start(chosen, setup, command)


# --- choosing ---


def _chosen_agent(agent: str | None) -> str:
    """The name of an agent of the table. Raises `ConfigError`."""
    if agent in AGENTS:
        return str(agent)
    known = ", ".join(AGENTS)
    if agent is not None:
        raise ConfigError(f"{agent!r} is not an agent that is known here.{did_you_mean(agent, AGENTS)} Known: {known}.")
    if not is_terminal(sys.stdin):
        raise ConfigError(f"Which agent? `callwright launch claude`, for example. Known: {known}.")
    there = {name: shutil.which(one.program) is not None for name, one in AGENTS.items()}
    names = sorted(AGENTS, key=lambda name: not there[name])
    shown = [f"{AGENTS[name].shown}{'' if there[name] else '  (not installed)'}" for name in names]
    return names[_picked("Agent", shown)]


def _chosen_model(given: str | None, root: str, listing: Listing) -> str:
    """The name of the model. Raises `ConfigError`."""
    if given is not None:
        if warning := check_model(given, root, listing):
            click.echo(f"Warning: {warning}", err=True)
        return given
    if not listing.chat:
        others = f"None of the models of the gateway at {root} can chat: {', '.join(listing.others)}."
        raise ConfigError(listing.fault or others)
    names = list(listing.chat)
    if len(names) == 1 or not is_terminal(sys.stdin):
        return names[0]
    return names[_picked("Model", [f"{name}{_shown_window(window)}" for name, window in listing.chat.items()])]


def _shown_window(window: int | None) -> str:
    return f"  ({window:,} tokens)" if window else ""


def _picked(what: str, choices: Sequence[str]) -> int:
    """The index of the choice that the user picks in the terminal."""
    for number, choice in enumerate(choices, 1):
        click.echo(f"{number:3}  {choice}", err=True)
    number = click.prompt(what, type=click.IntRange(1, len(choices)), default=1, err=True)
    return int(number) - 1


def _windows(model: str, listing: Listing, given: int | None) -> dict[str, int]:
    """The windows of all models that chat, in tokens, the chosen one first."""
    known = {model: listing.chat.get(model), **listing.chat}
    return {name: given or window or DEFAULT_WINDOW for name, window in known.items()}


def _key(name: str | None, *, needed: bool) -> str:
    """The value of the variable that is named for the key. Raises `ConfigError`."""
    if name is None:
        return ""
    if not _VARIABLE_NAME.fullmatch(name):
        raise ConfigError(f"--key-env: expected the name of an environment variable, got {name!r}.")
    if needed and not os.environ.get(name):
        raise ConfigError(f"--key-env: the environment variable {name} is not set.")
    return os.environ.get(name, "")


# --- printing, or writing and starting ---


def _check_installed(name: str, agent: Agent) -> None:
    if shutil.which(agent.program) is None:
        raise ConfigError(
            f"{agent.shown} is not installed: `{agent.program}` is not on the PATH. Install it with "
            f"`{agent.install}`, or see its setup with `callwright launch {name} --print`."
        )


def _script(setup: Setup, folder: Path, command: Sequence[str]) -> str:
    """A POSIX shell script that sets the agent up in the shell that reads it. It ends with the command as a comment,
    so that it can be sourced.
    """
    lines: list[str] = []
    if setup.files:
        lines.append(f"mkdir -p {shlex.quote(str(folder))}")
    for name, text in _marked(setup.files).items():
        lines += [f"cat > {shlex.quote(str(folder / name))} <<'{_END}'", *text.removesuffix("\n").split("\n"), _END]
    for one in setup.variables:
        lines += [f"# {one.about}"] * bool(one.about) + [one.line()]
    lines += [f"unset {name}" for name in setup.unset]
    lines += [_shell_words(words) for words in setup.before]
    return "\n".join((*lines, f"# Then start it: {_shell_words(command)}", ""))


def _shell_words(words: Sequence[str]) -> str:
    return " ".join(f'"{word}"' if word == KEY_ARGUMENT else shlex.quote(word) for word in words)


def _write(folder: Path, files: Mapping[str, str]) -> None:
    """Write the files over earlier ones of ours. Raises `ConfigError` for files of the user's."""
    if not files:
        return
    try:
        is_marked = (folder / _MARK).exists()
        for name in files:
            if os.path.lexists(folder / name) and not is_marked:
                raise ConfigError(f"{folder / name} exists, and not by `callwright launch`. Choose another --home.")
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in _marked(files).items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"Cannot write into {folder}: {error.strerror}.") from error


def _marked(files: Mapping[str, str]) -> dict[str, str]:
    return {**files, _MARK: _MARKED} if files else {}


def _start(agent: Agent, setup: Setup, command: Sequence[str]) -> None:
    """Replace this process by the agent. Raises `ConfigError` if it cannot be started."""
    environment = {name: value for name, value in os.environ.items() if name not in setup.unset}
    environment |= {one.name: os.environ[one.of] if one.of else one.value for one in setup.variables}
    key = next((environment[one.name] for one in setup.variables if f"${one.name}" == KEY_ARGUMENT), "")
    try:
        for words in setup.before:
            done = subprocess.run(
                [key if word == KEY_ARGUMENT else word for word in words], env=environment, check=False
            )
            if done.returncode:
                raise ConfigError(f"`{_shell_words(words)}` failed with exit status {done.returncode}.")
        os.execvpe(command[0], list(command), environment)
    except OSError as error:
        raise ConfigError(
            f"`{command[0]}` cannot be started: {error.strerror}. Is {agent.shown} installed as `{agent.install}` does?"
        ) from error
