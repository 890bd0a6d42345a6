"""The engine protocol and the in-memory engine."""
