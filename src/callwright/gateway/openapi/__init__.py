"""The gateway's own OpenAPI document, made from its routes and types."""
