-- A small shop as analysts write its views: joins, groups, HAVING, DISTINCT, LEFT JOIN, NOT EXISTS (`shop.py`).

CREATE TABLE region (id BIGINT PRIMARY KEY, name STRING NOT NULL);
CREATE TABLE city (id BIGINT PRIMARY KEY, name STRING NOT NULL, region BIGINT NOT NULL REFERENCES region(id));
CREATE TABLE customer (id BIGINT PRIMARY KEY, name STRING NOT NULL, city BIGINT NOT NULL REFERENCES city(id), segment STRING NOT NULL);
CREATE TABLE category (id BIGINT PRIMARY KEY, name STRING NOT NULL);
CREATE TABLE product (id BIGINT PRIMARY KEY, name STRING NOT NULL, category BIGINT NOT NULL REFERENCES category(id), price DECIMAL(10, 2) NOT NULL);
CREATE TABLE coupon (id BIGINT PRIMARY KEY, code STRING NOT NULL, percent BIGINT NOT NULL);
CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT NOT NULL REFERENCES customer(id), placed DATE NOT NULL, status STRING NOT NULL, coupon BIGINT REFERENCES coupon(id));
CREATE TABLE line (orders BIGINT NOT NULL REFERENCES orders(id), no BIGINT NOT NULL, product BIGINT NOT NULL REFERENCES product(id), quantity BIGINT NOT NULL, price DECIMAL(10, 2) NOT NULL, PRIMARY KEY (orders, no));
CREATE TABLE payment (id BIGINT PRIMARY KEY, orders BIGINT NOT NULL REFERENCES orders(id), kind STRING NOT NULL, amount DECIMAL(12, 2) NOT NULL);
CREATE TABLE stock (product BIGINT NOT NULL REFERENCES product(id), place STRING NOT NULL, pieces BIGINT NOT NULL, PRIMARY KEY (product, place));

CREATE VIEW regions AS SELECT id, name FROM region;
CREATE VIEW cities AS SELECT c.id, c.name, r.id AS region, r.name AS region_name FROM city c JOIN region r ON c.region = r.id;
CREATE VIEW customer_list AS SELECT k.id, k.name, k.segment, c.id AS city, c.name AS city_name, r.name AS region_name
  FROM customer k JOIN city c ON k.city = c.id JOIN region r ON c.region = r.id;
CREATE VIEW products AS SELECT p.id, p.name, p.price, g.id AS category, g.name AS category_name FROM product p JOIN category g ON p.category = g.id;
CREATE VIEW order_list AS SELECT o.id, o.placed, o.status, k.id AS customer, k.name AS customer_name FROM orders o JOIN customer k ON o.customer = k.id;
CREATE VIEW open_orders AS SELECT o.id, o.customer, o.placed FROM orders o WHERE o.status = 'open';
CREATE VIEW order_coupon AS SELECT o.id, u.id AS coupon, u.code, u.percent FROM orders o LEFT JOIN coupon u ON o.coupon = u.id;
CREATE VIEW line_detail AS SELECT l.orders, l.no, l.quantity, l.price, p.id AS product, p.name AS product_name, c.name AS city_name, r.name AS region_name
  FROM line l JOIN orders o ON l.orders = o.id JOIN product p ON l.product = p.id JOIN customer k ON o.customer = k.id
  JOIN city c ON k.city = c.id JOIN region r ON c.region = r.id;
CREATE VIEW line_names AS SELECT l.orders, l.no, l.quantity, p.name AS product_name, g.name AS category_name
  FROM line l JOIN product p ON l.product = p.id JOIN category g ON p.category = g.id;
CREATE VIEW line_value AS SELECT l.orders, l.no, l.quantity * l.price AS value FROM line l;
CREATE VIEW card_orders AS SELECT o.id, o.customer, o.placed, y.id AS payment, y.amount FROM orders o JOIN payment y ON y.orders = o.id WHERE y.kind = 'card';
CREATE VIEW payments AS SELECT y.id, y.orders, y.kind, y.amount, o.customer FROM payment y JOIN orders o ON y.orders = o.id;
CREATE VIEW order_totals AS SELECT l.orders, count(*) AS n, sum(l.quantity) AS pieces, sum(l.quantity * l.price) AS total FROM line l GROUP BY l.orders;
CREATE VIEW customer_orders AS SELECT o.customer, count(*) AS n, max(o.placed) AS last FROM orders o GROUP BY o.customer;
CREATE VIEW customer_totals AS SELECT k.id, k.name, count(*) AS n, sum(l.quantity * l.price) AS total
  FROM line l JOIN orders o ON l.orders = o.id JOIN customer k ON o.customer = k.id GROUP BY k.id, k.name;
CREATE VIEW region_revenue AS SELECT r.name, count(*) AS n, sum(l.quantity * l.price) AS revenue
  FROM line l JOIN orders o ON l.orders = o.id JOIN customer k ON o.customer = k.id JOIN city c ON k.city = c.id JOIN region r ON c.region = r.id GROUP BY r.name;
CREATE VIEW category_revenue AS SELECT g.id, g.name, count(*) AS n, sum(l.quantity * l.price) AS revenue
  FROM line l JOIN product p ON l.product = p.id JOIN category g ON p.category = g.id GROUP BY g.id, g.name;
CREATE VIEW product_sold AS SELECT l.product, count(*) AS n, sum(l.quantity) AS pieces FROM line l GROUP BY l.product;
CREATE VIEW daily AS SELECT o.placed, count(*) AS n, sum(l.quantity * l.price) AS revenue FROM line l JOIN orders o ON l.orders = o.id GROUP BY o.placed;
CREATE VIEW status_count AS SELECT o.status, count(*) AS n FROM orders o GROUP BY o.status;
CREATE VIEW payment_kinds AS SELECT y.kind, count(*) AS n, sum(y.amount) AS amount FROM payment y GROUP BY y.kind;
CREATE VIEW segments AS SELECT DISTINCT segment FROM customer;
CREATE VIEW bought AS SELECT DISTINCT o.customer, l.product FROM orders o JOIN line l ON l.orders = o.id;
CREATE VIEW stock_list AS SELECT s.product, s.place, s.pieces, p.name FROM stock s JOIN product p ON s.product = p.id;
CREATE VIEW stock_total AS SELECT s.product, count(*) AS n, sum(s.pieces) AS pieces FROM stock s GROUP BY s.product;
CREATE VIEW stock_value AS SELECT g.name, count(*) AS n, sum(s.pieces * p.price) AS value FROM stock s JOIN product p ON s.product = p.id JOIN category g ON p.category = g.id GROUP BY g.name;
CREATE VIEW product_stock AS SELECT p.id, p.name, s.place, s.pieces FROM product p LEFT JOIN stock s ON s.product = p.id;
CREATE VIEW good_customers AS SELECT o.customer, count(*) AS n FROM orders o GROUP BY o.customer HAVING count(*) > 3;
CREATE VIEW big_orders AS SELECT l.orders, sum(l.quantity * l.price) AS total, count(*) AS n FROM line l GROUP BY l.orders HAVING sum(l.quantity * l.price) > 500;
CREATE VIEW unpaid AS SELECT o.id, o.customer, o.status FROM orders o WHERE NOT EXISTS (SELECT 1 FROM payment y WHERE y.orders = o.id);
CREATE VIEW never_ordered AS SELECT k.id, k.name FROM customer k WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer = k.id);
CREATE VIEW mean_payment AS SELECT y.kind, sum(y.amount) / count(*) AS mean FROM payment y GROUP BY y.kind;
