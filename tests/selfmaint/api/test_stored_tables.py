"""The columns in which the rows of relations and views differ."""

from __future__ import annotations

from datalog.sql.views import read_sql
from selfmaint.api.file.programs import catalog_of_sql
from selfmaint.api.following.how_followed import tables_of, tables_of_views

PROGRAM = """
CREATE TABLE customer (id INT PRIMARY KEY, name STRING NOT NULL, code STRING UNIQUE);
CREATE TABLE sale (id INT PRIMARY KEY, customer INT NOT NULL REFERENCES customer, total DECIMAL(10, 2) NOT NULL);
CREATE TABLE event (customer INT, kind STRING);
CREATE VIEW sales AS SELECT s.id, s.customer, s.total, c.name FROM sale s JOIN customer c ON s.customer = c.id;
CREATE VIEW by_customer AS SELECT c.name, c.id, sum(s.total) AS total, count(*) AS n
  FROM sale s JOIN customer c ON s.customer = c.id GROUP BY c.name, c.id;
CREATE VIEW by_name AS SELECT c.name, count(*) AS n FROM sale s JOIN customer c ON s.customer = c.id GROUP BY c.name;
CREATE VIEW events AS SELECT customer, kind FROM event;
CREATE VIEW totals AS SELECT total FROM sale;
CREATE VIEW doubled AS SELECT customer, id + id AS twice FROM sale;
"""


def test_rows_differ_in_keys_and_in_what_they_are_grouped_by() -> None:
    catalog = catalog_of_sql(read_sql(PROGRAM))
    tables = {**tables_of(catalog.relations), **tables_of_views(catalog)}
    found = {name: [tuple(its.columns[i] for i in key) for key in its.keys] for name, its in tables.items()}
    assert found["customer"] == [("id",)]  # `code` may be null more than once
    assert found["event"] == []
    assert found["sales"] == [("id",)]
    assert found["by_customer"] == [("id",)]
    assert found["by_name"] == [("name",)]
    assert not {"events", "totals", "doubled"} & found.keys()
