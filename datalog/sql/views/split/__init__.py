"""Queries as two: a helper view, and the query over it."""
