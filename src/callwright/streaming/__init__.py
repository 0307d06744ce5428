"""Text that comes in pieces."""
