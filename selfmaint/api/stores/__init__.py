"""The store of a warehouse: opened, filled, committed to, and kept in order."""
