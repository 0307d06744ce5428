"""What prompts are composed of."""
