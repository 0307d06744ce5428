"""What each dialect, and each name that it claims, is held against: encoders, templates, or what its source names.

Nothing is listed here. It is put together of the templates and reasons in `templates.toml`, of the public templates
in `detection.toml` and of each dialect's `source`. `python -m tests.oracle.held` writes its table in
`docs/contributing/oracles.md`.
"""

import re
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from callwright.chat_template.recognise import Recognised, recognise_by_rendering
from callwright.dialects.base import dialect_names, get_dialect
from callwright.errors import ConfigError
from tests.oracle.asking import FOLDER
from tests.oracle.detecting import Asked, read_asked
from tests.support.paths import ROOT

__all__ = [
    "ENCODERS",
    "MARK",
    "PAGE",
    "TEMPLATES",
    "Public",
    "encoder_of",
    "is_named",
    "oracle_table",
    "public_templates",
]

TEMPLATES: Final[list[dict[str, Any]]] = tomllib.loads((FOLDER / "templates.toml").read_text(encoding="utf-8"))[
    "templates"
]
# Encoders that makers of models publish. The dialects' sources name them.
ENCODERS: Final = ("cohere-melody", "deepseek-recipe", "mistral-common")
PAGE: Final = ROOT / "docs" / "contributing" / "oracles.md"
MARK: Final = "<!-- oracles -->\n\n"
_POINT: Final = re.compile(r"(?<=\d)_(?=\d)")
_SPACES: Final = re.compile(r"[-_\s/]")
_TITLE: Final = "| dialect | prompts are compared with | calls | not exact |\n|---|---|---|---|\n"


class Public(Struct, frozen=True):
    """A public template: its package, its name, its recorded prompts, and the dialect that is recognised."""

    package: str
    name: str
    asked: Asked
    found: Recognised | None


@cache
def public_templates() -> tuple[Public, ...]:
    """The recorded templates. Of those that are the same each is one."""
    return tuple(
        Public(package, name, asked, found)
        for asked in read_asked()
        for found in [_found(asked)]
        for package, _, name, _ in map(str.split, asked.templates)
    )


def encoder_of(dialect: str) -> str | None:
    """The encoder of the models' maker that a dialect is held against, with its version."""
    found = re.search(rf"(?:{'|'.join(ENCODERS)}) [\d.]+\d", get_dialect(dialect).source)
    return found and found.group()


def is_named(text: str, glob: str) -> bool:
    """Whether a text names the models of a family, such as a template's name or a dialect's source."""
    return fnmatchcase(_spelled(text), f"*{_spelled(glob)}*")


def _spelled(name: str) -> str:
    return _SPACES.sub("", _POINT.sub(".", name.lower()))


def oracle_table() -> str:
    """The table of the page, as Markdown."""
    return _TITLE + "".join(f"| `{name}` | {' | '.join(_row(name))} |\n" for name in dialect_names())


def _row(dialect: str) -> Iterator[str]:
    entries = [entry for entry in TEMPLATES if entry["dialect"] == dialect]
    names = dict.fromkeys(f"`{Path(entry['file']).stem}`" for entry in entries)
    encoder = encoder_of(dialect)
    yield ", ".join([*([f"`{encoder}`"] if encoder else []), *names]) or "–"
    public = [one for one in public_templates() if one.found and one.found.dialect == dialect]
    yield str(len(public)) if public else "–"
    limits = list(dict.fromkeys(reason for entry in entries for reason in entry.get("differs", {})))
    if any("behind" in entry for entry in entries):
        limits.append("only the turns are compared, not the words that a template begins with")
    if own := sum(not one.found.turns for one in public if one.found):
        limits.append(f"turns of their own: {own} of those that show calls")
    if not encoder and not entries:
        limits.insert(0, f"no prompt is compared: {get_dialect(dialect).source}")
    yield " · ".join(limits) or "–"


def _found(asked: Asked) -> Recognised | None:
    try:
        found = recognise_by_rendering(asked.render)
    except ConfigError:  # it cannot be rendered
        return None
    return found if isinstance(found, Recognised) and found.dialect in asked.right else None


if __name__ == "__main__":
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(MARK)
    PAGE.write_text(before + MARK + oracle_table() + re.sub(r"\A(?:\|.*\n)*", "", rest), encoding="utf-8")
