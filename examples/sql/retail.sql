-- A retailer's customers and sales, and the view of what highly valued customers bought.
-- After Example 1.1 of Colby, Griffin, Libkin, Mumick and Trickey, "Algorithms for Deferred View Maintenance" (1996).

CREATE TABLE customer (
  custId  INT PRIMARY KEY,
  name    STRING,
  address STRING,
  score   STRING
);

-- One line for each customer and item.
CREATE TABLE sales (
  custId     INT NOT NULL REFERENCES customer,
  itemNo     INT NOT NULL,
  quantity   INT,
  salesPrice DECIMAL(9, 2),
  PRIMARY KEY (custId, itemNo)
);

CREATE MATERIALIZED VIEW valued_sales (custId, name, score, itemNo, quantity) AS
  SELECT c.custId, c.name, c.score, s.itemNo, s.quantity
  FROM customer c, sales s
  WHERE c.custId = s.custId
    AND s.quantity <> 0
    AND c.score = "High";

-- What was paid, by score. No key is among the columns: a row stands as often as such a sale was made.
CREATE MATERIALIZED VIEW payments (score, salesPrice, paid) AS
  SELECT c.score, s.salesPrice, s.quantity * s.salesPrice
  FROM customer c JOIN sales s ON c.custId = s.custId;
