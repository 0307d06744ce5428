"""What the Responses API adds to a turn: state, compaction, the answer as it is stored."""
