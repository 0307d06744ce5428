"""Reads the outputs of models: text, thoughts, and calls of each shape."""
