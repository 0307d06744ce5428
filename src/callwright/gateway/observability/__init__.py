"""Reports on requests: metrics, logs, records."""
