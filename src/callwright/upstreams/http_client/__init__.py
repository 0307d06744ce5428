"""HTTP/1.1 client: httptools parses; connections are pooled, answers read in bounded pieces, every fault has a name.

Knows HTTP and nothing of the content.
"""
