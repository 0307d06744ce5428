"""Prompts that other programs make of our conversations: the models' own chat templates."""
