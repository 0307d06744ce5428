"""Lists the regular expressions that the package compiles and those it searches with, and finds those that some Pythons
match wrongly.
"""

import importlib
import json
import pkgutil
import re
import sys
from collections.abc import Iterable, Iterator
from re import _compiler, _constants, _parser  # type: ignore[attr-defined]
from typing import Any

_SEARCHES = ("search", "findall", "finditer", "sub", "split")
_ONE_CHARACTER = (_constants.LITERAL, _constants.NOT_LITERAL, _constants.ANY, _constants.IN)


def unsafe_repeats(pattern: str, flags: int = 0) -> list[str]:
    """Errors in the possessive quantifiers of a pattern, a sentence each."""
    return list(_unsafe(_parser.parse(pattern, flags)))


def _unsafe(parsed: Any) -> Iterator[str]:
    for kind, value in parsed:
        if kind is _constants.POSSESSIVE_REPEAT:
            _, most, body = value
            items = list(body)
            if _fails(items[:1]):  # never matches, and has not moved when it fails
                pass
            elif not (len(items) == 1 and items[0][0] in (*_ONE_CHARACTER, _constants.BRANCH)):
                yield "a group with a possessive quantifier must end with `|(?!)`: write `(?:…|(?!))*+` for `(?:…)*+`"
            elif items[0][0] is _constants.BRANCH and not _fails(items[0][1][1][-1]):
                yield "the last alternative under a possessive quantifier must be `(?!)`: `(?:…|…|(?!))*+`"
            if most != 1 and any(kind is _constants.SUBPATTERN and inner[0] for kind, inner in _all(items)):
                yield "no group under a possessive quantifier may capture: write `(?:…)`"
        for inner in _inner(value):
            yield from _unsafe(inner)


def _fails(parsed: Iterable[Any]) -> bool:
    """Whether a pattern is `(?!)`, which Python 3.11 and later ones parse differently."""
    items = [(kind, kind is _constants.ASSERT_NOT and len(value[1]) == 0) for kind, value in parsed]
    return items in ([(_constants.ASSERT_NOT, True)], [(_constants.FAILURE, False)])


def _all(parsed: Any) -> Iterator[tuple[Any, Any]]:
    for kind, value in parsed:
        yield kind, value
        for inner in _inner(value):
            yield from _all(inner)


def _inner(value: Any) -> Iterator[Any]:
    """The parts of an item of the parse tree that are patterns of their own."""
    if isinstance(value, _parser.SubPattern):
        yield value
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _inner(part)


def main() -> None:
    """Load every module, let every dialect write and read. Print the patterns compiled in between as JSON, and again
    those of module constants like `re.compile(…).findall`.
    """
    found: dict[tuple[str, int], str] = {}
    compile_pattern = _compiler.compile

    def recorded(pattern: Any, flags: int = 0) -> Any:
        frame = sys._getframe(1)
        while frame.f_back and frame.f_code.co_filename.endswith((re.__file__, "functools.py")):
            frame = frame.f_back
        module = frame.f_globals["__name__"]
        if isinstance(pattern, str) and module.startswith("callwright"):
            found.setdefault((pattern, int(flags)), f"{module}:{frame.f_lineno}")
        return compile_pattern(pattern, flags)

    _compiler.compile = recorded
    import callwright

    for module in pkgutil.walk_packages(callwright.__path__, "callwright."):
        if module.name not in sys.argv[1:]:
            importlib.import_module(module.name)
    tools = [
        {"type": "function", "function": {"name": "look_up", "parameters": {"properties": {"of": {"type": "string"}}}}},
        {"type": "custom", "custom": {"name": "shell"}},
    ]
    for dialect in callwright.dialects():
        calls = [
            {"name": "look_up", "arguments": {"of": 'a "word"\n'}},
            {"name": "shell", "arguments": {"input": "ls"}},
        ]
        text = callwright.write(calls, dialect=dialect)
        for size in (7, len(text)):
            parser = callwright.Parser(dialect, tools=tools)
            for begin in range(0, len(text), size):
                parser.feed(text[begin : begin + size])
            parser.finish()
    compiled = [(where, *pattern) for pattern, where in found.items()]
    json.dump({"compiled": compiled, "searched": list(_searched())}, sys.stdout)


def _searched() -> Iterator[tuple[str, str, int]]:
    for name, module in list(sys.modules.items()):
        if name.startswith("callwright"):
            for constant, value in vars(module).items():
                pattern = getattr(value, "__self__", None)
                if isinstance(pattern, re.Pattern) and value.__name__ in _SEARCHES and isinstance(pattern.pattern, str):
                    yield f"{name}:{constant}", pattern.pattern, pattern.flags


if __name__ == "__main__":
    main()
