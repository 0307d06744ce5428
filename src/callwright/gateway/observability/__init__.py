"""What is reported of requests: metrics, logs, records."""
