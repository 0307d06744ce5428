"""The size of objects: methods and attributes together, of a class with all its bases.

An object of more than 40 has more than one job. Those that still have more are listed with their size, which only
falls: lower it with the change that makes one smaller.
"""

import ast
import importlib
import inspect
from collections.abc import Iterator

from tests.project.test_house import modules

MOST = 40
TOO_LARGE = {
    "dialects.cohere_command5._Reader": 142,
    "dialects.minimax_m3._Reader": 139,
    "dialects.kimi_k3._Reader": 139,
    "dialects.readers.tagged_calls.TaggedReader": 137,
    "dialects.readers.key_values.KeyValueReader": 133,
    "dialects.laguna._Reader": 133,
    "dialects.hy_v3._Reader": 133,
    "dialects._dsml_reader.DsmlReader": 126,
    "dialects.muse._Reader": 124,
    "dialects.minicpm5._Reader": 120,
    "dialects.beam._Reader": 120,
    "dialects.step3._Reader": 119,
    "dialects.dots._Reader": 118,
    "dialects.readers.parameters.ParameterReader": 117,
    "dialects.inkling._Reader": 96,
    "dialects.kimi_k2._Reader": 94,
    "dialects.functionary_v32._Reader": 94,
    "dialects.readers.marked.MarkedReader": 93,
    "dialects.longcat._Reader": 93,
    "dialects.llama3_json._Reader": 93,
    "dialects.cohere_command_r._Reader": 93,
    "dialects._cohere.CohereReader": 93,
    "dialects.gemma4._Reader": 80,
    "dialects.readers.python_calls.PythonReader": 79,
    "dialects.readers.notation.NotationReader": 79,
    "dialects.pythonic._Reader": 79,
    "dialects.readers.prose.ProseReader": 67,
    "dialects.readers.literals.LiteralReader": 65,
    "dialects.readers.literal_strings.StringReader": 45,
    "gateway.app._Gateway": 44,
    "gateway.request_context.RequestContext": 42,
}


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
    grown = {name: size for name, size in large.items() if size > TOO_LARGE.get(name, MOST)}
    assert not grown, "split it: a part gets a source and a sink"
