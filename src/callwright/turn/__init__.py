"""One turn of a model: render, ask, read, check, ask again; and what is seen of it."""
