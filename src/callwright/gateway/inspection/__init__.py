"""The pages: what the gateway says of itself and of its turns, for browsers."""
