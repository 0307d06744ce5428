"""Conversations that span runs and processes, stored in a database."""
