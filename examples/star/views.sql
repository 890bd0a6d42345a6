-- The retail star of views.dl in SQL: `program = "views.sql"` in warehouse.toml makes the same warehouse.

CREATE TABLE items     (item INT PRIMARY KEY, name STRING NOT NULL, category STRING NOT NULL);
CREATE TABLE customers (customer INT PRIMARY KEY, name STRING NOT NULL, segment STRING NOT NULL);
CREATE TABLE stores    (store INT PRIMARY KEY, city STRING NOT NULL, region STRING NOT NULL);
CREATE TABLE dates     (date INT PRIMARY KEY, day DATE NOT NULL, month INT NOT NULL);
CREATE TABLE sales (
  sale     INT PRIMARY KEY,
  item     INT NOT NULL REFERENCES items,
  customer INT NOT NULL REFERENCES customers,
  store    INT NOT NULL REFERENCES stores,
  date     INT NOT NULL REFERENCES dates,
  quantity INT NOT NULL,
  price    DECIMAL(9, 2) NOT NULL
);

-- Copies of three dimensions. There is none of the customers.

CREATE VIEW all_items  AS SELECT item, name AS item_name, category FROM items;
CREATE VIEW all_stores AS SELECT * FROM stores;
CREATE VIEW all_dates  AS SELECT * FROM dates;

-- Facts joined with dimensions beforehand.

CREATE VIEW store_sales AS
  SELECT sale, item, customer, store, city, region, date, quantity, price
  FROM sales JOIN stores USING (store);

CREATE VIEW december_food AS
  SELECT s.sale, s.item, i.name AS item_name, s.customer, s.store, s.date, d.day, s.quantity, s.price
  FROM sales s
  JOIN items i ON i.item = s.item
  JOIN dates d ON d.date = s.date
  WHERE i.category = 'food' AND d.month = 12;

CREATE VIEW gold_sales AS
  SELECT s.sale, s.item, s.customer, c.name AS customer_name, s.store, s.date, s.quantity, s.price
  FROM sales s, customers c
  WHERE c.customer = s.customer AND c.segment = 'gold';
