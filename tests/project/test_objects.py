"""The size of objects and functions: methods and attributes of a class with all its bases, conditions of a function.

An object of more than 40 has more than one job; a function of more than 20 is read in parts.
"""

import ast
import importlib
import inspect
from collections.abc import Callable, Iterator

from tests.project.test_house import modules, path_of

MOST = 40
MOST_CONDITIONS = 20  # ruff's C901 counts statements only; here the conditions in them count, too
CONDITIONS = (
    *(ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.comprehension),
    *(ast.ExceptHandler, ast.Assert, ast.With, ast.AsyncWith, ast.match_case),
)
Record = Callable[[str, object], None]


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


def test_no_object_has_more_than_forty_methods_and_attributes(record_property: Record) -> None:
    sizes = {
        f"{found.__module__.removeprefix('callwright.')}.{found.__name__}": len(_members(found)) for found in _classes()
    }
    record_property("ceiling", ("methods and attributes of one object", max(sizes.values()), MOST))
    large = {name: size for name, size in sizes.items() if size > MOST}
    assert not large, "split it: a part gets a source and a sink"


def test_no_function_has_more_than_twenty_conditions(record_property: Record) -> None:
    found = {
        f"{name}.{node.name}": 1 + sum(map(_conditions, ast.walk(node)))
        for name in modules()
        for node in ast.walk(ast.parse(path_of(name).read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    record_property("ceiling", ("conditions of one function", max(found.values()), MOST_CONDITIONS))
    assert not {name: count for name, count in found.items() if count > MOST_CONDITIONS}


def _conditions(node: ast.AST) -> int:
    return len(node.values) - 1 if isinstance(node, ast.BoolOp) else isinstance(node, CONDITIONS)
