"""Records the prompts that the models' own chat templates make of our conversations.

`templates.toml` says which templates, of which dialect, and what they are told. They are read out of the archives of
published packages and run the way the library transformers runs them. Only the prompts are kept, never a template.
Run by `scripts/oracle`.
"""

import hashlib
import json
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedEnvironment

from tests.oracle.asking import CONVERSATIONS, FOLDER, Told, behind
from tests.oracle.detecting import RECORD, WANTED, ask, wanted_templates
from tests.oracle.probing import PROBED, probe

__all__ = ["RefusedError", "main", "prompt_of"]

CACHE = FOLDER.parent.parent / ".oracle"
NOW = datetime(2026, 2, 3, 12, 30)


class RefusedError(Exception):
    """A template raised its own error."""


class _Generation(Extension):
    """The block in which templates mark what a model wrote; its text stays."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return list(parser.parse_statements(("name:endgeneration",), drop_needle=True))


def prompt_of(template: str, told: Told, given: Mapping[str, Any], *, mutable: bool = False) -> str:
    """The prompt that a chat template makes, up to where the model answers. `given` are its other variables;
    `mutable`: it changes lists, which transformers forbids and other engines allow.

    Raises `RefusedError` when the template refuses the conversation, with its words.
    """
    kind = SandboxedEnvironment if mutable else ImmutableSandboxedEnvironment
    environment = kind(trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols])
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = NOW.strftime
    names = {"bos_token": "", "eos_token": "", "documents": None, **given}
    try:
        return environment.from_string(template).render(
            messages=told.messages(), tools=told.tools(), add_generation_prompt=True, **names
        )
    except (TemplateError, TypeError) as error:
        raise RefusedError(f"{type(error).__name__}: {error}") from error


def _refuse(message: str) -> None:
    raise TemplateError(message)


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def main(archives: list[str]) -> None:
    """Write a record for each dialect. `archives`: those of the packages; one that is not named is downloaded."""
    wanted = tomllib.loads((FOLDER / "templates.toml").read_text(encoding="utf-8"))
    sources = {name: _Source(name, version, archives) for name, version in wanted["packages"].items()}
    records: dict[str, list[dict[str, Any]]] = {}
    for entry in wanted["templates"]:
        source = sources[entry["package"]]
        text = source.read(entry["file"])
        made = _prompts(text.decode(), entry)
        where = {"package": f"{source.name} {source.version}", "sha256": hashlib.sha256(text).hexdigest()}
        records.setdefault(entry["dialect"], []).append({"template": entry["file"], **where, **made})
    for dialect, found in records.items():
        path = FOLDER / f"{dialect}.json"
        path.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    probed = [
        {"dialect": entry["dialect"], "template": Path(entry["file"]).stem, **probe(_read(sources, entry), {})}
        for entry in wanted["templates"]
    ]
    PROBED.write_text(json.dumps(probed, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
    sources |= {
        name: _Source(name, version, archives) for name, version in WANTED["packages"].items() if name not in sources
    }
    RECORD.write_text(json.dumps(_detected(sources), ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
    print(f"{len(wanted['templates'])} templates of {len(records)} dialects")


def _detected(sources: Mapping[str, "_Source"]) -> list[dict[str, Any]]:
    """What the templates of detection.toml make of the probes; those that make the same together."""
    kept: dict[str, dict[str, Any]] = {}
    for right, package, file in wanted_templates():
        text = sources[package].read(file)
        asked = ask(text.decode())
        one = kept.setdefault(json.dumps([right, asked]), {"right": right, "templates": [], **asked})
        source = f"{package} {sources[package].version}"
        one["templates"].append(f"{source} {Path(file).stem} {hashlib.sha256(text).hexdigest()[:12]}")
    return [*kept.values()]


def _read(sources: Mapping[str, "_Source"], entry: Mapping[str, Any]) -> str:
    return sources[entry["package"]].read(entry["file"]).decode()


def _prompts(template: str, entry: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    prompts, refused = {}, {}
    for name in CONVERSATIONS:
        forms = {key: entry[key] for key in ("reasoning", "ids", "named", "system") if key in entry}
        told = Told(name, **forms, objects=not entry.get("texts", False))
        try:
            prompt = prompt_of(template, told, entry.get("given", {}), mutable=entry.get("mutable", False))
            prompts[name] = behind(prompt, entry.get("behind", ""))
        except RefusedError as error:
            refused[name] = str(error)
    return {"prompts": prompts, "refused": refused}


class _Source:
    """The archive of a package."""

    def __init__(self, name: str, version: str, archives: list[str]) -> None:
        self.name, self.version = name, version
        named = [Path(path) for path in archives if Path(path).name.startswith(f"{name}-{version}")]
        self.path = named[0] if named else self._downloaded()
        self._read: Callable[[str], bytes] = self._wheel() if self.path.suffix == ".whl" else self._sdist()

    def read(self, file: str) -> bytes:
        """A file of the package, by its path inside the archive; that of an sdist without the first folder."""
        return self._read(file)

    def _downloaded(self) -> Path:
        found = [path for path in CACHE.glob(f"{self.name}-{self.version}*") if path.is_file()]
        if not found:
            CACHE.mkdir(exist_ok=True)
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(CACHE)]
            subprocess.run([*command, "--no-binary", self.name, f"{self.name}=={self.version}"], check=True)
            found = list(CACHE.glob(f"{self.name}-{self.version}*"))
        return found[0]

    def _wheel(self) -> Callable[[str], bytes]:
        return zipfile.ZipFile(self.path).read

    def _sdist(self) -> Callable[[str], bytes]:
        with tarfile.open(self.path) as archive:
            files = {
                member.name.partition("/")[2].removeprefix("src/"): opened.read()
                for member in archive
                if member.name.endswith(".jinja") and (opened := archive.extractfile(member))
            }
        return files.__getitem__


if __name__ == "__main__":
    main(sys.argv[1:])
