"""The pages: information about the gateway and its turns, for browsers."""
