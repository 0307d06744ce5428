"""An upstream that plays given deltas: for tests, documentation and demonstrations. It contacts nothing."""

from collections.abc import Iterable, Sequence

from callwright.upstreams.base import Delta, Deltas, FinishDelta, GenerationRequest, HandedAnswers, TextDelta
from callwright.upstreams.handed import lacking


class LocalUpstream:
    """The part of an `Upstream` that one without a server has no use for."""

    async def open(self) -> None:
        """Nothing to prepare."""

    def window(self, model: str) -> int | None:
        """It has none."""
        return None

    async def models(self) -> list[str]:
        """None with a name."""
        return []

    async def close(self) -> None:
        """Nothing to close."""


class ScriptedUpstream(LocalUpstream):
    """Plays one answer after the other: each a text, or a sequence of deltas and exceptions.

    A text is one delta and a natural end; an exception is raised when it is reached. `asked` has the requests.
    """

    name = "scripted"

    def __init__(self, answers: Iterable[str | Sequence[Delta | Exception]]) -> None:
        self._answers = iter(answers)
        self.asked: list[GenerationRequest] = []

    async def stream(self, generation: GenerationRequest) -> Deltas:
        self.asked.append(generation)
        answer = next(self._answers)
        for delta in (TextDelta(answer), FinishDelta("stop")) if isinstance(answer, str) else answer:
            if isinstance(delta, Exception):
                raise delta
            yield [delta]

    def hand_on(self, generation: GenerationRequest, path: str) -> HandedAnswers:
        """See `Upstream`: it plays generations only. Raises `RequestError`."""
        raise lacking("a script", path)
