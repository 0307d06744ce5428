"""Text that streams in pieces."""
