"""Runs checks against a server: each different request once, a few in parallel, within limits of time and size."""

import asyncio
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from msgspec import Struct

from callwright.conform import read_chat, read_messages, read_responses
from callwright.conform.answer import EVENTS, PROBLEMS, Answer, Body, events_of
from callwright.conform.check import (
    HELLO,
    HOLDS,
    Check,
    Status,
    Step,
    Target,
    Variant,
    Verdict,
    refusal,
    request_of,
    worst,
)
from callwright.conform.checks import choice, errors, form, history, turns
from callwright.conform.checks.asks import TEXT
from callwright.conform.checks.faults import DIALECTS, NATIVE, baseline, fault_checks
from callwright.doctor.client import Asker, Reply, dig
from callwright.errors import ConfigError
from callwright.eval.wires import WireName
from callwright.tolerant_json.codec import encode
from callwright.upstreams.base_urls import without_credentials

CHECKS: Final[tuple[Check, ...]] = (*form.CHECKS, *choice.CHECKS, *history.CHECKS, *turns.CHECKS, *errors.CHECKS)
_READERS: Final = {"chat": read_chat, "responses": read_responses, "messages": read_messages}
_HEADERS: Final[Mapping[WireName, Mapping[str, str]]] = {"messages": {"anthropic-version": "2023-06-01"}}
REQUEST_S: Final = 60.0
_NO_ENDPOINT: Final = (404, 405, 501)
_NO_ANSWER: Final = (0, 401, 403, 429)
_STREAM_STARTS: Final = (b"data:", b"event:", b":", b"id:", b"retry:")
# What to do if no request is answered, by the status.
_ADVICE: Final[Mapping[int, str]] = {
    0: "Start the server, or correct the URL.",
    401: "Give a valid key with --key-env.",
    403: "Give a key that is valid for this model with --key-env.",
    429: "Wait until its limit allows more requests, or raise the limit: a run sends some 400.",
    200: "Is this the base URL, such as http://localhost:8000/v1?",
    **dict.fromkeys(
        _NO_ENDPOINT, "Is this the base URL, such as http://localhost:8000/v1, and the name of the model right?"
    ),
}
_OTHER_ADVICE: Final = "Correct the model with --model, or look into the server's log."


class Result(Struct, frozen=True):
    """The verdict on one check over one API, whole or streamed."""

    id: str
    variant: Variant
    title: str
    source: str
    status: Status
    expected: str = ""
    got: str = ""


class Posts(Protocol):
    """Sends requests: an `Asker`."""

    async def post(self, url: str, body: Mapping[str, Any] | bytes, headers: Mapping[str, str] | None = None) -> Reply:
        """POST a body."""
        ...


class Access(Struct, frozen=True):
    """The server's key, and connections without it."""

    key: str
    posts: Posts

    async def post(self, url: str, sent: Body | bytes, headers: Mapping[str, str], of_key: Mapping[str, str]) -> Reply:
        """POST with these headers, in which `{key}` is the key."""
        given = {name: value.format(key=self.key) for name, value in of_key.items()}
        return await self.posts.post(url, sent, {**headers, **given})


def read_answer(wire: WireName, variant: Variant, sent: Body | bytes, reply: Reply) -> Answer:
    """Read the answer to a request."""
    streamed = variant == "streamed"
    body = {} if isinstance(sent, bytes) else sent
    answer = Answer(wire, streamed, body, reply.status, reply.headers, reply.fault)
    answer.problems = ", ".join(value for name, value in reply.headers.items() if PROBLEMS.search(name))
    if reply.status >= 400 or (reply.fault and not reply.body):
        answer.body = reply.json if reply.json is not None else reply.body.decode(errors="replace")
        answer.error = dig(answer.body, "error")
    elif _is_stream(reply):
        events = events_of(reply, answer)
        answer.body = [event.data for event in events]
        answer.expect(streamed, "fields", "one object, not a stream", answer.body[:1])
        _READERS[wire].read_stream(answer, events)
    else:
        answer.body, answer.raw = reply.json, reply.body.decode(errors="replace")
        if answer.expect(isinstance(answer.body, dict), "fields", "a JSON object", answer.raw):
            answer.expect(not streamed, "framing", "a stream of events", answer.body)
            _READERS[wire].read_whole(answer, answer.body)
        answer.body = answer.body if answer.body is not None else answer.raw
    answer.is_readable &= streamed == (not answer.raw)
    return answer


def _is_stream(reply: Reply) -> bool:
    """Whether an answer is a stream of events: a wrong content type is a finding of its own."""
    is_named = EVENTS in reply.headers.get("content-type", "").lower()
    return is_named or reply.body.lstrip().startswith(_STREAM_STARTS)


def choose_checks(
    wires: Sequence[WireName], only: Sequence[str] = (), faults: Mapping[WireName, Sequence[Check]] | None = None
) -> list[tuple[WireName, Check]]:
    """The checks over these APIs whose ids begin with one of `only`; raises `ConfigError` if it finds nothing.
    `faults`: those of a scripted model.
    """
    of_models = faults or {}
    found = [(wire, check) for wire in wires for check in (*CHECKS, *of_models.get(wire, ())) if wire in check.sources]
    if only:
        found = [(wire, check) for wire, check in found if any(id_of(wire, check).startswith(one) for one in only)]
    if not found:
        raise ConfigError(f"--only {' '.join(only)}: no check has such an id. `callwright conform --list` prints all.")
    return found


def id_of(wire: WireName, check: Check) -> str:
    """The id of a check over an API."""
    return f"{wire}.{check.name}"


class _Run:
    """The requests of a run: equal ones are sent once, and their answers are read for each check."""

    def __init__(self, target: Target, posts: Posts, access: Access | None) -> None:
        self._target, self._posts, self._access = target, posts, access
        self._asked: dict[tuple[WireName, Variant, bytes], asyncio.Task[Reply]] = {}

    async def ask(self, wire: WireName, variant: Variant, path: str, sent: Body | bytes) -> Answer:
        """The answer to a request."""
        data = sent if isinstance(sent, bytes) else encode(sent)
        key = (wire, variant, data)
        if key not in self._asked:
            self._asked[key] = asyncio.create_task(self._posts.post(self._target.url + path, data, _HEADERS.get(wire)))
        return read_answer(wire, variant, sent, await self._asked[key])

    async def basis(self, wire: WireName, variant: Variant, body: Body) -> tuple[Verdict, int]:
        """Whether the server answers a request that is not wrong, and the status of its answer."""
        path, sent = request_of(CHECKS[0], wire, body, self._target, variant)
        answer = await self.ask(wire, variant, path, sent)
        if answer.is_readable and answer.error is None and not answer.fault:
            return HOLDS, answer.status
        status: Status = "not offered" if answer.status in _NO_ENDPOINT else "not shown"
        kind = "a stream" if variant == "streamed" else "an answer"
        return Verdict(status, f"{kind} of the API", f"POST {path}: {refusal(answer)}"), answer.status

    async def judge(self, wire: WireName, check: Check, variant: Variant) -> Verdict:
        """The verdict on a check."""
        for body in (HELLO, *check.given):
            verdict, _ = await self.basis(wire, variant, body)
            if verdict.status == "not offered" or (verdict.status != "holds" and body in check.given):
                return verdict
        if check.talk is not None:
            return await self._converse(wire, check, variant, check.talk())
        requests = [request_of(check, wire, body, self._target, variant) for body in check.asks]
        answers = [await self.ask(wire, variant, path, sent) for path, sent in requests]
        return worst([check.verdict(answer) for answer in answers])

    async def _converse(
        self, wire: WireName, check: Check, variant: Variant, steps: Generator[Step, Answer, Verdict]
    ) -> Verdict:
        step = next(steps)
        while True:
            path, sent = request_of(check, wire, step.body or TEXT, self._target, variant)
            if step.path:
                path, sent = step.path, {**step.fields}
            elif isinstance(sent, dict):
                sent |= step.fields
            if step.headers is None:
                answer = await self.ask(wire, variant, path, sent)
            elif self._access is None:
                return Verdict("not offered", "", "no key was given")
            else:
                reply = await self._access.post(self._target.url + path, sent, _HEADERS.get(wire, {}), step.headers)
                answer = read_answer(wire, variant, sent, reply)
            answer.is_readable |= bool(step.path)
            verdict = check.verdict(answer)
            if verdict.status != "holds":
                return verdict
            try:
                step = steps.send(answer)
            except StopIteration as ended:
                returned: Verdict = ended.value
                return returned


async def run(
    target: Target,
    checks: Sequence[tuple[WireName, Check]],
    posts: Posts,
    told: Callable[[Result], None],
    access: Access | None = None,
) -> list[Result]:
    """Run checks against a server. Calls `told` with each result; returns all, in their order. Without
    `access` keys are not checked. Raises `ConfigError` if the server answers nothing that can be checked.
    """
    asks = _Run(target, posts, access)
    await _find_basis(asks, target, dict.fromkeys((wire, kind) for wire, check in checks for kind in check.variants))

    async def judge(wire: WireName, check: Check, variant: Variant) -> Result:
        verdict = await asks.judge(wire, check, variant)
        expected, got = target.redact(verdict.expected), target.redact(verdict.got)
        found = Result(id_of(wire, check), variant, check.title, check.sources[wire], verdict.status, expected, got)
        told(found)
        return found

    tasks = [judge(wire, check, variant) for wire, check in checks for variant in check.variants]
    return list(await asyncio.gather(*tasks))


async def _find_basis(asks: _Run, target: Target, places: Iterable[tuple[WireName, Variant]]) -> None:
    """Return if the server answers over one of these APIs, raise `ConfigError` if not."""
    failed: list[tuple[Verdict, int]] = []
    for wire, variant in places:
        verdict, status = await asks.basis(wire, variant, HELLO)
        if verdict.status == "holds":
            return
        failed.append((verdict, status))
        if not status:
            break
    verdict, status = min(failed, key=lambda one: one[1] in _NO_ENDPOINT)
    told = target.redact(verdict.got)
    raise ConfigError(
        f"{without_credentials(target.url)} gives nothing to judge: {told}. {_ADVICE.get(status, _OTHER_ADVICE)}"
    )


async def faults_to_check(
    target: Target, wires: Sequence[WireName], posts: Posts
) -> Mapping[WireName, Sequence[Check]]:
    """The checks of a scripted model's faults: which of them depends on the dialects that the gateway reads."""
    checks = {dialect: baseline(dialect) for dialect in (NATIVE, *DIALECTS)}
    found = await run(target, [(wire, check) for wire in wires for check in checks.values()], posts, lambda _: None)
    read = {result.id for result in found if result.variant == "whole" and result.status == "holds"}
    return {
        wire: fault_checks([name for name, check in checks.items() if id_of(wire, check) in read]) for wire in wires
    }


def asker_for(url: str, api_key: str | None, requests: int) -> Asker:
    """Connections to a server, with the key in the headers of both vendors."""
    headers = {"authorization": f"Bearer {api_key}", "x-api-key": api_key} if api_key else {}
    return Asker(url, headers, request_s=REQUEST_S, total_s=REQUEST_S * max(10, requests), hides=False)


async def first_model(url: str, asker: Asker) -> str:
    """The first model that the server lists. Raises `ConfigError`."""
    reply = await asker.get(f"{url}/models")
    name = dig(reply.json, "data", 0, "id")
    if isinstance(name, str) and name:
        return name
    told = f"{without_credentials(url)}/models names no model: {reply.without(asker.secrets).summary}."
    status = 200 if reply.is_page else reply.status
    advice = _ADVICE[status] if reply.is_page or status in _NO_ANSWER else "Name one with --model."
    raise ConfigError(f"{told} {advice}")
