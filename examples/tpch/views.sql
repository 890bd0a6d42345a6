-- The warehouse of views.dl in SQL: `program = "views.sql"` in warehouse.toml makes the same views. SQL needs the keys
-- of its tables: without one a table may hold a row twice. With them more views can follow.

CREATE TABLE region (r_regionkey BIGINT PRIMARY KEY, r_name STRING NOT NULL);

CREATE TABLE nation (
  n_nationkey BIGINT PRIMARY KEY,
  n_name      STRING NOT NULL,
  n_regionkey BIGINT NOT NULL
);

CREATE TABLE customer (
  c_custkey    BIGINT PRIMARY KEY,
  c_name       STRING NOT NULL,
  c_nationkey  BIGINT NOT NULL,
  c_mktsegment STRING NOT NULL,
  c_acctbal    DECIMAL(15, 2) NOT NULL
);

CREATE TABLE supplier (
  s_suppkey   BIGINT PRIMARY KEY,
  s_name      STRING NOT NULL,
  s_nationkey BIGINT NOT NULL
);

CREATE TABLE part (
  p_partkey BIGINT PRIMARY KEY,
  p_name    STRING NOT NULL,
  p_brand   STRING NOT NULL,
  p_type    STRING NOT NULL
);

CREATE TABLE orders (
  o_orderkey    BIGINT PRIMARY KEY,
  o_custkey     BIGINT NOT NULL,
  o_orderstatus STRING NOT NULL,
  o_totalprice  DECIMAL(15, 2) NOT NULL,
  o_orderdate   DATE NOT NULL
);

CREATE TABLE lineitem (
  l_orderkey      BIGINT NOT NULL,
  l_linenumber    INT NOT NULL,
  l_partkey       BIGINT NOT NULL,
  l_suppkey       BIGINT NOT NULL,
  l_quantity      DECIMAL(15, 2) NOT NULL,
  l_extendedprice DECIMAL(15, 2) NOT NULL,
  l_discount      DECIMAL(15, 2) NOT NULL,
  l_shipdate      DATE NOT NULL,
  PRIMARY KEY (l_orderkey, l_linenumber)
);

CREATE VIEW regions AS
SELECT r_regionkey AS region_key, r_name AS region FROM region;

CREATE VIEW nations AS
SELECT n_nationkey AS nation_key, n_name AS nation, n_regionkey AS region_key FROM nation;

CREATE VIEW customers AS
SELECT c_custkey AS customer_key, c_name AS customer, c_nationkey AS nation_key, c_mktsegment AS segment,
       c_acctbal AS balance
FROM customer;

CREATE VIEW european_suppliers AS
SELECT s_suppkey AS supplier_key, s_name AS supplier, n_nationkey AS nation_key, n_name AS nation,
       r_regionkey AS region_key
FROM supplier
JOIN nation ON n_nationkey = s_nationkey
JOIN region ON r_regionkey = n_regionkey
WHERE r_name = 'EUROPE';

CREATE VIEW building_orders AS
SELECT c_custkey AS customer_key, c_name AS customer, c_nationkey AS nation_key, c_acctbal AS balance,
       o_orderkey AS order_key, o_orderstatus AS status, o_totalprice AS total, o_orderdate AS ordered
FROM customer
JOIN orders ON o_custkey = c_custkey
WHERE c_mktsegment = 'BUILDING';

CREATE VIEW same_day_orders AS
SELECT a.o_custkey AS customer_key, a.o_orderdate AS ordered,
       a.o_orderkey AS order_key, a.o_orderstatus AS status, a.o_totalprice AS total,
       b.o_orderkey AS other_key, b.o_orderstatus AS other_status, b.o_totalprice AS other_total
FROM orders a
JOIN orders b ON b.o_custkey = a.o_custkey AND b.o_orderdate = a.o_orderdate;

CREATE VIEW order_lines AS
SELECT c_custkey AS customer_key, c_name AS customer, c_nationkey AS nation_key, c_mktsegment AS segment,
       c_acctbal AS balance, o_orderkey AS order_key, o_orderstatus AS status, o_totalprice AS total,
       o_orderdate AS ordered, l_linenumber AS line, l_partkey AS part_key, l_suppkey AS supplier_key,
       l_quantity AS quantity, l_extendedprice AS price, l_discount AS discount, l_shipdate AS shipped
FROM lineitem
JOIN orders ON o_orderkey = l_orderkey
JOIN customer ON c_custkey = o_custkey;

CREATE VIEW sales AS
SELECT p_partkey AS part_key, p_name AS part, p_brand AS brand, p_type AS type, s_suppkey AS supplier_key,
       s_name AS supplier, s_nationkey AS nation_key, l_orderkey AS order_key, l_linenumber AS line,
       l_quantity AS quantity, l_extendedprice AS price, l_discount AS discount, l_shipdate AS shipped
FROM lineitem
JOIN part ON p_partkey = l_partkey
JOIN supplier ON s_suppkey = l_suppkey;
