"""Which dialect a model speaks, by its name and by its chat template."""

import pytest

from callwright.dialects.base import dialect_names, get_dialect
from callwright.dialects.detect import by_name, by_template
from callwright.errors import ConfigError
from callwright.gateway.config.build_models import build_models
from callwright.gateway.config.config import Config, ModelConfig

NAMES = {
    "openai/gpt-oss-120b": "harmony",
    "gpt-oss:20b": "harmony",
    "unsloth/gpt-oss-20b-GGUF": "harmony",
    "Qwen/Qwen3-32B": "hermes",
    "qwen2.5:7b-instruct": "hermes",
    "NousResearch/Hermes-4-70B": "hermes",
    "ibm-granite/granite-4.0-h-small": "hermes",
    "Qwen/Qwen3-Coder-30B-A3B-Instruct": "qwen3_coder",
    "qwen3-coder:30b": "qwen3_coder",
    "Qwen/Qwen3.5-122B": "qwen3_coder",
    "zai-org/GLM-4.5-Air": "glm45",
    "zai-org/GLM-4.7": "glm47",
    "deepseek-ai/DeepSeek-V3-0324": "deepseek_v3",
    "deepseek-ai/DeepSeek-R1": "deepseek_v3",
    "deepseek-ai/DeepSeek-V3.1": "deepseek_v31",
    "deepseek-ai/DeepSeek-V3.2": "deepseek_v32",
    "deepseek-ai/DeepSeek-V3.2-Exp": "deepseek_v31",
    "deepseek-ai/DeepSeek-V4-Flash": "deepseek_v4",
    "deepseek-ai/DeepSeek-V4.1": "deepseek_v41",
    "moonshotai/Kimi-K2-Thinking": "kimi_k2",
    "moonshotai/Kimi-K3": "kimi_k3",
    "MiniMaxAI/MiniMax-M2": "minimax_m2",
    "MiniMaxAI/MiniMax-M3": "minimax_m3",
    "mistralai/Mistral-Small-3.2-24B-Instruct-2506": "mistral_v11",
    "mistralai/Devstral-Small-2507": "mistral_v11",
    "mistralai/Mistral-Nemo-Instruct-2407": "mistral_v3",
    "google/gemma-4-27b-it": "gemma4",
    "meta-llama/Llama-3.3-70B-Instruct": "llama3_json",
    "llama3.1:8b": "llama3_json",
    "meta-llama/Llama-4-Scout-17B-16E": "pythonic",
    "LiquidAI/LFM2-8B-A1B": "lfm2",
    "allenai/Olmo-3-7B-Instruct": "olmo3",
    "ByteDance-Seed/Seed-OSS-36B-Instruct": "seed_oss",
    "CohereLabs/command-a-03-2025": "cohere_command",
    "ibm-granite/granite-3.3-8b-instruct": "granite",
    "microsoft/Phi-4-mini-instruct": "phi4_mini",
    "Salesforce/Llama-xLAM-2-8b-fc-r": "xlam",
    "nvidia/Nemotron-3-Nano-30B": "qwen3_coder",
}
TEMPLATES = {
    '{%- if tool_call.arguments %}<tool_call>\n{"name": "x", "arguments": {{ a }}}</tool_call>': "hermes",
    "<tool_call>\n<function={{ name }}>\n<parameter={{ key }}>": "qwen3_coder",
    "{{ '<｜DSML｜tool_calls>' }}": "deepseek_v4",
    "{{ '<｜DSML｜ calls>' }}": "deepseek_v41",
    "[TOOL_CALLS]{{ name }}[ARGS]": "mistral_v11",
    "[TOOL_CALLS] [{": "mistral_v3",
    "<|start|>assistant<|channel|>commentary to=functions.x<|message|>": "harmony",
    "<|tool_calls_section_begin|>": "kimi_k2",
    "]<]minimax[>[<tool_call>": "minimax_m3",
    "<|START_ACTION|>[": "cohere_command",
}


@pytest.mark.parametrize(("model", "dialect"), NAMES.items())
def test_a_name_tells_the_dialect(model: str, dialect: str) -> None:
    found = by_name(model)
    assert found is not None
    assert found.dialect == dialect, found.reason
    assert model in found.reason


@pytest.mark.parametrize(("template", "dialect"), TEMPLATES.items())
def test_a_template_tells_the_dialect(template: str, dialect: str) -> None:
    found = by_template(template)
    assert found is not None
    assert found.dialect == dialect, found.reason


def test_nothing_is_made_up_for_what_is_not_known() -> None:
    assert by_name("acme/unheard-of-7b") is None
    assert by_template("{{ messages }}") is None


@pytest.mark.parametrize("name", [name for name in dialect_names() if name != "json"])
def test_every_dialect_of_a_family_says_how_it_is_found(name: str) -> None:
    dialect = get_dialect(name)
    assert getattr(dialect, "model_globs", ()) or getattr(dialect, "template_markers", ())
    assert all(glob == glob.lower() and "_" not in glob for glob in getattr(dialect, "model_globs", ()))


def test_a_configuration_finds_the_dialect() -> None:
    given = ModelConfig(name="coder", upstream="http://h/v1", model="Qwen/Qwen3-Coder-480B", dialect="auto")
    assert build_models(Config(models=(given,)))["coder"].dialect == "qwen3_coder"


def test_a_model_that_nothing_is_known_of_is_refused_with_the_way_out() -> None:
    given = ModelConfig(name="x", upstream="http://h/v1", dialect="auto")
    with pytest.raises(ConfigError, match=r"nothing is known of 'x'.*template"):
        build_models(Config(models=(given,)))


def test_for_any_model_it_is_found_when_one_is_asked_for() -> None:
    given = ModelConfig(name="*", upstream="http://h/v1", dialect="auto")
    model = build_models(Config(models=(given,)))["*"]
    assert model.called("qwen3-coder:30b").dialect == "qwen3_coder"
    assert model.called("unheard-of").dialect == "json"
