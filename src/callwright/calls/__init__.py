"""Tool calls: what a request offers, and how a model's calls are repaired, coerced, checked and streamed."""
