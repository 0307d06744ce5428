"""The Chat Completions API: requests, answers, chunks."""
