"""A model in this process: llama.cpp."""
