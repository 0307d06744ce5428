"""The gateway on Ray Serve, for those who have a cluster: plain ASGI, its state in PostgreSQL.

    .venv/bin/python -m pip install '.[fast,postgres]' 'ray[serve]'
    .venv/bin/serve run deploy.ray_serve:gateway config=/etc/callwright.toml

Each replica reads the file where it runs. Of [server] host, port and workers are Ray's to say here.
"""

from pathlib import Path

from ray import serve
from ray.serve import Application
from starlette.applications import Starlette

from callwright.gateway.app import create_app
from callwright.gateway.config.config import load_config


@serve.deployment(num_replicas=2, max_ongoing_requests=2_048, graceful_shutdown_timeout_s=30)
@serve.ingress()
class Gateway:
    """One replica."""

    def __init__(self, config: str) -> None:
        self._config = load_config(Path(config))

    def __serve_build_asgi_app__(self) -> Starlette:
        return create_app(self._config)


def gateway(arguments: dict[str, str]) -> Application:
    """What `serve run` starts; `config` is the path of a callwright.toml."""
    return Gateway.bind(arguments["config"])
