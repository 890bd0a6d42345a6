-- Ordinary views over TPC-H: they show a part of what they join, or group it.

CREATE TABLE region (
  r_regionkey BIGINT PRIMARY KEY,
  r_name STRING NOT NULL
);
CREATE TABLE nation (
  n_nationkey BIGINT PRIMARY KEY,
  n_name STRING NOT NULL,
  n_regionkey BIGINT NOT NULL REFERENCES region(r_regionkey)
);
CREATE TABLE customer (
  c_custkey BIGINT PRIMARY KEY,
  c_name STRING NOT NULL,
  c_nationkey BIGINT NOT NULL REFERENCES nation(n_nationkey),
  c_mktsegment STRING NOT NULL,
  c_acctbal DECIMAL(15,2) NOT NULL
);
CREATE TABLE supplier (
  s_suppkey BIGINT PRIMARY KEY,
  s_name STRING NOT NULL,
  s_nationkey BIGINT NOT NULL REFERENCES nation(n_nationkey)
);
CREATE TABLE part (
  p_partkey BIGINT PRIMARY KEY,
  p_name STRING NOT NULL,
  p_brand STRING NOT NULL,
  p_type STRING NOT NULL
);
CREATE TABLE orders (
  o_orderkey BIGINT PRIMARY KEY,
  o_custkey BIGINT NOT NULL REFERENCES customer(c_custkey),
  o_orderstatus STRING NOT NULL,
  o_totalprice DECIMAL(15,2) NOT NULL,
  o_orderdate DATE NOT NULL
);
CREATE TABLE lineitem (
  l_orderkey BIGINT NOT NULL REFERENCES orders(o_orderkey),
  l_linenumber INT NOT NULL,
  l_partkey BIGINT NOT NULL REFERENCES part(p_partkey),
  l_suppkey BIGINT NOT NULL REFERENCES supplier(s_suppkey),
  l_quantity DECIMAL(15,2) NOT NULL,
  l_extendedprice DECIMAL(15,2) NOT NULL,
  l_discount DECIMAL(15,2) NOT NULL,
  l_shipdate DATE NOT NULL,
  PRIMARY KEY (l_orderkey, l_linenumber)
);
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

