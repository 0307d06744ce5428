"""`callwright launch`: coding agents on the models of a gateway."""
