"""A model without weights, that does what tests and demonstrations ask of it."""
