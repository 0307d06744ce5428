"""Spending: what requests cost, and the budgets of keys, teams and models."""
