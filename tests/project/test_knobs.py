"""The number of settings and options, from their declarations: each needs documentation, tests and an explanation."""

from typing import Final

import click

from callwright.cli import main
from callwright.gateway.config.schema import tables

# These only decrease. A value that users never set is a constant, and a comment explains the value.
MAX_SETTINGS: Final = 141
MAX_OPTIONS: Final = 111


def options() -> list[str]:
    """The options of all commands, `--help` apart."""
    commands: list[click.Command] = [main]
    with click.Context(main, info_name="callwright") as root:
        for name in main.list_commands(root):
            _, command, _ = main.resolve_command(root, [name])  # loaded, which `get_command` is not
            assert command is not None
            commands += [command, *(command.commands.values() if isinstance(command, click.Group) else ())]
    return [
        f"{command.name} {given.opts[0]}"
        for command in commands
        for given in command.params
        if isinstance(given, click.Option)
    ]


def test_there_are_no_more_settings() -> None:
    found = [f"{name}.{field}" for name, table in tables().items() for field in table.__struct_fields__]
    assert "ModelConfig.upstream" in found
    assert len(found) <= MAX_SETTINGS, found


def test_there_are_no_more_options() -> None:
    found = options()
    assert "serve --upstream" in found
    assert len(found) <= MAX_OPTIONS, found
