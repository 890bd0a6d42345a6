"""Verdicts at definition time: for every view and every kind of change, from rules and constraints alone."""
