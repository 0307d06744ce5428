"""Calls of tools: what is offered, and how what a model wrote is repaired, checked and streamed."""
