"""HTTP/1.1 to servers: httptools parses; connections are kept, answers come in bounded pieces, every fault has a name.

Knows HTTP and nothing of what is sent.
"""
