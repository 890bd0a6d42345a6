"""Fallback: which keys of which base relations to read, and what is known after reading them."""
