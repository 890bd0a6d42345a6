-- Ordinary views over TPC-H: they show a part of what they join, or group it.

CREATE VIEW open_orders AS
SELECT o_orderkey, o_custkey, o_totalprice
FROM orders
WHERE o_orderstatus = 'O';

CREATE VIEW line_facts AS
SELECT l_orderkey, l_linenumber, o_custkey, o_orderdate, l_quantity
FROM lineitem
JOIN orders ON l_orderkey = o_orderkey;

CREATE VIEW cust_orders AS
SELECT c_custkey, c_name, n_name, o_orderkey, o_totalprice
FROM orders
JOIN customer ON o_custkey = c_custkey
JOIN nation ON c_nationkey = n_nationkey;

CREATE VIEW nation_revenue AS
SELECT n_name, o_orderdate, SUM(o_totalprice) AS revenue, COUNT(*) AS n
FROM orders
JOIN customer ON o_custkey = c_custkey
JOIN nation ON c_nationkey = n_nationkey
GROUP BY n_name, o_orderdate;

CREATE VIEW part_sold AS
SELECT DISTINCT l_partkey, l_suppkey
FROM lineitem;

CREATE VIEW brand_revenue AS
SELECT p_brand, SUM(l_extendedprice * (1 - l_discount)) AS revenue, COUNT(*) AS n
FROM lineitem
JOIN part ON l_partkey = p_partkey
GROUP BY p_brand;

CREATE VIEW customers AS
SELECT c_custkey, c_name, c_mktsegment
FROM customer;

CREATE VIEW building_lines AS
SELECT l_orderkey, l_linenumber, l_extendedprice
FROM lineitem
JOIN orders ON l_orderkey = o_orderkey
JOIN customer ON o_custkey = c_custkey
WHERE c_mktsegment = 'BUILDING';

CREATE VIEW supplier_nations AS
SELECT s_suppkey, s_name, n_name, r_name
FROM supplier
JOIN nation ON s_nationkey = n_nationkey
JOIN region ON n_regionkey = r_regionkey;

CREATE VIEW sold AS
SELECT l_orderkey, l_linenumber, p_brand, s_name
FROM lineitem
JOIN part ON l_partkey = p_partkey
JOIN supplier ON l_suppkey = s_suppkey;

