"""Calls in text without markup of their own: found, and judged to be meant or shown."""
