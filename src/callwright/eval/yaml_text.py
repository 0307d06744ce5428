"""Reads YAML as JSON values, with PyYAML: `no`, `010` and a date are texts, and duplicate keys are errors.

PyYAML follows YAML 1.1, in which `no` is false, `12:30` the number 750 and `2031-05-04` a date; the expectations of a
case would then differ from those written in the file.
"""

import re
from typing import Any, Final

from callwright.settings.extras import missing_package
from callwright.tolerant_json.codec import decode, encode

# The type of a plain scalar by its form, and the characters that such a form begins with. All else is a text.
_FORMS: Final = (
    ("null", r"null|~|", "n~"),
    ("bool", r"true|false", "tf"),
    ("int", r"-?(0|[1-9][0-9]*)", "-0123456789"),
    ("float", r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?", "-0123456789"),
)


class NotYamlError(ValueError):
    """The text is not valid YAML, or has no equivalent in JSON; the message has the position."""


def read_yaml(text: str, needed_by: str) -> Any:
    """The value of a YAML document, as JSON would give it. `needed_by`: the feature to name in the `ConfigError` if
    PyYAML is not installed. Raises `NotYamlError` and `ConfigError`.
    """
    try:
        import yaml
    except ImportError as error:
        raise missing_package("pyyaml", needed_by) from error
    loader = yaml.SafeLoader(text)
    loader.yaml_implicit_resolvers = _resolvers()
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _check_keys(node, set())
        return decode(encode(loader.construct_document(node)))
    except yaml.YAMLError as error:
        raise NotYamlError(" ".join(str(error).split())) from error
    except (TypeError, RecursionError) as error:
        raise NotYamlError("it has a value that JSON has not") from error
    finally:
        loader.dispose()


def _resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    found: dict[str, list[tuple[str, re.Pattern[str]]]] = {"": [("tag:yaml.org,2002:null", re.compile(r"\Z"))]}
    for name, form, begins in _FORMS:
        for begin in begins:
            found.setdefault(begin, []).append((f"tag:yaml.org,2002:{name}", re.compile(rf"(?:{form})\Z")))
    return found


def _check_keys(node: Any, seen: set[int]) -> None:
    """Raise `NotYamlError` for a duplicate key: PyYAML would take the last. Nodes with aliases are checked once."""
    if id(node) in seen or node.id == "scalar":
        return
    seen.add(id(node))
    if node.id == "sequence":
        for one in node.value:
            _check_keys(one, seen)
        return
    keys: set[str] = set()
    for key, value in node.value:
        if key.id != "scalar":
            raise NotYamlError(f"line {key.start_mark.line + 1}: expected a text as key, got a {key.id}")
        if key.value in keys:
            raise NotYamlError(f"line {key.start_mark.line + 1}: the key {key.value!r} is there twice")
        keys.add(key.value)
        _check_keys(value, seen)
