"""One turn of a model: render the prompt, ask, parse, check, retry; and observe all of it."""
