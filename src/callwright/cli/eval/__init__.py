"""`callwright eval`: measure tool-calling accuracy."""
