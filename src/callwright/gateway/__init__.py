"""The gateway: configuration, endpoints, answers."""
