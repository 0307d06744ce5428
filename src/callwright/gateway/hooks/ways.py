"""Three kinds of hook: a Python function in a thread, a server over HTTP, or a rule of this project."""

import asyncio
import hashlib
import hmac
import inspect
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, get_args

from callwright.hooks import Action, Hook, HookInput, Verdict
from callwright.tolerant_json.codec import NotJsonError, decode, encode
from callwright.upstreams.http_client.connections import Connections, Timeouts
from callwright.upstreams.http_client.response import whole

_MAX_ANSWER: Final = 4_194_304
_OK: Final = 200
_NO_CONTENT: Final = 204
SIGNATURE_HEADER: Final = "x-callwright-signature"


class FunctionHook:
    """A Python function, plain or async. Each question has a thread of its own: one that never returns holds nothing
    but that thread and its place among the parallel ones.
    """

    def __init__(self, function: Hook) -> None:
        self._function = function

    async def ask(self, given: HookInput, free: Callable[[], None]) -> Verdict | None:
        """See `Asks`."""
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[Any] = loop.create_future()

        def end(answer: object, error: BaseException | None) -> None:
            free()
            if answered.done():
                return
            if error is None:
                answered.set_result(answer)
            else:
                failed = RuntimeError(type(error).__name__)  # its message may repeat content
                failed.__cause__ = error
                answered.set_exception(failed)

        def work() -> None:
            answer, failure = None, None
            try:
                answer = self._function(given)
                if inspect.isawaitable(answer):
                    answer = asyncio.run(_wait_for(answer))
            except BaseException as error:  # SystemExit, too: it is the hook's failure, not the gateway's end
                failure = error
            with suppress(RuntimeError):  # the gateway has ended
                loop.call_soon_threadsafe(end, answer, failure)

        try:
            threading.Thread(target=work, name="callwright-hook", daemon=True).start()
        except BaseException:
            free()
            raise
        return await answered  # type: ignore[no-any-return]  # checked by the caller

    async def close(self) -> None:
        """See `Asks`."""


async def _wait_for(answer: Any) -> Any:
    return await answer


class HttpHook:
    """A server that gets each question as JSON. `secret` signs the body with its time."""

    def __init__(self, url: str, headers: Mapping[str, str], deadline_s: float, secret: bytes | None = None) -> None:
        self._url = url
        self._secret = secret
        self._deadline_s = deadline_s
        given = {"accept": "application/json", "content-type": "application/json", **headers}
        self._connections = Connections(given, Timeouts(deadline_s, deadline_s))

    async def ask(self, given: HookInput, free: Callable[[], None]) -> Verdict | None:
        """See `Asks`."""
        try:
            body = encode({"version": 1, "place": given.place, **given.as_json()})
            response = await self._connections.send("POST", self._url, body, self._signature(body), self._deadline_s)
            async with response:
                if response.status == _NO_CONTENT:
                    return None
                if response.status != _OK:
                    raise ValueError(f"status {response.status}")
                answer = await whole(response, _MAX_ANSWER, self._deadline_s)
            return _verdict(bytes(answer))
        finally:
            free()

    async def close(self) -> None:
        """See `Asks`."""
        await self._connections.close()

    def _signature(self, body: bytes) -> Mapping[str, str] | None:
        if self._secret is None:
            return None
        at = str(int(time.time()))
        signature = hmac.new(self._secret, at.encode() + b"." + body, hashlib.sha256).hexdigest()
        return {SIGNATURE_HEADER: f"t={at},v1={signature}"}


def _verdict(answer: bytes) -> Verdict:
    """The verdict of a server. Raises `ValueError` without values of the answer, which may repeat a conversation."""
    try:
        return decode(answer, Verdict)
    except NotJsonError:
        got = "no JSON"
    with suppress(NotJsonError):
        value = decode(answer)
        got = type(value).__name__
        if isinstance(value, dict):
            got = ", ".join(f"{name!r} ({type(one).__name__})" for name, one in value.items()) or "an empty object"
    actions = ", ".join(get_args(Action))
    fields = ", ".join(Verdict.__struct_fields__)
    raise ValueError(f"expected an object with {fields}, whose action is one of {actions}; got {got}")


class OwnHook:
    """A rule of this project, which is quick: it runs on the event loop."""

    def __init__(self, function: Hook) -> None:
        self._function = function

    async def ask(self, given: HookInput, free: Callable[[], None]) -> Verdict | None:
        """See `Asks`."""
        free()
        return self._function(given)

    async def close(self) -> None:
        """See `Asks`."""
