"""Calls as JSON between marks."""
