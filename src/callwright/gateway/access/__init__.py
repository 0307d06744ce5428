"""Access to the gateway: API keys, rate limits, concurrency."""
