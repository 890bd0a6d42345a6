"""Views that are kept as text: what they may use, what they read, and what is told of them all the same."""
