"""A checkpoint's own `response_template`, in the place of a dialect for reading."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from callwright.calls.toolset import Toolset
from callwright.errors import ConfigError, reason_of
from callwright.response_template.declaration import read_template
from callwright.response_template.expression import PatternError
from callwright.response_template.plan import ReadingPlan
from callwright.response_template.reader import TemplateReader
from callwright.response_template.watch import Watch
from callwright.streaming.reader import Parse, StreamReader, silent_reader
from callwright.tolerant_json.codec import NotJsonError, decode


class ResponseTemplate:
    """The rules to parse a model's output, as transformers 5 declares them next to the chat template.

    Raises `ConfigError` with the field for an invalid declaration.
    """

    def __init__(self, template: Mapping[str, Any]) -> None:
        self.template = template
        try:
            self._plan = ReadingPlan(read_template(template))
        except PatternError as error:
            raise ConfigError(f"response_template.fields: their expressions are together {error}.") from error
        self._before = ""

    @classmethod
    def load(cls, path: str | Path) -> "ResponseTemplate":
        """Read a JSON file: the template, or a `tokenizer_config.json` that holds one. Raises `ConfigError` that names
        the file.
        """
        try:
            given = decode(Path(path).read_text(encoding="utf-8-sig"))
        except NotJsonError as error:
            raise ConfigError(f"{path} is not valid JSON: {error}.") from error
        except (OSError, ValueError) as error:  # also no UTF-8, and no path at all
            raise ConfigError(f"Cannot read {path!r}: {reason_of(error)}.") from error
        try:
            return cls(_inside(given))
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from error

    def after(self, prompt: str) -> "ResponseTemplate":
        """The same for an answer to this prompt: the part of the answer written in the prompt, such as the beginning of
        a thought, is read before it, and belongs to it.
        """
        made = object.__new__(ResponseTemplate)
        made.template = self.template
        made._plan = self._plan
        made._before = prompt[_last_end(self._plan.anchor, prompt) :]
        return made

    def parse(self, source: StreamReader, start: str, tools: Toolset) -> Parse[None]:
        """Events of an output; see `callwright.dialects.base`."""
        source.unread(self._before)
        return TemplateReader(source, tools, self._plan).read(start)


def _last_end(anchor: Watch[None], prompt: str) -> int:
    """The end of the last anchor in a prompt, 0 without one."""
    source, end, watching = silent_reader(prompt), 0, anchor.begin(start=True)
    while True:
        _, found = watching.scan(source)
        if found is None:
            return end
        end, watching = source.at, anchor.begin()
        if not found.text:
            source.at += 1  # the beginning or the end of the prompt


def _inside(given: object) -> Mapping[str, Any]:
    """The template in the value of a file."""
    if not isinstance(given, Mapping):
        raise ConfigError(f"expected an object with a response_template, got {type(given).__name__}.")
    if "fields" in given:
        return given
    if isinstance(given.get("response_template"), Mapping):
        return dict(given["response_template"])
    if "response_schema" in given:
        raise ConfigError(
            "it has a response_schema, the earlier form, which transformers no longer reads either: write a "
            "response_template, or name a dialect."
        )
    raise ConfigError("it has no response_template. Name a dialect instead; `callwright dialects` lists them.")
