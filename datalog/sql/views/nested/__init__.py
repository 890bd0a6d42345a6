"""Queries inside others: in conditions, and those that are joined or kept apart."""
