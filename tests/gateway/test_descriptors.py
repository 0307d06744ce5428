"""The limit of open files: a gateway takes as many requests as it says that it does."""

import os
from collections.abc import Iterator

import pytest

from callwright.gateway.process.descriptors import allow_requests
from tests.support.http_client import request
from tests.support.processes import gateway

resource = pytest.importorskip("resource", reason="the system has no such limit")


@pytest.fixture
def limits() -> Iterator[tuple[int, int]]:
    """The soft and the hard limit for as long as the test runs: the soft one is low, but what is open here fits."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.open(os.devnull, os.O_RDONLY)
    os.close(free)
    soft = max(512, free + 64)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, before[1]))
    yield soft, before[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.processes
def test_a_gateway_may_open_what_its_requests_need(limits: tuple[int, int]) -> None:
    _, hard = limits
    if not hasattr(resource, "prlimit"):
        pytest.skip("the limit of another process cannot be seen")
    if hard != resource.RLIM_INFINITY and hard < 6_400:
        pytest.skip("the system allows too little")
    with gateway() as (url, process):
        assert request(f"{url}/healthz", method="GET").status == 200
        assert resource.prlimit(process.pid, resource.RLIMIT_NOFILE) == (2_048 + 4_096 + 256, hard)


def test_a_limit_that_is_high_enough_stays(limits: tuple[int, int]) -> None:
    assert allow_requests(100, 100) == 100
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == limits


def test_a_hard_limit_that_is_too_low_is_told(limits: tuple[int, int], caplog: pytest.LogCaptureFixture) -> None:
    _, hard = limits
    if hard == resource.RLIM_INFINITY:
        pytest.skip("the system has no hard limit")
    assert 1 <= allow_requests(hard, hard) <= hard // 2
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    assert f"which is enough for {(hard - 256) // 2}: raise the hard limit" in caplog.text
