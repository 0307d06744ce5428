"""JSON Schemas: validation, and the texts that prompts make of them."""
