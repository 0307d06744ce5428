"""Which dialect a model speaks, by its name and by its chat template."""

import tomllib
from pathlib import Path

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
    "mistralai/Mistral-Small-3.1-24B-Instruct-2503": "mistral_v3",
    "mistral-small:24b": "mistral_v3",
    "mistral-small3.2:24b": "mistral_v11",
    "mistralai/Mistral-Small-4-119B-2603": "mistral_v11",
    "mistralai/Mistral-Large-3-675B-Instruct-2512": "mistral_v11",
    "LGAI-EXAONE/K-EXAONE-236B-A23B": "hermes",
    "LGAI-EXAONE/K-EXAONE-2.0": "qwen3_coder",
    "XiaomiMiMo/MiMo-7B-RL": "hermes",
    "XiaomiMiMo/MiMo-V2.5-Pro": "qwen3_coder",
    "inclusionAI/Ling-flash-2.0": "hermes",
    "inclusionAI/Ring-2.5-1T": "hermes",
    "moonshotai/Kimi-Linear-48B-A3B-Instruct": "kimi_k2",
    "Alibaba-NLP/Tongyi-DeepResearch-30B-A3B": "hermes",
    "Kwaipilot/KAT-Dev": "qwen3_coder",
    "speakleash/Bielik-11B-v3.0-Instruct": "hermes",
    "tiiuae/Falcon-H1-34B-Instruct": "hermes",
    "PrimeIntellect/INTELLECT-3": "qwen3_coder",
    "tngtech/DeepSeek-TNG-R1T2-Chimera": "deepseek_v3",
    "katanemo/Arch-Function-3B": "hermes",
    "MadeAgents/Hammer2.1-7b": "xlam",
    "watt-ai/watt-tool-8B": "pythonic",
    "internlm/Intern-S2-Preview": "qwen3_coder",
    "JetBrains/Mellum2-12B-A2.5B-Instruct": "hermes",
    "ornith-ai/Ornith-1.5-9B": "qwen3_coder",
    "skt/A.X-4.0": "hermes",
    "arcee-ai/Trinity-Large-Thinking": "qwen3_coder",
    "ai21labs/AI21-Jamba2-3B": "hermes",
    "ai21labs/AI21-Jamba-Mini-1.7": "jamba",
    "Nanbeige/Nanbeige4.1-3B": "hermes",
    "NousResearch/Hermes-3-Llama-3.1-8B": "hermes",
    "nvidia/Llama-3_3-Nemotron-Super-49B-v1_5": "nemotron_nano_v2",
    # fine-tunes, called after their base
    "acme/my-qwen3.5-agent-9b": "qwen3_coder",
    "TeichAI/Qwen3-14B-Claude-4.5-Opus-High-Reasoning-Distill": "hermes",
    "someone/gpt-oss-20b-tax-advisor": "harmony",
}
# One family, as the shops write it, and what files are called.
SPELLED = {
    "qwen3_coder": ["Qwen/Qwen3.5-4B", "qwen3.5:4b", "qwen-3.5-4b", "Qwen3_5-4B", "lmstudio-community/Qwen3.5-4B-GGUF"],
    "glm45": [
        "zai-org/GLM-4.5-Air",
        "glm4.5:air",
        "GLM 4.5 Air",
        "unsloth/GLM-4.5-Air-GGUF",
        "glm_4_5_air-Q4_K_M.gguf",
    ],
    "harmony": ["openai/gpt-oss-20b", "gpt-oss:20b", "GPT_OSS_20B", "gpt-oss-20b-mxfp4.gguf", "openai/gpt-oss-20b-MLX"],
    "lfm2": ["LiquidAI/LFM2-8B-A1B", "lfm2:8b", "LFM2.5-1.2B-Instruct-Q8_0.gguf", "lfm-2-8b"],
}
# No model that calls tools, or one whose format no dialect has.
UNKNOWN = [
    *("Qwen/Qwen3-Embedding-8B", "Qwen/Qwen3-Reranker-0.6B", "Qwen/Qwen3Guard-Gen-4B", "Qwen/Qwen3-ASR-1.7B"),
    *("openai/whisper-large-v3", "openai/clip-vit-base-patch32", "google/siglip-base", "llava-hf/llava-1.5-7b-hf"),
    *("nomic-embed-text:v1.5", "BAAI/bge-reranker-v2-m3", "mistral-embed", "jinaai/jina-embeddings-v4"),
    *("meta-llama/Llama-Guard-3-8B", "meta-llama/Llama-3.1-8B-base", "nvidia/Nemotron-3-Content-Safety"),
    *("ibm-granite/granite-guardian-3.1-2b", "Qwen/Qwen3-Nemotron-235B-A22B-GenRM", "Qwen/Qwen2.5-Math-PRM-7B"),
    *("MiniMaxAI/MiniMax-M1-80k", "upstage/Solar-Open-100B", "openbmb/MiniCPM3-4B", "openbmb/MiniCPM4.1-8B"),
    *("facebook/cwm", "Zyphra/ZAYA1-8B", "naver-hyperclovax/HyperCLOVAX-SEED-Think-14B", "baidu/ERNIE-5.0"),
    *("stepfun-ai/Step-5", "Qwen/Qwen4-Exp", "LLM360/K2-Think", "google/gemma-3-27b-it", "microsoft/phi-4"),
    *("mistralai/Mistral-7B-Instruct-v0.2", "acme/unheard-of-7b", "smaug-34b", "beamng-13b", "musepub-7b"),
]
TEMPLATES = {
    '{%- if tool_call.arguments %}<tool_call>\n{"name": "x", "arguments": {{ a }}}</tool_call>': "hermes",
    "<tool_call>\n<function={{ name }}>\n<parameter={{ key }}>": "qwen3_coder",
    "<tool_call>{{ tool_call.arguments }}<function={{ name }}>\n<parameter={{ key }}>": "qwen3_coder",
    "<seed:tool_call><function={{ name }}><parameter={{ key }}>": "seed_oss",
    "<assistant></assistant><arg_key>{{ k }}</arg_key>\n<arg_value>": "laguna",
    "{{ '<｜DSML｜tool_calls>' }}": "deepseek_v4",
    "{{ '<｜DSML｜ calls>' }}": "deepseek_v41",
    "[TOOL_CALLS]{{ name }}[ARGS]": "mistral_v11",
    "[TOOL_CALLS] [{": "mistral_v3",
    "<|start|>assistant<|channel|>commentary to=functions.x<|message|>": "harmony",
    "<|tool_calls_section_begin|>": "kimi_k2",
    "]<]minimax[>[<tool_call>": "minimax_m3",
    "<|START_ACTION|>[": "cohere_command",
}


PUBLIC = tomllib.loads((Path(__file__).parent / "names.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("dialect", "models"), PUBLIC.items())
def test_public_models_are_known_as_they_are_spelled_where_they_are_had(dialect: str, models: list[str]) -> None:
    found = {model: by_name(model) for model in models}
    assert {model: one.dialect if one else "none" for model, one in found.items()} == dict.fromkeys(models, dialect)


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


@pytest.mark.parametrize(("dialect", "models"), SPELLED.items())
def test_a_family_is_known_however_it_is_spelled(dialect: str, models: list[str]) -> None:
    found = {model: by_name(model) for model in models}
    assert {model: one and one.dialect for model, one in found.items()} == dict.fromkeys(models, dialect)


@pytest.mark.parametrize("model", UNKNOWN)
def test_what_does_not_chat_or_writes_otherwise_stays_unknown(model: str) -> None:
    assert by_name(model) is None


def test_nothing_is_made_up_for_what_is_not_known() -> None:
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
    assert model.for_model("qwen3-coder:30b").dialect == "qwen3_coder"
    assert model.for_model("unheard-of").dialect == "json"
