"""The base of an upstream that changes how another one is asked."""

from callwright.upstreams.base import Deltas, GenerationRequest, HandedAnswers, Upstream


class WrappedUpstream:
    """Another `upstream` as it is."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    @property
    def name(self) -> str:
        return self._upstream.name

    async def open(self) -> None:
        await self._upstream.open()

    def stream(self, generation: GenerationRequest) -> Deltas:
        return self._upstream.stream(generation)

    def hand_on(self, generation: GenerationRequest, path: str) -> HandedAnswers:
        return self._upstream.hand_on(generation, path)

    async def models(self) -> list[str]:
        return await self._upstream.models()

    def window(self, model: str) -> int | None:
        return self._upstream.window(model)

    async def close(self) -> None:
        await self._upstream.close()
