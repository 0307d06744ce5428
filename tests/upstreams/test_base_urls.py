"""The hint at the base URL that was meant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.upstreams.base_urls import base_url_hint, possible_base_urls

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
    "/v1/responses": "/v1",
    "/llm/messages": "/llm/v1",
    "/v1/chat/completions/": "/v1",
}


@pytest.mark.parametrize("end", MEANT)
def test_the_base_url_that_was_meant_is_named(end: str) -> None:
    assert base_url_hint(ROOT + end, "/chat/completions").endswith(f" {ROOT}{MEANT[end]}?")


@given(
    st.lists(st.sampled_from(("v1", "llm", "chat", "completions", "api", "models", "v2")), max_size=5), st.booleans()
)
def test_the_base_urls_that_may_have_been_meant_are_on_the_way_to_the_root(path: list[str], slash: bool) -> None:
    given_url = "/".join((ROOT, *path)) + "/" * slash
    possible = possible_base_urls(given_url)
    assert possible[-2:] == [f"{ROOT}/v1", ROOT]
    assert all(given_url.startswith(url.removesuffix("/v1")) for url in possible)
    assert len(set(possible)) == len(possible) <= 2 * len(path) + 2
    is_below = base_url_hint(given_url, "/models")
    assert given_url.rstrip("/") == possible[0] or possible[0] in is_below


@pytest.mark.parametrize(("end", "path"), [("/v1", "/chat/completions"), ("", "/completion"), ("/v1/v1", "/other")])
def test_what_is_not_known_is_not_guessed(end: str, path: str) -> None:
    assert base_url_hint(ROOT + end, path) == "Is its base URL right?"
