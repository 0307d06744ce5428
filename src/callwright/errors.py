"""Exceptions, by whose fault they are.

    CallwrightError
    ├── RequestError      the caller was wrong: carries the status, type, code and param of OpenAI's error
    │   ├── GrammarError  the grammar of a custom tool cannot be used: carries the line and the column
    │   └── SessionError  a session cannot be continued: another run has it, or it is full
    ├── ConfigError       the configuration or the command line was wrong
    └── UpstreamError     the model server failed, stalled or lied

A model that writes nonsense is no exception: that is data, a `Problem` among the events.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import partial
from typing import Final, Literal

UpstreamFault = Literal["unreachable", "timeout", "status", "protocol", "cut", "unmet", "stopped"]
# The share of letters that two words must have in common, in order. At 0.6, which is usual, "nope" is near "openai".
_NEAR: Final = 0.7


class CallwrightError(Exception):
    """Root of all errors raised on purpose."""


class ApprovalWarning(UserWarning):
    """A run ended because a call waits for an approval that its program never asked for."""


class RequestError(CallwrightError):
    """Bad input of a caller, with the fields of OpenAI's error object.

    `param` is the path of the offending field in the request (`tools[0].function.name`), or None. `headers` are sent
    with it.
    """

    def __init__(
        self,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        status: int = 400,
        type_: str = "invalid_request_error",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code
        self.status = status
        self.type = type_
        self.headers = dict(headers or {})


class RefusedByServerError(RequestError):
    """A request that a model's server rejects. Message and `code` are the server's own: no list of turns has them.

    `field` is the field of its own request that the server names, if any. The caller may never have sent it, so `param`
    stays None, to be set by a caller that knows.
    """

    def __init__(self, message: str, *, code: str | None = None, field: str | None = None) -> None:
        super().__init__(message, code=code)
        self.field = field


class GrammarError(RequestError):
    """A grammar that OpenAI would reject, or that cannot be compiled.

    `line` and `column` count characters of the definition from 1; both are 1 if the place is unknown. The message
    has them too.
    """

    def __init__(self, message: str, *, line: int = 1, column: int = 1) -> None:
        super().__init__(message, code="invalid_value")
        self.line = line
        self.column = column


class SessionError(RequestError):
    """A session that cannot be used. `code`: `session_busy` (another run has it), `session_lost` (another run took it
    over, because this one was silent for too long), `session_full` (no room for more messages), `session_changed` (it
    changed since the run began to wait).
    """

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message, code=code, status=409)


class ConfigError(CallwrightError):
    """The configuration is invalid; the message has the place and the fix."""


class UpstreamError(CallwrightError):
    """A failure of a model server.

    `fault`: `unreachable` (no connection), `timeout` (silent too long), `status` (an HTTP error, then `status` is
    set), `protocol` (an answer that violates its API), `cut` (it ended in the middle of an answer),
    `unmet` (the model made no call, or no valid answer, that the request requires, in any attempt),
    `stopped` (the gateway is ending).
    `upstream` names the server without credentials. `retry_after_s` repeats its `retry-after` header. `said` is the
    whole error text of the server, of which the message has the start; `code` is its own code.
    """

    def __init__(
        self,
        message: str,
        *,
        fault: UpstreamFault,
        upstream: str,
        status: int | None = None,
        retry_after_s: str | None = None,
        said: str = "",
        code: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.fault = fault
        self.upstream = upstream
        self.status = status
        self.retry_after_s = retry_after_s
        self.said = said
        self.code = code

    def __reduce__(self) -> tuple[object, ...]:
        """Errors of a worker process reach the one that waits for it."""
        return partial(UpstreamError, self.message, fault=self.fault, upstream=self.upstream), (), vars(self)


def is_unmet(error: BaseException | None) -> bool:
    """Whether the model made no call, or no answer, that the request demands, in any attempt."""
    return isinstance(error, UpstreamError) and error.fault == "unmet"


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The closest match in `known` for a misspelled `word`, or None.

    A name of the same words counts first, in any order, singular or plural: `retrys` is `retries`, not `retry_s`. Then
    one of nearly the same letters, then the only one that has all the words of `word`.
    """
    names = list(known)
    given = _words(word)
    same = [name for name in names if _words(name) == given]
    near = same or get_close_matches(word.lower(), names, n=1, cutoff=_NEAR)
    if near:
        return near[0]
    longer = [name for name in names if given and not given - _words(name)]
    return longer[0] if len(longer) == 1 else None


def _words(name: str) -> Counter[str]:
    """The words of a name, in the singular."""
    return Counter(_singular(word) for word in re.findall(r"[^\W_]+", name.lower()))


def _singular(word: str) -> str:
    stem = word.removesuffix("s") if len(word) > len("is") else word
    return f"{stem[:-2]}y" if stem.endswith("ie") else stem


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """` Did you mean 'hermes'?` when one of `known` is close to `word`, else an empty string."""
    near = nearest(word, known)
    return f" Did you mean {near!r}?" if near else ""


def reason_of(error: BaseException) -> str:
    """What went wrong, in words: of an error of the system without its number and its path, which the sentence around
    it names.
    """
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
