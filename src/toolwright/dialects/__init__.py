"""One file per model family; see `toolwright.dialects.base`."""
