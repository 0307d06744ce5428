"""What public chat templates make of the probes by which a dialect is recognised: recorded, so that recognition is
tested without them.

`detection.toml` says which templates are asked, and which dialects are right for each; that was read in the templates.
Templates that make the same are kept once.
"""

import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct

from callwright.chat_template.probes import Message, RenderMessages, render_with
from callwright.chat_template.recognise import recognise_by_rendering
from callwright.chat_template.renderer import TemplateFailureError
from callwright.errors import ConfigError
from tests.oracle.asking import FOLDER

__all__ = ["BOS", "EOS", "RECORD", "WANTED", "Asked", "ask", "read_asked", "wanted_templates"]

RECORD: Final = FOLDER / "detection.json"
WANTED: Final[Mapping[str, Any]] = tomllib.loads((FOLDER / "detection.toml").read_text(encoding="utf-8"))
BOS: Final = "<|bos|>"
EOS: Final = "<|eos|>"
NONE: Final = "none"


class Asked(Struct, frozen=True):
    """What some templates, which are the same in this, make of the probes. `right` are the dialects that are right for
    them, None among them where it is right to find none.
    """

    right: tuple[str | None, ...]
    templates: tuple[str, ...]
    render: RenderMessages


def wanted_templates() -> Iterator[tuple[str, str, str]]:
    """The right dialects, the package and the path in it of each template."""
    for right, packages in WANTED["right"].items():
        for package, names in packages.items():
            for name in names:
                yield right, package, f"{WANTED['folders'][package]}/{name}.jinja"


def ask(template: str) -> dict[str, Any]:
    """Ask a template all that is asked to recognise its dialect."""
    texts: dict[str, Any] = {}
    real = render_with(template, BOS, EOS)

    def render(messages: Sequence[Message], tools: Any, answers: bool) -> str:
        try:
            text = texts[_key(messages, tools, answers)] = real(messages, tools, answers)
        except TemplateFailureError as error:
            texts[_key(messages, tools, answers)] = {"refused": error.refused}
            raise
        return text

    with suppress(ConfigError):
        recognise_by_rendering(render)
    return _packed(dict(sorted(texts.items())))


def read_asked() -> list[Asked]:
    """What was recorded."""
    return [
        Asked(
            tuple(None if word == NONE else word for word in each["right"].split()),
            tuple(each["templates"]),
            _replayed(each["begin"], each["texts"]),
        )
        for each in json.loads(RECORD.read_text(encoding="utf-8"))
    ]


def _packed(texts: Mapping[str, Any]) -> dict[str, Any]:
    """The texts, each as so many characters of the longest prompt and what it goes on with."""
    begin = max((text for text in texts.values() if isinstance(text, str)), key=len, default="")
    packed: dict[str, Any] = {}
    for key, text in texts.items():
        if isinstance(text, str):
            shared = next((at for at, pair in enumerate(zip(begin, text, strict=False)) if len({*pair}) > 1), len(text))
            packed[key] = [shared, text[shared:]]
        else:
            packed[key] = text
    return {"begin": begin, "texts": packed}


def _replayed(begin: str, texts: Mapping[str, Any]) -> RenderMessages:
    def render(messages: Sequence[Message], tools: Any, answers: bool) -> str:
        text = texts.get(_key(messages, tools, answers))
        assert text is not None, f"this was not asked when it was recorded: run scripts/oracle ({messages})"
        if isinstance(text, dict):
            raise TemplateFailureError("as recorded", refused=text["refused"])
        shared, rest = text
        return begin[:shared] + str(rest)

    return render


def _key(messages: object, tools: object, answers: bool) -> str:
    text = json.dumps([messages, tools is not None, answers], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]
