"""The findings about a server, as values that can be serialized as JSON."""

from typing import Final, Literal, TypeAlias

from msgspec import Struct

from callwright.errors import did_you_mean

ServerName: TypeAlias = Literal["llamacpp", "vllm", "sglang", "ollama", "tgi", "transformers", "callwright", "unknown"]
# How people write them.
NAMES: Final[dict[ServerName, str]] = {
    "llamacpp": "llama.cpp",
    "vllm": "vLLM",
    "sglang": "SGLang",
    "ollama": "Ollama",
    "tgi": "TGI",
    "transformers": "transformers serve",
    "callwright": "Callwright",
    "unknown": "unknown",
}
# `works`: a call or a text arrived as it should. `enforced`: the answer obeys the constraint. `ignored`: the server
# accepted the request without doing it. `no call`: the server shows the tools to the model, which does not call them.
# `refused`: it rejected it. `error`: it failed. `unclear`: undecided.
Status: TypeAlias = Literal["works", "enforced", "ignored", "no call", "refused", "error", "unclear"]
Group: TypeAlias = Literal["endpoints", "tools", "constraints"]

GROUPS: Final[dict[Group, str]] = {
    "endpoints": "Endpoints",
    "tools": "The server's own calls",
    "constraints": "Constraints",
}


# Number of models to list if the given one is not among them.
_TOLD: Final = 5


class Identity(Struct, frozen=True):
    """The kind of server, and the `sign` that identifies it."""

    server: ServerName
    version: str | None
    sign: str


class ProbeResult(Struct, frozen=True):
    """The result of one probe. `evidence` is an excerpt of the answer, on one line."""

    group: Group
    probe: str
    status: Status
    evidence: str


class Findings(Struct, frozen=True, kw_only=True):
    """All that is known of a server and one of its models.

    `url` is the base URL at which it answered, `asked_url` the given one, both without credentials. `message`: the
    problem with it as a whole, in words of our own; `evidence`: its answer in that case. `chat_models` are those of
    its `models` that can chat. `context` counts tokens. `reasoning` names the field that has the reasoning.
    `llguidance`: whether llama.cpp was built with it. `dialect`: the format in which the model writes calls, and
    its options, both derived from its name or template.
    """

    url: str
    asked_url: str = ""
    message: str = ""
    evidence: str = ""
    server: ServerName = "unknown"
    version: str | None = None
    sign: str = ""
    models: tuple[str, ...] = ()
    chat_models: tuple[str, ...] = ()
    model: str | None = None
    context: int | None = None
    dialect: str | None = None
    dialect_reason: str = ""
    dialect_options: tuple[tuple[str, object], ...] = ()
    reasoning: str | None = None
    llguidance: bool | None = None
    results: tuple[ProbeResult, ...] = ()
    requests: int = 0
    seconds: float = 0.0

    def title(self) -> str:
        """The server's name and version, for people."""
        name = "Model server" if self.server == "unknown" else NAMES[self.server]
        return " ".join(filter(None, (name, self.version)))

    def facts(self) -> list[tuple[str, str]]:
        """The known facts about the server, for people: names and texts."""
        server = " ".join(filter(None, (NAMES[self.server], self.version)))
        build = {None: None, True: "built in", False: "not built in"}[self.llguidance]
        given = {
            "server": f"{server}: {self.sign}" if self.sign and (self.results or self.server != "unknown") else None,
            "model": f"{self.model}{self._listing()}" if self.model else None,
            "dialect": f"{self.dialect}: {self.dialect_reason}" if self.dialect else None,
            "context": f"{self.context:,} tokens" if self.context else None,
            "reasoning": f"comes in {self.reasoning}" if self.reasoning else None,
            "llguidance": build,
        }
        return [(name, text) for name, text in given.items() if text]

    def answers(self) -> str:
        """The output of the server and its model, on one line."""
        answers = [f"{result.probe}: {result.status}, {result.evidence}" for result in self.results]
        return "; ".join(filter(None, (self.evidence, *answers)))

    def cost(self) -> str:
        """The number of requests and the time taken, for people."""
        return f"{self.requests} {'request' if self.requests == 1 else 'requests'} in {self.seconds:.1f} s"

    def _listing(self) -> str:
        """Whether the server lists the model, for people."""
        if self._is_listed():
            return f" (of {len(self.models)})" if len(self.models) > 1 else ""
        if not self.models:
            return " (the server lists no models)"
        return f" (not listed by the server.{self._names()})"

    def _is_listed(self) -> bool:
        """Whether the server lists the model. Ollama takes a name without its `:latest`."""
        return self.model in self.models or f"{self.model}:latest" in self.models

    def _names(self) -> str:
        """The listed name that was probably meant, or some of those that there are."""
        told = f" It lists: {', '.join(self.models[:_TOLD])}{', …' if len(self.models) > _TOLD else ''}."
        return did_you_mean(self.model or "", self.models) or told

    def warnings(self) -> list[str]:
        """The probable mistakes of the user, though the server answers: each with the way out."""
        found = []
        if self.asked_url and self.url not in (self.asked_url, f"{self.asked_url}/v1"):
            found.append(f"{self.asked_url} is not its base URL. It answers at {self.url}: give this instead.")
        if self.server == "callwright":
            found.append(
                f"{self.url} is another Callwright gateway, which clients can use directly. Give the URL of its model "
                "server instead."
            )
        elif self.model and self.models and not self._is_listed():
            found.append(f"The server does not list the model {self.model}.{self._names()}")
        return found

    def status(self, probe: str) -> Status | None:
        """The status of a probe; None if it was not run."""
        return next((result.status for result in self.results if result.probe == probe), None)


def key_hint(evidence: str) -> str:
    """The way out of a refusal for want of an API key; empty for other evidence."""
    if not evidence.startswith(("HTTP 401", "HTTP 403")):
        return ""
    return " It requires an API key: name the environment variable that holds it by --key-env VAR."
