"""Change feeds: what their events say, and the net effect of a batch.

Each format is a module with a reader of its records (`events.EventReader`): `debezium`, `delta`, `iceberg`, `plain`.
Events become split changes (`changes.Change`: a deleted or an inserted row, and where it stands in the order), and
statements over windows (`condense`) give what a batch of them amounts to.
"""
