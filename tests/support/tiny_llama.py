"""llama.cpp's server with a model of random weights."""

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


class TinyLlama:
    """llama.cpp's server with that model, in this process; it serves until the process ends. Its own chat template is
    plain.
    """

    def __init__(self, folder: Path, chat_template: str | None = None) -> None:
        xllamacpp: Any = pytest.importorskip("xllamacpp", reason="xllamacpp is not installed")
        write_model(folder / "tiny.gguf", template=chat_template or "")
        parameters = xllamacpp.CommonParams()
        parameters.model.path = str(folder / "tiny.gguf")
        parameters.port = _free_port()
        parameters.n_ctx = CONTEXT_TOKENS
        parameters.n_parallel = 1
        parameters.warmup = False
        parameters.verbosity = 1
        parameters.cpuparams.n_threads = 1
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


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
