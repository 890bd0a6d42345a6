-- DISTINCT views over TPC-H, which hide the keys that they join by.

CREATE VIEW sold_by AS
SELECT DISTINCT l_partkey, l_suppkey
FROM lineitem;

CREATE VIEW order_customers AS
SELECT o_orderkey, o_custkey
FROM orders;

CREATE VIEW bought AS
SELECT DISTINCT o_custkey, l_partkey
FROM lineitem
JOIN orders ON l_orderkey = o_orderkey;

CREATE VIEW buyers AS
SELECT DISTINCT o_custkey
FROM orders;

CREATE VIEW part_brands AS
SELECT p_partkey, p_brand
FROM part;

CREATE VIEW brand_suppliers AS
SELECT DISTINCT p_brand, l_suppkey
FROM lineitem
JOIN part ON l_partkey = p_partkey;
