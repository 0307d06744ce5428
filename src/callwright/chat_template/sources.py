"""Reads chat templates from their sources: a Jinja file, `tokenizer_config.json`, a model's folder, a GGUF file.

Sources: the format of `tokenizer_config.json`, huggingface.co/docs/transformers/chat_templating; of GGUF, the page that
`callwright.upstreams.embedded.gguf` names.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from callwright.errors import ConfigError
from callwright.upstreams.embedded.gguf import CONTROL, PACKAGED, GgufFile, is_file, packaged_file, read_gguf

_USER_DEFINED: Final = 4
_FOLDER_FILES: Final = ("chat_template.jinja", "chat_template.json")
_TOKENIZER: Final = "tokenizer_config.json"
# Of several templates the one for tools counts.
_NAMES: Final = ("tool_use", "default")


class ChatTemplate(Struct, frozen=True):
    """A chat template, and its tokenizer's tokens: the two that are passed to it, and the control
    tokens.
    """

    template: str
    bos_token: str = ""
    eos_token: str = ""
    tokens: tuple[str, ...] = ()


def read_template(path: Path) -> ChatTemplate:
    """The template in a file or a folder. Raises `ConfigError` without one."""
    if path.is_dir():
        return _of_folder(path)
    if is_file(str(path)):
        return template_of_file(read_gguf(packaged_file(str(path)) if str(path) in PACKAGED else path))
    text = _text(path)
    if path.suffix != ".json":
        return ChatTemplate(text)
    return _of_config(_object(text, path), path)


def template_of_file(file: GgufFile) -> ChatTemplate:
    """The template of a GGUF file. Raises `ConfigError` if it has none."""
    if not file.template:
        raise ConfigError(f"{file.path} holds no chat template.")
    kinds = dict(zip(file.tokens, file.kinds, strict=False))
    tokens = tuple(token for token, kind in kinds.items() if kind in (CONTROL, _USER_DEFINED) and token.strip())
    return ChatTemplate(file.template, _token(file, file.begin), _token(file, file.end), tokens)


def _token(file: GgufFile, number: int | None) -> str:
    return file.tokens[number] if number is not None and 0 <= number < len(file.tokens) else ""


def _of_folder(folder: Path) -> ChatTemplate:
    tokenizer = folder / _TOKENIZER
    config = _object(_text(tokenizer), tokenizer) if tokenizer.is_file() else {}
    for name in _FOLDER_FILES:
        if (folder / name).is_file():
            found = read_template(folder / name)
            return _of_config({**config, "chat_template": found.template}, folder)
    return _of_config(config, tokenizer if config else folder)


def _of_config(config: Mapping[str, Any], path: Path) -> ChatTemplate:
    given = config.get("chat_template")
    if isinstance(given, list):
        named = {each.get("name"): each.get("template") for each in given if isinstance(each, dict)}
        given = next((named[name] for name in _NAMES if name in named), None)
    if not isinstance(given, str):
        raise ConfigError(f"{path} holds no chat template.")
    added = config.get("added_tokens_decoder")
    tokens = [_word(each) for each in added.values()] if isinstance(added, dict) else []
    begin, end = _word(config.get("bos_token")), _word(config.get("eos_token"))
    return ChatTemplate(given, begin, end, tuple(word for word in tokens if word.strip()))


def _word(given: Any) -> str:
    """A token: its text, or an object that holds it."""
    value = given.get("content") if isinstance(given, dict) else given
    return value if isinstance(value, str) else ""


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"Cannot read the chat template {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not text: {error}.") from error


def _object(text: str, path: Path) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid JSON: {error}.") from error
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: expected a JSON object, got {type(value).__name__}.")
    return value
