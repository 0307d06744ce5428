"""OpenAI's API on the wire: requests in, answers out, errors."""
