"""What the models' own chat templates make of our probes: recorded, so that what is found of them is tested without
them.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from callwright.chat_template.dialect import CASES, TemplateFindings, find_by_rendering
from callwright.chat_template.find_turns import marks_in
from callwright.chat_template.probes import FIRST, SAID, TELLINGS, THOUGHT, Probes, RenderMessages
from callwright.chat_template.renderer import TemplateFailureError, TemplateRenderer
from callwright.errors import ConfigError
from tests.oracle.asking import FOLDER

__all__ = ["EOS", "PROBED", "Probed", "findings", "probe", "read_probed"]

PROBED: Final = FOLDER / "probes.json"
EOS: Final = "<|eos|>"
Probed = dict[str, Any]
# Before the answers a prompt has pages of words of its own: so many characters of it are kept.
_KEPT: Final = 160


def read_probed() -> list[Probed]:
    """What was recorded: a template each."""
    found: list[Probed] = json.loads(PROBED.read_text(encoding="utf-8"))
    return found


def probe(template: str, given: Mapping[str, Any]) -> Probed:
    """Ask a template all that is asked to find its format."""
    renderer = TemplateRenderer(template)
    texts: dict[str, Any] = {}

    def render(messages: Sequence[Mapping[str, Any]], tools: object, answers: bool) -> str:
        variables = {"bos_token": "", "eos_token": EOS, **given}
        variables |= {"messages": messages, "tools": tools, "add_generation_prompt": answers}
        try:
            text = renderer.render(variables, "2026-02-03")
        except TemplateFailureError as error:
            texts[_key(messages, tools, answers)] = {"refused": error.refused}
            raise
        texts[_key(messages, tools, answers)] = text
        return text

    try:
        find_by_rendering(render, marks_in(template), EOS)
        for telling in TELLINGS:  # also what is asked only where something else was found
            probes = Probes(render, telling)
            for calls in CASES.values():
                probes.answer(*calls)
            for thought in ("", THOUGHT):
                probes.answer(FIRST, said=SAID, thought=thought)
                probes.answer(said=SAID, thought=thought)
    except ConfigError:
        pass
    finally:
        renderer.close()
    return {"words": marks_in(template), "texts": _shortened(dict(sorted(texts.items())))}


def findings(probed: Probed) -> TemplateFindings:
    """What is found of a template by what was recorded of it."""
    return find_by_rendering(_replayed(probed["texts"]), probed["words"], EOS)


def _replayed(texts: Mapping[str, Any]) -> RenderMessages:
    def render(messages: Sequence[Mapping[str, Any]], tools: object, answers: bool) -> str:
        text = texts.get(_key(messages, tools, answers))
        assert text is not None, f"this was not asked when it was recorded: run scripts/oracle ({messages})"
        if isinstance(text, str):
            return text
        raise TemplateFailureError("as recorded", refused=text["refused"])

    return render


def _key(messages: object, tools: object, answers: bool) -> str:
    text = json.dumps([messages, tools is not None, answers], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _shortened(texts: dict[str, Any]) -> dict[str, Any]:
    """The texts without what most of them begin with, but for its end."""
    whole = [text for text in texts.values() if isinstance(text, str)]
    starts = {text[:at] for text in whole for at in [text.rfind("Qurx")] if at > _KEPT}
    common = max(sorted(starts), key=lambda start: sum(text.startswith(start) for text in whole), default="")
    cut = len(common) - _KEPT
    if cut <= 0:
        return texts
    return {
        key: text[cut:] if isinstance(text, str) and text.startswith(common) else text for key, text in texts.items()
    }
