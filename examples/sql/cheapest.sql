-- The lowest cost at which a supplier of the Middle East supplies a part.
-- After the view of He, Xie, Yang and Yu, "Asymmetric Batch Incremental View Maintenance" (2005), section 5.

CREATE TABLE region   (regionkey INT PRIMARY KEY, name STRING NOT NULL);
CREATE TABLE nation   (nationkey INT PRIMARY KEY, name STRING NOT NULL, regionkey INT NOT NULL REFERENCES region);
CREATE TABLE supplier (suppkey INT PRIMARY KEY, name STRING NOT NULL, nationkey INT NOT NULL REFERENCES nation);
CREATE TABLE partsupp (
  partkey    INT NOT NULL,
  suppkey    INT NOT NULL REFERENCES supplier,
  supplycost DECIMAL(15, 2) NOT NULL,
  PRIMARY KEY (partkey, suppkey)
);

CREATE MATERIALIZED VIEW cheapest (supplycost) AS
  SELECT MIN(PS.supplycost)
  FROM partsupp AS PS, supplier AS S, nation AS N, region AS R
  WHERE S.suppkey = PS.suppkey
    AND S.nationkey = N.nationkey
    AND N.regionkey = R.regionkey
    AND R.name = 'MIDDLE EAST';
