"""Outer joins: what tells, in each row of a view, of which sides it has rows."""
