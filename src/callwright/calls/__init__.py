"""Tool calls: the tools of a request, and how a model's calls are repaired, coerced, validated and streamed."""
