"""The size of objects: methods and attributes together, of a class with all its bases.

An object of more than 40 has more than one job.
"""

import ast
import importlib
import inspect
from collections.abc import Iterator

from tests.project.test_house import modules

MOST = 40


def _classes() -> Iterator[type]:
    for name in modules():
        try:
            module = importlib.import_module(f"callwright.{name}")
        except ImportError:  # an extra that is not installed
            continue
        yield from (
            found for found in vars(module).values() if inspect.isclass(found) and found.__module__ == module.__name__
        )


def _members(class_: type) -> set[str]:
    """The names of the methods and attributes of a class, and of its bases in this package."""
    names: set[str] = set()
    for base in class_.__mro__:
        if base.__module__.startswith("callwright."):
            names |= {name for name in vars(base) if not name.startswith("__")}
            names |= _assigned(base)
    return names


def _assigned(class_: type) -> set[str]:
    """The attributes that the methods of a class set on their object."""
    try:
        tree = ast.parse(inspect.cleandoc(f"\n{inspect.getsource(class_)}"))
    except (OSError, SyntaxError, IndentationError):
        return set()
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    }


def test_no_object_has_more_than_forty_methods_and_attributes() -> None:
    sizes = {
        f"{found.__module__.removeprefix('callwright.')}.{found.__name__}": len(_members(found)) for found in _classes()
    }
    large = {name: size for name, size in sizes.items() if size > MOST}
    assert not large, "split it: a part gets a source and a sink"
