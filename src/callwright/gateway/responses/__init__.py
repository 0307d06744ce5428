"""The parts of a turn specific to the Responses API: its state, and the stored answer."""
