"""Recorded turns for the inspection pages: stored, counted, and each character of an output with its part."""
