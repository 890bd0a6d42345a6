"""Forms of SQL written out as others that mean the same, so that what reads a query has fewer to know."""
