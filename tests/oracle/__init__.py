"""A brute-force oracle for self-maintainability, sharing no code with the product."""
