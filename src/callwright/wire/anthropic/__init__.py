"""Anthropic's Messages API: requests, answers and streams of `POST /v1/messages`."""
