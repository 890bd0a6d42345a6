-- Two views of TPC-H data: totals by nation and market segment, and orders supplied from another nation.
-- After the views V1 and V2 of Zhou, Larson and Elmongui, "Lazy Maintenance of Materialized Views" (2007).

CREATE TABLE nation (n_nationkey BIGINT PRIMARY KEY, n_name STRING NOT NULL, n_regionkey BIGINT NOT NULL);

CREATE TABLE customer (
  c_custkey    BIGINT PRIMARY KEY,
  c_name       STRING NOT NULL,
  c_nationkey  BIGINT NOT NULL REFERENCES nation,
  c_mktsegment STRING NOT NULL
);

CREATE TABLE supplier (
  s_suppkey   BIGINT PRIMARY KEY,
  s_name      STRING NOT NULL,
  s_nationkey BIGINT NOT NULL REFERENCES nation
);

CREATE TABLE partsupp (
  ps_partkey BIGINT,
  ps_suppkey BIGINT REFERENCES supplier,
  ps_comment STRING,
  PRIMARY KEY (ps_partkey, ps_suppkey)
);

CREATE TABLE orders (o_orderkey BIGINT PRIMARY KEY, o_custkey BIGINT NOT NULL REFERENCES customer);

CREATE TABLE lineitem (
  l_orderkey      BIGINT REFERENCES orders,
  l_linenumber    INT,
  l_partkey       BIGINT NOT NULL,
  l_suppkey       BIGINT NOT NULL,
  l_quantity      DECIMAL(15, 2) NOT NULL,
  l_extendedprice DECIMAL(15, 2) NOT NULL,
  PRIMARY KEY (l_orderkey, l_linenumber),
  FOREIGN KEY (l_partkey, l_suppkey) REFERENCES partsupp
);

CREATE MATERIALIZED VIEW totals_by_nation AS
  SELECT n_name, c_mktsegment,
         count(*) AS totalcnt,
         sum(l_extendedprice) AS totalprice,
         sum(l_quantity) AS totalquantity
  FROM customer, orders, lineitem, nation
  WHERE c_custkey = o_custkey
    AND o_orderkey = l_orderkey
    AND n_nationkey = c_nationkey
  GROUP BY n_name, c_mktsegment;

-- With the keys of all five tables, so that no row stands twice.
CREATE MATERIALIZED VIEW supplied_from_abroad AS
  SELECT o_orderkey, l_linenumber, s_name, c_name, c_mktsegment, ps_comment
  FROM customer, orders, lineitem, supplier, partsupp
  WHERE c_custkey = o_custkey
    AND o_orderkey = l_orderkey
    AND l_suppkey = ps_suppkey
    AND l_partkey = ps_partkey
    AND ps_suppkey = s_suppkey
    AND s_nationkey <> c_nationkey;
