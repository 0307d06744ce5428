"""Building blocks of prompts, for rendering."""
