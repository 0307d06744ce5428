"""The hint at the base URL that was meant."""

import pytest

from callwright.upstreams.base_urls import base_url_hint

ROOT = "http://a:8000"
# What a base URL ends with, and what it was meant to be.
MEANT = {
    "": "/v1",
    "/v1/v1": "/v1",
    "/v1/chat/completions": "/v1",
    "/chat/completions": "/v1",
    "/v1/models": "/v1",
    "/v1/completions": "/v1",
    "/llm/v1/v1/v1": "/llm/v1",
    "/v1/projects/p": "/v1/projects/p/v1",
}


@pytest.mark.parametrize("end", MEANT)
def test_the_base_url_that_was_meant_is_named(end: str) -> None:
    assert base_url_hint(ROOT + end, "/chat/completions").endswith(f" {ROOT}{MEANT[end]}?")


@pytest.mark.parametrize(("end", "path"), [("/v1", "/chat/completions"), ("", "/completion"), ("/v1/v1", "/other")])
def test_what_is_not_known_is_not_guessed(end: str, path: str) -> None:
    assert base_url_hint(ROOT + end, path) == "Is its base URL right?"
