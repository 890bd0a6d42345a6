"""Change feeds: what their events say, and the net effect of a batch.

A reader of its records (`changes.EventReader`) stands for each format: Debezium's (`debezium`), and those that are rows
with columns for what changed (`formats`): of Delta Lake, of Iceberg, and plain ones. Events become split changes
(`changes.Change`: a deleted or an inserted row, and where it stands in the order), and statements over windows
(`condense`) give what a batch of them amounts to.
"""
