"""Calls in program notation."""
