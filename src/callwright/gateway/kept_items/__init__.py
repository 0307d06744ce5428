"""Caches the parts of a turn that clients do not send back, and restores them in histories that lack them."""
