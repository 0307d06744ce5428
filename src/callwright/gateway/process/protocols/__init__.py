"""Parses bytes into requests and frames: uvicorn's protocols, with limits on the bytes read before a request."""
