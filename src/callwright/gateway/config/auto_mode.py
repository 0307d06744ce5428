"""Mode `auto`: how a model is asked is chosen by what its server can do, and chosen anew when that fails.

The server is probed in the background when the gateway starts, so that one that is down holds nothing up; a request
waits for the result for a while, or has the server probed again where nothing was found. Until something is known the
model is asked natively: then the client gets the server's own error.
"""

import asyncio
import contextlib
import logging
import re
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from msgspec import Struct

from callwright.doctor.findings import Findings
from callwright.doctor.recommend import Advice, advice
from callwright.errors import RequestError, UpstreamError
from callwright.events import Problem
from callwright.turn.model import Mode, Model
from callwright.upstreams.base import Server

log = logging.getLogger("callwright.gateway")

# How servers say that their own reading of the output has failed: vLLM and SGLang on Harmony, llama.cpp, Ollama.
_PARSER_FAILED: Final = re.compile(
    r"HarmonyError|Unexpected token \d+ while expecting|unexpected tokens remaining in message header"
    r"|Failed to parse input|does not match the expected [\w.-]+ format|error parsing tool call",
    re.IGNORECASE,
)
# Any name may be asked for where all are handed on; so many are remembered.
_KEPT: Final = 256
# So long a request waits for what a probe finds. One that took longer and found nothing is not repeated at once.
_PATIENCE_S: Final = 15.0
_REST_S: Final = 60.0

# Seconds that a starting gateway waits for the probes. The first model is always probed; another one only within
# `_MORE_S`: a server that loads each model when it is asked would load them all.
_LOOK_S: Final = 20.0
_MORE_S: Final = 5.0

# Examines the server for a model; None: for the first that it lists and that can chat.
Probe = Callable[[str | None], Awaitable[Findings]]
Build = Callable[[Findings, Advice], Model]


class _Known(Struct):
    """What is known of one model, and the modes that have failed since."""

    findings: Findings
    advice: Advice
    failed: tuple[Mode, ...] = ()


class AutoModeSelector:
    """Chooses for the models of one entry of the configuration.

    `probe` examines the server for a model, `build` makes what advice says. `name` is probed at the start, if it is not
    None, and is told as `shown`; `server` is what the configuration says that it is. A request waits `patience_s`
    seconds at most.
    """

    def __init__(
        self,
        name: str | None,
        probe: Probe,
        build: Build,
        *,
        shown: str | None = None,
        server: Server | None = None,
        patience_s: float = _PATIENCE_S,
    ) -> None:
        self._name = name
        self._probe = probe
        self._build = build
        self._shown = shown
        self._server = server
        self._patience_s = patience_s
        self._rests_until = 0.0
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._probing: dict[str, asyncio.Task[None]] = {}
        self._built: dict[tuple[Mode, str | None, Server, bool, str], Model] = {}
        self._told: str | None = None

    def start(self) -> None:
        if self._name is not None and self._name not in self._known:
            self._task(self._name)

    async def look(self) -> list[tuple[Findings, Advice]]:
        """Probe the models of the server one after the other, and choose by their findings. One model is probed in any
        case; others as far as that takes little time.
        """
        looked: list[tuple[Findings, Advice]] = []
        began = time.monotonic()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_S):
                names: deque[str | None] = deque([self._name])
                while names and (not looked or time.monotonic() - began < _MORE_S):
                    name = names.popleft()
                    findings = await self._probe(name)
                    looked.append((findings, self._learn(name or findings.model, findings)))
                    if name is None:
                        names += (other for other in findings.chat_models if other != findings.model)
        return looked

    async def choose(self, model: Model) -> Model:
        name = model.upstream_model
        if name not in self._known and time.monotonic() >= self._rests_until:
            await asyncio.wait([self._task(name)], timeout=self._patience_s)
        known = self._known.get(name)
        return model if known is None else self._build_model(model, known)

    async def instead(self, model: Model, failure: RequestError | UpstreamError | Problem) -> Model | None:
        known = self._known.get(model.upstream_model)
        if known is None or isinstance(failure, RequestError):
            return None
        if isinstance(failure, UpstreamError):
            if failure.fault == "unreachable":  # when it is there again, it may be another server
                del self._known[model.upstream_model]
                return None
            if _PARSER_FAILED.search(failure.message) is None:
                return None
        if model.mode == known.advice.mode:  # else another request was first
            self._change(model, known, failure.detail if isinstance(failure, Problem) else failure.message)
        return self._build_model(model, known) if known.advice.mode != model.mode else None

    async def close(self) -> None:
        tasks = list(self._probing.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for model in self._built.values():
            await model.upstream.close()

    def _task(self, name: str) -> asyncio.Task[None]:
        """The examination of the server for a model: the one that runs, or a new one."""
        task = self._probing.get(name)
        if task is None:
            task = self._probing[name] = asyncio.create_task(self._examine(name))
        return task

    async def _examine(self, name: str) -> None:
        began, shown = time.monotonic(), self._shown or name
        try:
            findings = await self._probe(name)
            ended = time.monotonic()
            advised = self._learn(name, findings)
            mode = advised.choices["mode"]
            # A model's words are for `debug` alone; the reason of a choice has none.
            log.debug("what the server of model %.200r answered: %s", shown, findings.answers())
            if advised.usable:
                dialect = f" {advised.dialect}" if advised.dialect else ""
                log.info("model %.200r is asked in mode %s%s: %s", shown, advised.mode, dialect, mode.reason)
                self._told = None
                return
            if ended - began > self._patience_s:
                self._rests_until = ended + _REST_S
            if self._told != mode.reason:
                log.warning("model %.200r is asked natively until its server can be probed: %s", shown, mode.reason)
                self._told = mode.reason
        finally:
            del self._probing[name]

    def _learn(self, name: str | None, findings: Findings) -> Advice:
        """What to do by these findings; requests are answered so from now on."""
        advised = advice(findings, server=self._server)
        if advised.usable and name is not None:
            self._known[name] = _Known(findings, advised)
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return advised

    def _change(self, model: Model, known: _Known, why: str) -> None:
        """Choose without the mode that has failed, if there is another."""
        failed = (*known.failed, model.mode)
        advised = advice(known.findings, without=failed, server=self._server)
        if not advised.usable:
            return
        known.advice, known.failed = advised, failed
        dialect = f" {advised.dialect}" if advised.dialect else ""
        told = (self._shown or model.upstream_model, advised.mode, dialect, model.mode)
        log.warning("model %.200r is asked in mode %s%s from now on, because mode %s failed", *told)
        log.debug("its server said: %.500r", why)

    def _build_model(self, model: Model, known: _Known) -> Model:
        advised = known.advice
        key = (advised.mode, advised.dialect, advised.server, advised.constrain, known.findings.url)
        if key not in self._built:
            self._built[key] = self._build(known.findings, advised)
        return msgspec.structs.replace(self._built[key], name=model.name, upstream_model=model.upstream_model)
