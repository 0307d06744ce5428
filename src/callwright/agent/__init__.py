"""The runtime: tools from Python functions, and the loop that asks a model and runs its calls."""
