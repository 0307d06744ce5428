"""Optional packages: the extra of Callwright that brings each, and how to install it.

Callwright is on no package index, so the error message has a command for its clone.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from callwright.errors import ConfigError

# The extra of pyproject.toml that brings a package, by the name that it is imported by.
EXTRAS: Final[Mapping[str, str]] = {
    "daft": "daft",
    "google-re2": "templates",
    "jinja2": "templates",
    "mcp": "mcp",
    "psycopg": "postgres",
    "pyarrow": "parquet",
    "pyyaml": "yaml",
    "ray": "ray",
    "xllamacpp": "embedded",
}
_CLONE: Final = Path(__file__).parents[3]


def missing_package(package: str, needed_by: str) -> ConfigError:
    """The error for a package of an extra that is not installed. `needed_by` is its prefix, as in `model.gguf`."""
    where = "" if _has_clone() else ", in the folder of Callwright's clone"
    return ConfigError(f"{needed_by}: {package} is missing. Install it: {install_command(EXTRAS[package])}{where}")


def install_command(extra: str) -> str:
    """The command that installs an extra into the environment of this process.

    Works unchanged if this runs from a clone, else in the folder of one.
    """
    clone = "." if Path.cwd() == _CLONE or not _has_clone() else _CLONE
    return f"{python_command()} -m pip install '{clone}[{extra}]'"


def python_command() -> Path:
    """The Python of this process, as a command."""
    here, python = Path.cwd(), Path(sys.executable)
    return python.relative_to(here) if python.is_relative_to(here) else python


def _has_clone() -> bool:
    return (_CLONE / "pyproject.toml").is_file()
