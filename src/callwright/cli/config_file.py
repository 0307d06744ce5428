"""Writes a new configuration file, which never replaces another one, or changes an existing one."""

import codecs
import errno
import os
import shlex
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import click
import msgspec

from callwright.cli.served_table import Looked
from callwright.doctor.recommend import Advice, advice, toml_table
from callwright.errors import ConfigError, reason_of
from callwright.gateway.access.keys import Keys
from callwright.gateway.config.config import ANY_MODEL, Config, ModelConfig, parse_config, servers_of
from callwright.upstreams.base_urls import without_credentials

try:
    import fcntl
except ImportError:  # missing on Windows, where only one command at a time may change a file
    fcntl = None  # type: ignore[assignment]


def refuse_existing(file: Path) -> None:
    """Raises `ConfigError` if the file of `--write` exists. Called before any server is asked."""
    if os.path.lexists(file):
        raise ConfigError(f"--write: {file} exists already. Name another file, or move it away.")


def write_config(file: Path, lines: Sequence[str]) -> None:
    """Write the lines to a new file and print the command that uses it. Raises `ConfigError`."""
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write("\n".join((*lines, "")))
    except OSError as error:
        raise ConfigError(f"Cannot write {file}: {error.strerror}.") from error
    click.echo(f"Wrote {file}. Start the gateway with:\n  callwright serve --config {shlex.quote(str(file))}", err=True)


def change_config(file: Path, change: Callable[[str, Config], str]) -> Config:
    """Replace the text of a configuration file by the result of `change`, a function of the text and the configuration.
    Returns the new configuration. The file is changed as a whole or, after an error, not at all. Raises `ConfigError`.
    """
    try:
        with _lock(file) as path:
            content = path.read_bytes()
            mark = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
            config = parse_config(content, file)
            changed = mark + change(content.removeprefix(mark).decode(), config).encode()
            config = parse_config(changed, file)
            Keys(config.keys, [model.name for model in config.models])
            _replace(path, changed)
    except OSError as error:
        raise ConfigError(f"Cannot change {file}: {reason_of(error)}.") from error
    return config


@contextmanager
def _lock(file: Path) -> Iterator[Path]:
    """Resolve symbolic links and lock the file. Waits for other commands; each replaces the file, so that the next
    one must lock the new one.
    """
    while True:
        path = Path(os.path.realpath(file))
        if fcntl is None:
            yield path
            return
        with path.open("r+b") as opened:
            fcntl.flock(opened, fcntl.LOCK_EX)
            if os.path.samestat(os.fstat(opened.fileno()), path.stat()):
                yield path
                return


def _replace(path: Path, content: bytes) -> None:
    """Replace a file by one with this content and the same owner and mode. It survives a crash of the machine."""
    known = path.stat()
    descriptor, half = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(descriptor, "wb") as written:
            written.write(content)
            written.flush()
            if fcntl is not None and (known.st_uid, known.st_gid) != (os.getuid(), os.getgid()):
                os.chown(half, known.st_uid, known.st_gid)
            os.chmod(half, stat.S_IMODE(known.st_mode))
            os.fsync(descriptor)
        os.replace(half, path)
    except BaseException as error:
        os.unlink(half)
        if not isinstance(error, OSError) or error.errno != errno.EBUSY:
            raise
        _overwrite(path, content)  # a file that is mounted alone, as in a container, cannot be replaced
        return
    if fcntl is not None:
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _overwrite(path: Path, content: bytes) -> None:
    """Write the content into the file itself, or after an error the one that it had."""
    with path.open("r+b") as opened:
        before = opened.read()
        try:
            _write(opened, content)
        except BaseException:
            _write(opened, before)
            raise


def _write(opened: BinaryIO, content: bytes) -> None:
    opened.seek(0)
    opened.write(content)
    opened.truncate()
    opened.flush()
    os.fsync(opened.fileno())


def advised_table(advised: Advice) -> Iterator[str]:
    """The `[[models]]` table that is recommended, after its reasons as comments."""
    yield from (f"# {name}: {it.value}: {' '.join(it.reason.split())}" for name, it in advised.choices.items())
    yield advised.toml


def served_config(
    models: Sequence[ModelConfig], looked: Looked, tables: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    """The lines of a configuration for what `callwright serve` was given and found out. `tables` are its other tables,
    such as `server`; settings without a value are left out.
    """
    for name, table in tables.items():
        if settings := {key: value for key, value in table.items() if value not in (None, "")}:
            yield from (toml_table(f"[{name}]", settings), "")
    for given in models:
        if any(url != without_credentials(url) for url in servers_of(given)):
            raise ConfigError("--write: the URL has a password, which no file should have. Give the key by --key-env.")
        advised = [advice(found, api_key_env=given.api_key_env) for found, _ in looked.get(given.name, ())]
        pinned = [one for one in advised if one.toml] if given.template is None else []
        for one in pinned:
            yield from (*advised_table(one), "")
        if not pinned or given.name == ANY_MODEL:
            if pinned:
                yield "# Every other model of this server: chosen when it is first used."
            yield from (toml_table("[[models]]", _settings(given)), "")


def _settings(given: ModelConfig) -> dict[str, Any]:
    """The settings that differ from the defaults."""
    defaults = msgspec.to_builtins(ModelConfig(name=given.name, upstream=given.upstream))
    settings = msgspec.to_builtins(given)
    return {name: value for name, value in settings.items() if name in ("name", "upstream") or value != defaults[name]}
