"""JSON Schemas: validation, and their text in prompts."""
