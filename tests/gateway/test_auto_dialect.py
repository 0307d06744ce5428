"""`dialect = "auto"` in a configuration: a declared dialect if it fits, else the template itself."""

import json
from pathlib import Path

import pytest

from callwright import parse, render
from callwright.dialects.base import TEMPLATE_PREFIX, get_dialect
from callwright.gateway.config.build_models import build_models
from callwright.gateway.config.config import Config, ModelConfig
from tests.support.outputs import TOOLS

# Turns and calls that no dialect declares; BEGIN and END stand around a call.
OWN = """{%- for tool in tools or [] %}{{ '<|crane|>' + (tool | tojson) + '\\n' }}{%- endfor %}
{%- for message in messages %}{{ '<|harbour|>' + message.role + '\\n' }}{{ message.content or '' }}
{%- for call in message.tool_calls or [] %}{{ 'BEGIN{"name": ' + (call.function.name | tojson) }}
{{- ', "arguments": ' + (call.function.arguments | tojson) + '}END' }}{%- endfor %}{{ '<|quay|>\\n' }}
{%- endfor %}{%- if add_generation_prompt %}{{ '<|harbour|>assistant\\n' }}{%- endif %}"""
QWEN = OWN.replace("BEGIN{", "<tool_call>\\n{").replace("}END", "}\\n</tool_call>")
FERRY = OWN.replace("BEGIN", "<ferry_call>").replace("END", "</ferry_call>")
PLAIN = OWN.partition("{%- for call")[0] + "{{ '<|quay|>\\n' }}{%- endfor %}"


def found(folder: Path, template: str, model: str = "unheard-of") -> str:
    """The dialect of a model with this template."""
    file = folder / "template.jinja"
    file.write_text(template, encoding="utf-8")
    given = ModelConfig(name="m", upstream="http://h/v1", model=model, dialect="auto", template=str(file), mode="raw")
    return str(build_models(Config(models=(given,)))["m"].dialect)


@pytest.mark.processes
@pytest.mark.parametrize("template", [FERRY, QWEN], ids=["calls of its own", "turns of its own"])
@pytest.mark.parametrize("model", ["unheard-of", "zai-org/GLM-4.7"])
def test_where_no_dialect_fits_the_template_is_followed_by_itself(tmp_path: Path, template: str, model: str) -> None:
    dialect = found(tmp_path, template, model)
    assert dialect.startswith(TEMPLATE_PREFIX)
    prompt = render([{"role": "user", "content": "Where is the ferry?"}], tools=TOOLS, dialect=dialect).text
    assert prompt.endswith("<|harbour|>assistant\n")
    assert "<|crane|>" in prompt
    call = ("<ferry_call>{}</ferry_call>" if template == FERRY else "<tool_call>\n{}\n</tool_call>").format(
        json.dumps({"name": "get_weather", "arguments": {"city": "Husum"}})
    )
    read = parse(call, tools=TOOLS, dialect=get_dialect(dialect))
    assert [(one.name, json.loads(one.arguments)) for one in read.calls] == [("get_weather", {"city": "Husum"})]


@pytest.mark.processes
def test_where_a_template_shows_neither_tools_nor_calls_the_name_decides(tmp_path: Path) -> None:
    assert found(tmp_path, PLAIN, "zai-org/GLM-4.7") == "glm47"
