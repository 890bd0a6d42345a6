"""What the user has: base relations, views, an update, and what is known besides."""
