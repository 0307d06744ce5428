"""The tools in a Python file of the user, for `callwright chat`.

Those made with `callwright.tool`, or else all public functions of the file with type hints, except `main`. Errors in
the file are reported with their line.
"""

import importlib.util
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final

from callwright.agent.tools import Tool, tool
from callwright.errors import ConfigError, RequestError

_MODULE: Final = "_callwright_chat_tools"
# A dict of this name holds the values of hidden parameters.
_HIDDEN: Final = "HIDDEN"


def load_tools(path: Path, number: int = 0) -> tuple[list[Tool], dict[str, Any]]:
    """The tools, in the order of the file, and the values for their hidden parameters. Raises `ConfigError`."""
    module = _run(path, f"{_MODULE}{number}")
    found = [value for value in vars(module).values() if isinstance(value, Tool)]
    if not found:
        found = [_make_tool(path, one) for one in vars(module).values() if _is_meant(one, module.__name__)]
    if not found:
        raise ConfigError(
            f"{path} has no tools: put @callwright.tool before its functions, or give public functions type hints."
        )
    hidden = getattr(module, _HIDDEN, {})
    values = dict(hidden) if isinstance(hidden, Mapping) else {}
    for one in found:
        for parameter in one.hidden:
            if parameter.source == "value" and not parameter.is_optional and parameter.name not in values:
                raise ConfigError(
                    f"{path}: the tool {one.name!r} has a hidden parameter {parameter.name!r} that nothing fills: add "
                    f"{_HIDDEN} = {{{parameter.name!r}: …}} to the file."
                )
    return list({one.name: one for one in found}.values()), values


def _run(path: Path, name: str) -> ModuleType:
    """Import the file, with its folder on the import path."""
    if path.suffix != ".py" or not path.is_file():
        got = "is none" if path.exists() else "is not there"
        raise ConfigError(f"--tools: expected a Python file such as tools.py, got {str(path)!r}, which {got}.")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and type hints need it there
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        if error.filename is None or Path(error.filename).name != path.name:
            raise ConfigError(f"{_where(path, error)}: {error}.") from error
        raise ConfigError(f"{path}:{error.lineno}: {error.msg}.") from error
    except (Exception, SystemExit) as error:
        raise ConfigError(f"{_where(path, error)}: {_words(error)}") from error
    return module


def _where(path: Path, error: BaseException) -> str:
    """The file, and the last line of it that ran."""
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).resolve() == path.resolve()
    ]
    return f"{path}:{lines[-1]}" if lines else str(path)


def _words(error: BaseException) -> str:
    words = str(error).rstrip(".")
    if isinstance(error, RequestError):
        return f"{words}."
    return f"{type(error).__name__}: {words}." if words else f"{type(error).__name__}."


def _is_meant(value: object, module: str) -> bool:
    return (
        isinstance(value, FunctionType)
        and value.__module__ == module
        and not value.__name__.startswith("_")
        and value.__name__ not in ("main", "<lambda>")
        and bool(value.__annotations__)
    )


def _make_tool(path: Path, function: FunctionType) -> Tool:
    try:
        return tool(function)
    except RequestError as error:
        raise ConfigError(f"{path}:{function.__code__.co_firstlineno}: {_words(error)}") from error
