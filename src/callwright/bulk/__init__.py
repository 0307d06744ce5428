"""Work on many transcripts: parse outputs, render prompts, validate calls, convert between forms."""
