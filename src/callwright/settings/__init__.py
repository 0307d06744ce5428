"""Settings of users: bounds, optional packages, words for mistakes."""
