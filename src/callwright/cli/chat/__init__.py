"""`callwright chat`: talk to a model with tools in the terminal."""
