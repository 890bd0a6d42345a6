-- The shapes of views that the documentation and the tests of pg_ivm and of OpenIVM show, written anew over accounts of a bank.
-- The last two blocks are what the documentation of pg_ivm lists as not supported.

CREATE TABLE branches (bid INT PRIMARY KEY, city STRING NOT NULL, bbalance BIGINT);
CREATE TABLE accounts (aid INT PRIMARY KEY, bid INT NOT NULL REFERENCES branches, kind STRING NOT NULL, abalance BIGINT);
CREATE TABLE tellers (tid INT PRIMARY KEY, bid INT, tbalance BIGINT NOT NULL);

-- pg_ivm: joins, duplicates, DISTINCT

CREATE VIEW joined AS SELECT a.aid, b.bid, a.abalance, b.bbalance FROM accounts a JOIN branches b USING (bid);
CREATE VIEW joined_where AS
  SELECT a.aid, a.abalance, b.bbalance FROM accounts a JOIN branches b ON a.bid = b.bid WHERE a.abalance > 0 AND b.bbalance > 0;
CREATE VIEW duplicates AS SELECT kind, abalance FROM accounts;
CREATE VIEW distinct_rows AS SELECT DISTINCT kind, bid FROM accounts;
CREATE VIEW self_join AS SELECT t.tid, u.tid AS other FROM tellers t JOIN tellers u ON t.bid = u.bid;
CREATE VIEW three AS
  SELECT a.aid, b.city, t.tid, t.tbalance FROM accounts a JOIN branches b ON a.bid = b.bid JOIN tellers t ON t.bid = b.bid
  WHERE a.kind = 'savings';

-- pg_ivm: aggregates

CREATE VIEW counted AS SELECT bid, COUNT(*) AS n, COUNT(abalance) AS known, SUM(abalance) AS total FROM accounts GROUP BY bid;
CREATE VIEW averaged AS SELECT bid, SUM(abalance) AS total, COUNT(bid) AS n, AVG(abalance) AS mean FROM accounts GROUP BY bid;
CREATE VIEW mean_alone AS SELECT bid, AVG(abalance) AS mean FROM accounts GROUP BY bid;
CREATE VIEW extremes AS SELECT bid, MIN(abalance) AS least, MAX(abalance) AS most FROM accounts GROUP BY bid;
CREATE VIEW all_rows AS SELECT SUM(abalance) AS total, COUNT(abalance) AS n, AVG(abalance) AS mean FROM accounts;
CREATE VIEW all_extremes AS SELECT MIN(abalance) AS least, MAX(abalance) AS most FROM accounts;
CREATE VIEW joined_total AS
  SELECT b.city, SUM(a.abalance) AS total, COUNT(*) AS n FROM accounts a JOIN branches b ON a.bid = b.bid GROUP BY b.city;

-- pg_ivm: subqueries and common table expressions

CREATE VIEW with_teller AS SELECT b.bid, b.city FROM branches b WHERE EXISTS (SELECT 1 FROM tellers t WHERE t.bid = b.bid);
CREATE VIEW with_rich_teller AS
  SELECT b.bid, b.city FROM branches b WHERE EXISTS (SELECT 1 FROM tellers t WHERE t.bid = b.bid AND t.tbalance > 500) AND b.bid > 2;
CREATE VIEW kinds_with_teller AS
  SELECT DISTINCT a.kind FROM accounts a WHERE EXISTS (SELECT 1 FROM tellers t WHERE t.bid = a.bid);
CREATE VIEW from_subquery AS
  SELECT a.aid, b.city FROM accounts a, (SELECT * FROM branches WHERE bbalance > 100) b WHERE a.bid = b.bid;
CREATE VIEW from_cte AS
  WITH b AS (SELECT * FROM branches) SELECT v.aid, v.abalance
  FROM (WITH a AS (SELECT * FROM accounts) SELECT a.aid, a.abalance FROM a, b WHERE a.bid = b.bid) v;
CREATE VIEW cte_twice AS
  WITH t AS (SELECT * FROM tellers) SELECT one.tbalance, two.tbalance AS other FROM t AS one JOIN t AS two ON one.bid = two.bid;

-- pg_ivm: outer joins

CREATE VIEW left_join AS SELECT t.tid, t.tbalance, b.bid, b.city FROM tellers t LEFT JOIN branches b ON t.bid = b.bid;
CREATE VIEW right_join AS SELECT t.tid, b.bid, b.city FROM tellers t RIGHT JOIN branches b ON t.bid = b.bid;
CREATE VIEW full_join AS SELECT t.tid, t.bid AS wanted, b.bid, b.city FROM tellers t FULL JOIN branches b ON t.bid = b.bid;
CREATE VIEW left_chain AS
  SELECT a.aid, b.city, t.tid FROM accounts a LEFT JOIN branches b ON a.bid = b.bid LEFT JOIN tellers t ON b.bid = t.bid;
CREATE VIEW left_counted AS
  SELECT b.bid, COUNT(t.tid) AS tellers, SUM(t.tbalance) AS total FROM branches b LEFT JOIN tellers t ON b.bid = t.bid GROUP BY b.bid;

-- OpenIVM: filters, projections, sums and counts of groups, over one table and a join

CREATE VIEW filtered AS SELECT aid, abalance * 2 AS twice FROM accounts WHERE kind = 'savings' AND abalance > 10;
CREATE VIEW group_total AS SELECT kind, SUM(abalance) AS total FROM accounts GROUP BY kind;
CREATE VIEW group_count AS SELECT kind, COUNT(*) AS n FROM accounts WHERE abalance > 50 GROUP BY kind;
CREATE VIEW city_kinds AS
  SELECT b.city, a.kind, SUM(a.abalance) AS total, COUNT(*) AS n FROM accounts a JOIN branches b ON a.bid = b.bid
  WHERE b.bbalance > 100 GROUP BY b.city, a.kind;

-- not supported by pg_ivm: in subqueries

CREATE VIEW without_teller AS SELECT b.bid, b.city FROM branches b WHERE NOT EXISTS (SELECT 1 FROM tellers t WHERE t.bid = b.bid);
CREATE VIEW in_subquery AS SELECT aid, kind FROM accounts WHERE bid IN (SELECT bid FROM tellers WHERE tbalance < 300);
CREATE VIEW exists_or AS
  SELECT b.bid, b.city FROM branches b WHERE EXISTS (SELECT 1 FROM tellers t WHERE t.bid = b.bid) OR b.bid > 15;
CREATE VIEW exists_alone AS SELECT a.kind FROM accounts a WHERE EXISTS (SELECT 1 FROM tellers t WHERE a.bid = t.bid);
CREATE VIEW joined_groups AS
  SELECT b.city, g.n FROM branches b, (SELECT bid, COUNT(*) AS n FROM accounts GROUP BY bid) g WHERE b.bid = g.bid;
CREATE VIEW joined_distinct AS SELECT b.bid, b.city FROM branches b, (SELECT DISTINCT bid FROM tellers) t WHERE b.bid = t.bid;
CREATE VIEW scalar_subquery AS
  SELECT b.bid, (SELECT MAX(t.tbalance) FROM tellers t WHERE t.bid = b.bid) AS most FROM branches b;

-- not supported by pg_ivm: other clauses

CREATE VIEW having_many AS SELECT bid, COUNT(*) AS n FROM accounts GROUP BY bid HAVING COUNT(*) > 100;
CREATE VIEW first_ten AS SELECT aid, abalance FROM accounts ORDER BY abalance DESC NULLS LAST, aid LIMIT 10;
CREATE VIEW newest AS
  SELECT bid, tid FROM (SELECT bid, tid, ROW_NUMBER() OVER (PARTITION BY bid ORDER BY tid DESC) AS place FROM tellers) WHERE place = 1;
CREATE VIEW both_sides AS SELECT bid, tbalance AS amount FROM tellers UNION ALL SELECT bid, bbalance FROM branches;
CREATE VIEW all_bids AS SELECT bid FROM tellers UNION SELECT bid FROM branches;
CREATE VIEW bids_without AS SELECT bid FROM branches EXCEPT SELECT bid FROM tellers;
CREATE VIEW filter_clause AS SELECT bid, COUNT(*) FILTER (WHERE kind = 'savings') AS savings, COUNT(*) AS n FROM accounts GROUP BY bid;
CREATE VIEW distinct_count AS SELECT kind, COUNT(DISTINCT bid) AS branches FROM accounts GROUP BY kind;
CREATE VIEW rolled_up AS SELECT kind, bid, SUM(abalance) AS total FROM accounts GROUP BY ROLLUP (kind, bid);
