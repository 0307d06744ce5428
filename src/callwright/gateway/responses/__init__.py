"""What the Responses API adds to a turn: its state, and the answer as it is stored."""
