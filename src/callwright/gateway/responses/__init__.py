"""What the Responses API does around a turn: state, tools that run here, truncation."""
