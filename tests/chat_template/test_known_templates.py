"""What is found of the templates of known models, as they were recorded, against the dialects declared for them."""

import pytest

from tests.chat_template.comparing import Compared, compared
from tests.oracle.probing import findings, read_probed
from tests.support.known_templates import DOCS_PAGE, table_of_templates

ALL = list(compared())
LEAST = 0.8
# Why nothing is found: what no reader is made for, or what no template shows.
UNKNOWN = {
    "Kimi-K3": "calls that are written so are not read",
    "muse-glimmer": "calls that are written so are not read",
    "ibm-granite-granite-3.3-2B-Instruct": "it shows no calls",
    "LFM2-8B-A1B": "it shows no calls",
    "HuggingFaceTB-SmolLM3-3B@3e0e27": "it shows no calls",
}


@pytest.mark.parametrize("what", ["found", "read", "constrained"])
def test_most_of_it_is_as_declared(what: str) -> None:
    assert sum(getattr(one, what) for one in ALL) / len(ALL) >= LEAST


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.template)
def test_what_is_not_found_says_why(one: Compared) -> None:
    assert one.found == (one.template not in UNKNOWN)
    assert one.found or one.why == UNKNOWN[one.template]


@pytest.mark.parametrize("probed", read_probed(), ids=lambda probed: probed["template"])
def test_every_template_shows_where_a_turn_ends(probed: dict[str, object]) -> None:
    assert findings(probed).turns.stops


def test_the_page_tells_it() -> None:
    assert table_of_templates() in DOCS_PAGE.read_text(encoding="utf-8"), "run scripts/reference"
