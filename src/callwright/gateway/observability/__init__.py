"""What is told of requests: metrics, logs, records."""
