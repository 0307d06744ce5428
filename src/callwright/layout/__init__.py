"""How calls are written: one declaration defines the writer, the tags and the shape for constraints."""
