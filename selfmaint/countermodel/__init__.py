"""Databases by the definition: whether one explains all that is known, and making such databases."""
