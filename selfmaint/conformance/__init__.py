"""Recorded cases with exact answers: reading them, deciding them, comparing."""
