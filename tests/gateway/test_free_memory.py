"""Memory goes back to the system behind a storm of requests."""

import asyncio
import platform

import pytest

from callwright.gateway import free_memory


@pytest.mark.parametrize(
    ("running", "times"),
    [([0, 3, 0, 0], 0), ([10, 200, 180, 60, 20, 0], 1), ([100, 10, 0, 300, 40, 0], 2), ([63, 0], 0)],
)
def test_it_is_given_back_once_behind_each_storm(
    monkeypatch: pytest.MonkeyPatch, running: list[int], times: int
) -> None:
    given: list[bool] = []

    def give_back() -> bool:
        given.append(True)
        return True

    monkeypatch.setattr(free_memory, "give_back", give_back)
    monkeypatch.setattr(free_memory, "_EVERY_S", 0.0)

    async def story() -> None:
        left = iter(running)
        with pytest.raises(RuntimeError):  # there is no more of the story
            await free_memory.give_back_behind_storms(lambda: next(left))

    asyncio.run(story())
    assert len(given) == times


def test_glibc_is_told_and_others_cannot_be() -> None:
    assert free_memory.give_back() == (platform.libc_ver()[0] == "glibc")
