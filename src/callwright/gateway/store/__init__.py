"""What outlives a request: responses and conversations, in SQLite or PostgreSQL."""
