"""The processes, sockets and signals of a running gateway."""
