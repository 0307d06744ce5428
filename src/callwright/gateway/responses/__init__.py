"""What the Responses API adds to a turn: state, tools that run on the server, truncation."""
