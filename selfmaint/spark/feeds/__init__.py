"""Change feeds in Spark: their changes as DataFrames, and the net effect by window functions."""
