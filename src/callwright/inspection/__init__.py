"""What happened in turns, as pages show it: kept, counted, and each character of an output with what became of it."""
