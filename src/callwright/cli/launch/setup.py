"""The values that describe how an agent is set up: for what (`Target`), and with what (`Setup`)."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

# The variable in which agents find the gateway's key, and an argument that is replaced by its value.
KEY: Final = "CALLWRIGHT_KEY"
KEY_ARGUMENT: Final = f"${KEY}"
# Agents want some key, or they ask for a login.
ANY_KEY: Final = "any"
MAX_OUTPUT_TOKENS: Final = 32_000
_OUTPUT_SHARE: Final = 4  # of the window, this part may be an answer


class Variable(Struct, frozen=True):
    """A variable of the environment. `about` explains it if the name does not. `of` names the variable whose value it
    takes; None if it has a value of its own.
    """

    name: str
    value: str
    about: str = ""
    of: str | None = None

    def line(self) -> str:
        """The `export` line for a shell."""
        value = shlex.quote(self.value) if self.of is None else f'"${self.of}"'
        return f"export {self.name}={value}"


class Target(Struct, frozen=True, kw_only=True):
    """The gateway and model for an agent. `url` is the gateway without /v1. `windows` has the windows in tokens of all
    models that chat, the chosen `model` first. Files of the agent go into `folder`. `searches`: whether the gateway
    searches the web; None if that is not known.
    """

    url: str
    model: str
    windows: Mapping[str, int]
    folder: Path
    key_env: str | None = None
    simple: bool = False
    images: bool = False
    searches: bool | None = None

    @property
    def base(self) -> str:
        """The base URL of OpenAI's APIs."""
        return f"{self.url}/v1"

    @property
    def window(self) -> int:
        """The window of the chosen model, in tokens."""
        return self.windows[self.model]

    @property
    def output(self) -> int:
        """The longest answer, in tokens."""
        return longest_answer(self.window)

    def key(self, name: str = KEY) -> Variable:
        """A variable that holds the gateway's key."""
        return Variable(name, ANY_KEY, of=self.key_env)


class Setup(Struct, frozen=True, kw_only=True):
    """The setup of an agent: variables, files by their path below the folder, arguments, variables that it must not see
    (`unset`), and commands that run first (`before`).
    """

    variables: tuple[Variable, ...] = ()
    files: Mapping[str, str] = {}
    arguments: tuple[str, ...] = ()
    unset: tuple[str, ...] = ()
    before: tuple[tuple[str, ...], ...] = ()
    warnings: tuple[str, ...] = ()


def longest_answer(window: int) -> int:
    """The tokens of a window that one answer may take."""
    return min(MAX_OUTPUT_TOKENS, window // _OUTPUT_SHARE)
