"""The Responses API: requests, items, events."""
