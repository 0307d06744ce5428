"""One hook with its bounds: who it is for, a deadline, a limit of parallel questions, and a rest after failures."""

import asyncio
import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from fnmatch import translate
from typing import Final, Literal, Protocol, TypeAlias

from msgspec import UNSET

from callwright.conversation import CustomInput
from callwright.hooks import ALLOW, CallInput, HookInput, Place, ResultInput, Verdict
from callwright.schema.validate import validator_of

log = logging.getLogger("callwright.gateway")

# After this number of failures in a row, the hook is not asked for the same key for a while: of the others it may be
# that their requests do not make it fail.
_MOST_FAILURES: Final = 5
_REST_S: Final = 10.0
_MAX_MESSAGE: Final = 2_000
_MAX_SECRETS: Final = 1_000
# Shorter texts would be found everywhere.
SHORTEST_SECRET: Final = 4
Outcome: TypeAlias = Literal["allow", "deny", "ask", "replace", "failed"]
# Called with the name of the hook, the place and the outcome.
Judged: TypeAlias = Callable[[str, Place, Outcome], None]


class Asks(Protocol):
    """Asks a hook: a function, or a server."""

    async def ask(self, given: HookInput, free: Callable[[], None]) -> Verdict | None:
        """The answer, unchecked. Calls `free` once, when the work has really ended. Raises anything."""
        ...

    async def close(self) -> None:
        """Release its resources."""
        ...


class HookFailed(Exception):  # noqa: N818  # the caller denies or allows
    """A hook that fails closed gave no answer that can be used."""


class JudgingHook:
    """A hook. `judged` is called with each outcome."""

    def __init__(
        self,
        name: str,
        asks: Asks,
        *,
        places: Collection[Place],
        judged: Judged,
        models: Sequence[str] = ("*",),
        keys: Sequence[str] = ("*",),
        deadline_s: float = 5.0,
        is_open: bool = False,
        max_parallel: int = 16,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.places = frozenset(places)
        self._asks = asks
        self._judged = judged
        self._models = compile_patterns(models)
        self.keys = compile_patterns(keys)
        self._deadline_s = deadline_s
        self._is_open = is_open
        self._slots = asyncio.Semaphore(max_parallel)
        self._clock = clock
        self._failures: Counter[str] = Counter()  # by the name of the key, as below
        self._rests_until: dict[str, float] = {}

    def is_for(self, models: Collection[str]) -> bool:
        """Whether it is for one of these models."""
        return any(map(self._models.match, models))

    async def judge(self, given: HookInput) -> Verdict:
        """Its verdict, which can be applied. Raises `HookFailed` if it gave none and fails closed."""
        if self._clock() < self._rests_until.get(given.key, 0.0):
            return self._fail(given, "not asked, because it failed several times in a row")
        try:
            async with asyncio.timeout(self._deadline_s):
                answer = await self._ask(given)
            verdict = _check(given, answer)
        except TimeoutError:
            return self._fail(given, f"no answer within {self._deadline_s:g} s", counts=True)
        except Exception as error:
            log.debug("hook %s failed", self.name, exc_info=error)
            return self._fail(given, str(error) or type(error).__name__, counts=True)
        self._failures.pop(given.key, None)
        self._judged(self.name, given.place, verdict.action)
        return verdict

    async def close(self) -> None:
        """Release its resources."""
        await self._asks.close()

    async def _ask(self, given: HookInput) -> Verdict | None:
        await self._slots.acquire()
        is_free = False

        def free() -> None:
            nonlocal is_free
            if not is_free:
                is_free = True
                self._slots.release()

        return await self._asks.ask(given, free)

    def _fail(self, given: HookInput, why: str, *, counts: bool = False) -> Verdict:
        self._judged(self.name, given.place, "failed")
        if counts:
            self._failures[given.key] += 1
            if self._failures[given.key] >= _MOST_FAILURES:
                self._rests_until[given.key] = self._clock() + _REST_S
            if self._failures[given.key] in (1, _MOST_FAILURES):
                log.warning("hook %s failed at the place %s: %.300s", self.name, given.place, why)
        if self._is_open:
            return ALLOW
        raise HookFailed(f"The hook {self.name!r} gave no usable answer, so this is not allowed.")


def compile_patterns(patterns: Sequence[str]) -> re.Pattern[str]:
    """What matches a whole name if one of the patterns (`*`, `?`, `[…]`) does."""
    return re.compile("|".join(map(translate, patterns)))


def _check(given: HookInput, answer: Verdict | None) -> Verdict:
    """An answer that can be applied. Raises `ValueError` for one that cannot."""
    if answer is None:
        return ALLOW
    if type(answer) is not Verdict:
        raise ValueError(f"expected a Verdict or None, got {type(answer).__name__}")
    if len(answer.message) > _MAX_MESSAGE:
        raise ValueError(f"a message of more than {_MAX_MESSAGE} characters")
    if len(answer.secrets) > _MAX_SECRETS:
        raise ValueError(f"more than {_MAX_SECRETS} secrets")
    if answer.action == "replace":
        _check_replacement(given, answer)
    elif answer.action == "ask" and type(given) is not CallInput:
        raise ValueError("'ask' is only for calls")
    return answer


def _check_replacement(given: HookInput, answer: Verdict) -> None:
    if type(given) is ResultInput:
        if answer.text is None:
            raise ValueError("expected the new text of the result")
        return
    if type(given) is not CallInput:
        raise ValueError(f"nothing can be replaced at the place {given.place}")
    if answer.arguments is UNSET:
        raise ValueError("expected the new arguments of the call")
    tool = given.tool
    if tool is None:
        raise ValueError("new arguments for a tool that the request does not offer")
    if given.call.kind == "custom":
        _check_input(tool.custom, answer.arguments)
        return
    if not isinstance(answer.arguments, dict):
        raise ValueError(f"expected new arguments as an object, got {type(answer.arguments).__name__}")
    if faults := validator_of(tool.parameters or {}).faults(answer.arguments):
        raise ValueError(f"new arguments that do not match the schema at {faults[0].path}")


def _check_input(custom: CustomInput | None, text: object) -> None:
    if not isinstance(text, str):
        raise ValueError(f"expected the new input as text, got {type(text).__name__}")
    if custom is not None and custom.grammar is not None and (wrong := custom.grammar.first_error(text)) is not None:
        raise ValueError(f"a new input that does not match the grammar at line {wrong.line}, column {wrong.column}")
