-- The views' first contents: what the warehouse held before the product was brought in. Written by hand, so that
-- they do not come from what is shown. One statement for each view, named in the comment before it.

-- view: regions
SELECT r_regionkey AS region_key, r_name AS region FROM region;

-- view: nations
SELECT n_nationkey AS nation_key, n_name AS nation, n_regionkey AS region_key FROM nation;

-- view: customers
SELECT c_custkey AS customer_key, c_name AS customer, c_nationkey AS nation_key, c_mktsegment AS segment,
       c_acctbal AS balance
FROM customer;

-- view: european_suppliers
SELECT s_suppkey AS supplier_key, s_name AS supplier, n_nationkey AS nation_key, n_name AS nation,
       r_regionkey AS region_key
FROM supplier
JOIN nation ON n_nationkey = s_nationkey
JOIN region ON r_regionkey = n_regionkey
WHERE r_name = 'EUROPE';

-- view: building_orders
SELECT c_custkey AS customer_key, c_name AS customer, c_nationkey AS nation_key, c_acctbal AS balance,
       o_orderkey AS order_key, o_orderstatus AS status, o_totalprice AS total, o_orderdate AS ordered
FROM customer
JOIN orders ON o_custkey = c_custkey
WHERE c_mktsegment = 'BUILDING';

-- view: same_day_orders
SELECT a.o_custkey AS customer_key, a.o_orderdate AS ordered,
       a.o_orderkey AS order_key, a.o_orderstatus AS status, a.o_totalprice AS total,
       b.o_orderkey AS other_key, b.o_orderstatus AS other_status, b.o_totalprice AS other_total
FROM orders a
JOIN orders b ON b.o_custkey = a.o_custkey AND b.o_orderdate = a.o_orderdate;

-- view: order_lines
SELECT c_custkey AS customer_key, c_name AS customer, c_nationkey AS nation_key, c_mktsegment AS segment,
       c_acctbal AS balance, o_orderkey AS order_key, o_orderstatus AS status, o_totalprice AS total,
       o_orderdate AS ordered, l_linenumber AS line, l_partkey AS part_key, l_suppkey AS supplier_key,
       l_quantity AS quantity, l_extendedprice AS price, l_discount AS discount, l_shipdate AS shipped
FROM lineitem
JOIN orders ON o_orderkey = l_orderkey
JOIN customer ON c_custkey = o_custkey;

-- view: sales
SELECT p_partkey AS part_key, p_name AS part, p_brand AS brand, p_type AS type, s_suppkey AS supplier_key,
       s_name AS supplier, s_nationkey AS nation_key, l_orderkey AS order_key, l_linenumber AS line,
       l_quantity AS quantity, l_extendedprice AS price, l_discount AS discount, l_shipdate AS shipped
FROM lineitem
JOIN part ON p_partkey = l_partkey
JOIN supplier ON s_suppkey = l_suppkey;
