"""Calls as named parameters between tags."""
