"""How calls are written: one declaration says the writer, the tags and the shape for constraints."""
