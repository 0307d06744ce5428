"""Checks a configuration without starting anything or asking a server."""

from collections.abc import Iterator
from contextlib import contextmanager

from callwright.database.engine import Database
from callwright.errors import ConfigError
from callwright.gateway.access.keys import Keys
from callwright.gateway.config.build_models import build_models, link_fallbacks
from callwright.gateway.config.changes import differences
from callwright.gateway.config.config import Config
from callwright.gateway.hooks.build import build_hooks
from callwright.gateway.observability.redaction import Redactor
from callwright.gateway.server_tools.mcp_servers import McpServers
from callwright.gateway.server_tools.search_engine import search_engine


def check_config(config: Config) -> list[str]:
    """The names of the models. Raises `ConfigError` if a gateway of this configuration would."""
    if config.store is not None and config.store.url != "none":
        Database.parse(config.store.url)
    models = link_fallbacks(build_models(config), config)
    Keys(config.keys, models)
    build_hooks(config, lambda *_: None)
    Redactor(config.redact)
    servers = McpServers(config.mcp)
    if config.search is not None:
        search_engine(config.search, servers, [server.label for server in config.mcp])
    return list(models)


@contextmanager
def explain_restart(running: Config, wanted: Config) -> Iterator[None]:
    """Around the use of what is applicable of `wanted`: have an error that only a restart resolves name its cause."""
    try:
        yield
    except ConfigError as error:
        causes = [str(one) for one in differences(running, wanted) if one.needs_restart]
        if not causes:
            raise
        try:
            check_config(wanted)
        except ConfigError:
            raise error from None
        raise ConfigError(f"It is right, but only after a restart: {'; '.join(causes)}. Until then: {error}") from error
