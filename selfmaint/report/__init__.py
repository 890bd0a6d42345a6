"""Verdicts, reads, changes and errors for people (rich tables) and for machines (plain values for JSON)."""
