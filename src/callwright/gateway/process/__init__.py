"""Processes, sockets and signals of a serving gateway."""
