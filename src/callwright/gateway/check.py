"""Checks a configuration without starting anything or asking a server."""

from callwright.database.engine import Database
from callwright.gateway.access.keys import Keys
from callwright.gateway.config.build_models import build_models, link_fallbacks
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
