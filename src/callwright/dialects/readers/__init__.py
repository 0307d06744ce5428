"""What readers of formats are composed of: one file per kind of body."""
