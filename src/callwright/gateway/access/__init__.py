"""Who may ask, how much at once and how fast."""
