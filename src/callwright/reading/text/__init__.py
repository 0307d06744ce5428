"""The text of an answer: prose, thoughts, doubt, calls without marks or of other formats."""
