"""Optional packages: the extra of Callwright that brings each, and how to install it."""

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
    return ConfigError(f"{needed_by}: {package} is missing. Install it: {install_command(EXTRAS[package])}")


def install_command(extra: str) -> str:
    """The command that installs an extra: in a clone into the environment of this process, elsewhere from the package
    index.
    """
    if not (_CLONE / "pyproject.toml").is_file():
        return f"pip install 'callwright[{extra}]'"
    return f"{python_command()} -m pip install '{'.' if Path.cwd() == _CLONE else _CLONE}[{extra}]'"


def python_command() -> Path:
    """The Python of this process, as a command."""
    here, python = Path.cwd(), Path(sys.executable)
    return python.relative_to(here) if python.is_relative_to(here) else python
