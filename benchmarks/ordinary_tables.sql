-- The tables of TPC-H, with keys and foreign keys, that the views of ordinary.sql and distinct.sql read.

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
