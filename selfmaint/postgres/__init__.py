"""Base relations in PostgreSQL, for any engine. The only importer of `psycopg`."""
