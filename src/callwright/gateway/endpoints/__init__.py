"""The handlers of each path."""
