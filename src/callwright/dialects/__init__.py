"""One file per model family; see `callwright.dialects.base`."""
