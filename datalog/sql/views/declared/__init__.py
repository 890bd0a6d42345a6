"""What texts declare: tables, their columns and keys, and what dumps of schemas hold beside them."""
