"""Our prompts against those that the models' own chat templates make, as `scripts/oracle` recorded them."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import Struct

from callwright import render
from tests.oracle.asking import CONVERSATIONS, FOLDER, Told, behind
from tests.oracle.detecting import RECORD
from tests.oracle.held import TEMPLATES
from tests.oracle.probing import PROBED
from tests.oracle.record import RefusedError, prompt_of

DIALECTS = sorted({entry["dialect"] for entry in TEMPLATES})


class Compared(Struct, frozen=True):
    """A conversation, what a template made of it (None: it refused), and why ours differs if it does."""

    dialect: str
    template: str
    told: Told
    options: dict[str, Any]
    behind: str
    theirs: str | None
    reason: str | None

    def __str__(self) -> str:
        return f"{self.dialect}: {self.template}: {self.told.name}"

    def ours(self) -> str:
        """Our prompt, or its part that is compared."""
        prompt = render(self.told.messages(), tools=self.told.tools(), dialect=self.dialect, **self.options)
        return behind(prompt.text, self.behind)


def listed(dialect: str) -> list[dict[str, Any]]:
    """The templates of a dialect in templates.toml."""
    return [entry for entry in TEMPLATES if entry["dialect"] == dialect]


def recorded(dialect: str) -> list[dict[str, Any]]:
    """What was recorded for them."""
    found: list[dict[str, Any]] = json.loads((FOLDER / f"{dialect}.json").read_text(encoding="utf-8"))
    return found


def compared() -> Iterator[Compared]:
    """Every conversation with every template."""
    for dialect in DIALECTS:
        for entry, record in zip(listed(dialect), recorded(dialect), strict=True):
            for name in CONVERSATIONS:
                yield Compared(
                    dialect,
                    entry["file"].rpartition("/")[2].removesuffix(".jinja"),
                    Told(name, ids=entry.get("ids", "call"), system=entry.get("system", "")),
                    entry.get("options", {}),
                    entry.get("behind", ""),
                    record["prompts"].get(name),
                    next((why for why, names in entry.get("differs", {}).items() if name in names), None),
                )


ALL = list(compared())


@pytest.mark.parametrize("case", [case for case in ALL if case.theirs is not None and case.reason is None], ids=str)
def test_a_prompt_is_what_the_models_own_template_makes(case: Compared) -> None:
    assert case.ours() == case.theirs


@pytest.mark.parametrize("case", [case for case in ALL if case.theirs is None or case.reason is not None], ids=str)
def test_where_a_template_refuses_or_errs_there_is_a_prompt_of_ours(case: Compared) -> None:
    assert case.ours() != case.theirs


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_record_holds_the_listed_templates_and_nothing_else(dialect: str) -> None:
    for entry, record in zip(listed(dialect), recorded(dialect), strict=True):
        assert record["template"] == entry["file"]
        assert sorted({*record["prompts"], *record["refused"]}) == sorted(CONVERSATIONS)
        differing = [name for names in entry.get("differs", {}).values() for name in names]
        assert len(differing) == len(set(differing) & record["prompts"].keys())


def test_every_record_belongs_to_a_listed_dialect() -> None:
    others = {"conversations", PROBED.stem, RECORD.stem}
    assert sorted(path.stem for path in FOLDER.glob("*.json") if path.stem not in others) == DIALECTS


def test_a_template_is_run_as_transformers_runs_it() -> None:
    template = """
        {%- for message in messages %}
            {%- if message.role == 'tool' %}{% continue %}{% endif %}
            {%- generation %}
                {%- for call in message.tool_calls %}{{ call.function.arguments | tojson }}{% endfor %}
            {%- endgeneration %}
        {%- endfor %}{{ strftime_now('%Y') }}{{ tools | tojson(indent=1) | length > 9 }}"""
    told = Told("a call, its result, the answer and a question", objects=True)
    assert prompt_of(template, told, {}) == '{"harbour": "Husum", "passengers": 2}2026True'
    for refusing in ("{{ raise_exception('no') }}", "{{ messages.append(1) }}", "{{ nobody.knows }}"):
        with pytest.raises(RefusedError):
            prompt_of(refusing, told, {})
