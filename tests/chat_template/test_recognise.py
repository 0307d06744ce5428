"""Which dialect is recognised of public chat templates, by what was recorded of them."""

import pytest

from callwright.chat_template.detect import detect
from callwright.chat_template.recognise import Recognised, recognise_by_rendering, rendered_by
from callwright.chat_template.renderer import TemplateFailureError
from callwright.chat_template.sources import ChatTemplate
from callwright.dialects.base import TEMPLATE_PREFIX, dialect_names, read_options
from callwright.errors import ConfigError
from tests.oracle.detecting import Asked, read_asked, wanted_templates

ASKED = read_asked()
LEAST = 150
# ChatML with Qwen3-Coder's calls, as Qwen3.5 has it, and with turns of nobody's.
CODER = """{%- for message in messages %}{{ '<|im_start|>' + message.role + '\\n' }}{{ message.content }}
{%- for call in message.tool_calls or [] %}{{ '\\n<tool_call>\\n<function=' + call.function.name + '>\\n' }}
{%- for key, value in call.function.arguments.items() %}{{ '<parameter=' + key + '>\\n' }}{{ value }}
{{- '\\n</parameter>\\n' }}{%- endfor %}{{ '</function>\\n</tool_call>' }}{%- endfor %}{{ '<|im_end|>\\n' }}
{%- endfor %}{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{%- endif %}"""
STRANGE = CODER.replace("<|im_start|>", "<|harbour|>").replace("<|im_end|>", "<|quay|>")
NOTHING = CODER.partition("{%- for call")[0] + "{{ '<|im_end|>\\n' }}{%- endfor %}"
OWN = CODER.replace("<tool_call>", "<ferry_call>").replace("</tool_call>", "</ferry_call>")


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: asked.templates[0].split()[2])
def test_the_dialect_of_a_template_is_recognised(asked: Asked) -> None:
    try:
        found = recognise_by_rendering(asked.render)
    except ConfigError:  # it cannot be rendered
        found = None
    assert (found.dialect if isinstance(found, Recognised) else None) in asked.right, asked.templates


def test_enough_templates_are_recorded_each_of_those_that_are_wanted() -> None:
    shown = [asked for asked in ASKED if asked.right != (None,)]
    assert sum(len(asked.templates) for asked in shown) >= LEAST
    assert sum(len(asked.templates) for asked in ASKED) == len([*wanted_templates()])
    assert {name for asked in ASKED for name in asked.right if name} <= {*dialect_names()}


@pytest.mark.parametrize("name", dialect_names())
def test_what_a_dialect_renders_itself_is_recognised_as_that_dialect(name: str) -> None:
    found = recognise_by_rendering(rendered_by(name, {}))
    assert isinstance(found, Recognised)
    assert name in (found.dialect, *found.rivals)
    assert found.turns


@pytest.mark.processes
def test_the_template_decides_against_the_name() -> None:
    found = detect(ChatTemplate(CODER), ["Qwen3-8B"])
    assert found is not None
    assert (found.dialect, found.reason) == ("qwen3_coder", "its chat template writes calls as qwen3_coder does")


@pytest.mark.processes
def test_the_name_decides_where_the_template_shows_neither_tools_nor_calls() -> None:
    found = detect(ChatTemplate(NOTHING), ["unheard-of", "GLM-4.7"])
    assert found is not None
    assert found.dialect == "glm47"


@pytest.mark.processes
def test_calls_that_no_dialect_writes_make_a_dialect_of_their_own_whatever_the_name_is() -> None:
    found = detect(ChatTemplate(OWN), ["GLM-4.7"])
    assert found is not None
    assert found.dialect.startswith(TEMPLATE_PREFIX)


@pytest.mark.processes
def test_prompts_of_a_template_with_turns_of_its_own_are_the_templates() -> None:
    prompted, rendered = (detect(ChatTemplate(STRANGE), [], raw=raw) for raw in (False, True))
    assert prompted is not None
    assert rendered is not None
    assert prompted.dialect == "qwen3_coder"
    assert rendered.dialect.startswith(TEMPLATE_PREFIX)
    assert "writes calls as qwen3_coder does, in turns of its own" in rendered.reason


@pytest.mark.processes
def test_a_template_that_cannot_be_rendered_is_known_by_the_name_then_by_its_marks() -> None:
    broken = ChatTemplate("{{ '[TOOL_CALLS]' }}{{ messages[99].content.strip() }}")
    for names, dialect in ((["Kimi-K2"], "kimi_k2"), (["unheard-of"], "mistral_v3")):
        found = detect(broken, names)
        assert found is not None
        assert found.dialect == dialect


def test_what_cannot_be_rendered_is_said() -> None:
    def refuse(*_: object) -> str:
        raise TemplateFailureError("no")

    with pytest.raises(ConfigError, match="cannot be rendered"):
        recognise_by_rendering(refuse)


def test_a_name_does_not_hold_against_a_vocabulary_without_the_control_tokens() -> None:
    assert detect(None, ["gpt-oss-20b"], vocabulary=["<|im_start|>", "<|im_end|>"]) is None
    found = detect(None, ["gpt-oss-20b", "Qwen3-8B"], vocabulary=["<|im_start|>", "<|im_end|>"])
    assert found is not None
    assert found.dialect == "hermes"
    known = detect(None, ["gpt-oss-20b"], vocabulary=["<|channel|>", "<|message|>"])
    assert known is not None
    assert known.dialect == "harmony"


def test_flavours_are_options_of_their_dialect() -> None:
    seen = [recognise_by_rendering(asked.render) for asked in ASKED if asked.right == ("qwen3_coder",)]
    told = {found.options for found in seen if isinstance(found, Recognised)}
    assert {(), (("flavour", "qwen3.5"),), (("flavour", "nemotron3"),)} <= told
    for options in told:
        read_options("qwen3_coder", dict(options))
