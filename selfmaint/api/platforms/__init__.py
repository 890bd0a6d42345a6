"""What is read and written with an engine."""
