"""One file adds a format: its new opener is known to readers, detection and constraints."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

DIALECT = '''
"""Sonar: `<|sonar_call|>{"name": …, "arguments": {…}}<|sonar_end|>`. Source: made up for a test."""

from callwright.dialects.base import Dialect
from callwright.layout.calls import CallLayout, in_json
from callwright.dialects.prompts.turns import Turns
from callwright.reading.json.marked import CallMarks

CALLS = CallLayout(begin="<|sonar_call|>" + in_json(), end="}<|sonar_end|>")
DIALECT = Dialect(
    name="sonar",
    model_families="none",
    template_markers=("<|sonar_call|>",),
    source="made up for a test",
    stops=("<|deep|>",),
    prompt=Turns(
        controls=("<|ping|>", "<|deep|>", "<|sonar_call|>", "<|sonar_end|>"),
        head="«text|tools¦<|ping|>system:$text«text tools¦\\n»$tools<|deep|>»",
        system="<|ping|>system:$text<|deep|>",
        user="<|ping|>user:$text<|deep|>",
        assistant="<|ping|>model:$written<|deep|>",
        written="$text$calls",
        outputs="<|ping|>tool:$each<|deep|>",
        between="\\n",
        answer="<|ping|>model:",
        calls=CALLS,
        tools="Tools:\\n$lines",
    ),
    calls=CallMarks.of(CALLS, ends=("<|deep|>",)),
)
'''
TEMPLATE = (
    "{% if tools %}<|ping|>system:Tools:{% for tool in tools %}\n{{ tool | tojson }}{% endfor %}<|deep|>{% endif %}"
    "{% for message in messages %}<|ping|>{{ {'assistant': 'model'}.get(message.role, message.role) }}:"
    "{{ message.content or '' }}"
    '{% for call in message.tool_calls or [] %}<|sonar_call|>{{ \'{"name": "\' + call.function.name + \'", '
    "\"arguments\": ' + (call.function.arguments | tojson) + '}' }}<|sonar_end|>{% endfor %}<|deep|>{% endfor %}"
    "{% if add_generation_prompt %}<|ping|>model:{% endif %}"
)
# Runs in a subprocess, because the formats are cached in each process.
SCRIPT = """
import importlib, json, sys

importlib.import_module("callwright.dialects").__path__.append(sys.argv[1])
import callwright
from callwright.chat_template.detect import detect
from callwright.chat_template.sources import ChatTemplate
from callwright.constraints.shape import sentence, shape_of
from tests.support.constraint_cases import PARIS, answer, call, constraint
from tests.support.grammar_engines import Llguidance
from callwright.constraints.lark import Vocabulary, lark

parameters = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
tools = [{"type": "function", "function": {"name": "find", "parameters": parameters}}]
written = callwright.write([{"name": "find", "arguments": {"city": "Ulm"}}], dialect="sonar")
foreign = callwright.parse(written, dialect="hermes", tools=tools)
told = callwright.parse(written, dialect="auto", tools=tools)
template = json.loads(sys.argv[2])
seen = detect(ChatTemplate(template), [])
named = detect(ChatTemplate(template), [], raw=True)
given = constraint("sonar")
node = sentence(shape_of(given), stop=True)
tokens = ("<|sonar_call|>", "<|sonar_end|>", "<|deep|>")
judge = Llguidance(lark(node, Vocabulary({token: token for token in tokens})), tokens)
fits = answer(given, call("get_weather", PARIS))
turn = callwright.render([{"role": "user", "content": "<|deep|>"}], tools=tools, dialect="sonar")
print(json.dumps({
    "written": written,
    "foreign": [one.arguments for one in foreign.calls],
    "problems": [problem.kind for problem in foreign.problems],
    "told": [one.arguments for one in told.calls],
    "seen": seen.dialect,
    "named": named.dialect,
    "accepted": judge.accepts(fits),
    "refused": judge.accepts(fits.replace("arguments", "parameters")),
    "prompt": turn.wire_text,
}))
"""


@pytest.mark.processes
def test_a_file_is_enough(tmp_path: Path) -> None:
    (tmp_path / "sonar.py").write_text(DIALECT, encoding="utf-8")
    given = [sys.executable, "-c", SCRIPT, str(tmp_path), json.dumps(TEMPLATE)]
    found = json.loads(subprocess.run(given, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
    assert found["written"] == '<|sonar_call|>{"name": "find", "arguments": {"city":"Ulm"}}<|sonar_end|>'
    assert found["foreign"] == found["told"] == ['{"city":"Ulm"}']
    assert found["problems"] == ["foreign_format"]
    assert found["seen"] == found["named"] == "sonar"
    assert found["accepted"]
    assert not found["refused"]
    assert found["prompt"].endswith("<|deep|><|ping|>user:<\u2060|deep|><|deep|><|ping|>model:")
