"""Parsers that dialects are composed of, one file per shape of a call: JSON, named parameters, Python, and others."""
