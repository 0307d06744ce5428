"""One module per target: `run(draw)` draws an input, and raises where something does not hold that must.

The module's docstring says what is read and what must hold. There is no registry: the file name is the target's name.
"""

import importlib
import pkgutil
from collections.abc import Callable
from typing import TypeAlias

from tests.support.choices import Choices

__all__ = ["Target", "load", "names"]

Target: TypeAlias = Callable[[Choices], None]


def names() -> list[str]:
    """The names of all targets."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def load(name: str) -> Target:
    """The target of this name."""
    found: Target = importlib.import_module(f"fuzz.targets.{name}").run
    return found
