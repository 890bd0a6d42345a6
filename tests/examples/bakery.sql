-- The shapes of models that public dbt projects of a small shop have: staging views that rename and convert, marts that join them
-- and one another, common table expressions that are called like the views that they read.

CREATE TABLE raw_people (id STRING PRIMARY KEY, first_name STRING NOT NULL, last_name STRING);
CREATE TABLE raw_shops (id STRING PRIMARY KEY, name STRING NOT NULL, opened_at TIMESTAMP NOT NULL);
CREATE TABLE raw_goods (code STRING PRIMARY KEY, name STRING NOT NULL, sort STRING, cents BIGINT NOT NULL);
CREATE TABLE raw_ingredients (
  id STRING NOT NULL, code STRING NOT NULL REFERENCES raw_goods, cents BIGINT NOT NULL, spoils BOOLEAN NOT NULL, PRIMARY KEY (id, code));
CREATE TABLE raw_sales (
  id STRING PRIMARY KEY, person STRING NOT NULL REFERENCES raw_people, shop STRING NOT NULL REFERENCES raw_shops,
  sold_at TIMESTAMP NOT NULL, state STRING NOT NULL, total BIGINT NOT NULL);
CREATE TABLE raw_lines (
  id STRING PRIMARY KEY, sale STRING NOT NULL REFERENCES raw_sales, code STRING NOT NULL REFERENCES raw_goods);
CREATE TABLE raw_payments (
  id STRING PRIMARY KEY, sale STRING NOT NULL REFERENCES raw_sales, way STRING NOT NULL, cents BIGINT NOT NULL);

CREATE VIEW stg_people AS
  WITH source AS (SELECT * FROM raw_people),
  renamed AS (SELECT id AS person_id, first_name, last_name, concat(first_name, ' ', coalesce(last_name, '')) AS name FROM source)
  SELECT * FROM renamed;
CREATE VIEW stg_shops AS SELECT id AS shop_id, name AS shop, DATE_TRUNC('day', opened_at) AS opened_on FROM raw_shops;
CREATE VIEW stg_goods AS
  SELECT code AS good_id, name AS good, CAST(cents / 100 AS DECIMAL(16, 2)) AS price,
    coalesce(sort = 'bread', false) AS is_bread, coalesce(sort = 'drink', false) AS is_drink
  FROM raw_goods;
CREATE VIEW stg_ingredients AS
  SELECT md5(coalesce(cast(id AS STRING), '_null_') || '-' || coalesce(cast(code AS STRING), '_null_')) AS ingredient_key,
    id AS ingredient_id, code AS good_id, CAST(cents / 100 AS DECIMAL(16, 2)) AS cost, spoils AS is_perishable
  FROM raw_ingredients;
CREATE VIEW stg_sales AS
  SELECT id AS sale_id, person AS person_id, shop AS shop_id, state, total AS total_cents,
    CAST(total / 100 AS DECIMAL(16, 2)) AS total, DATE_TRUNC('day', sold_at) AS sold_on
  FROM raw_sales;
CREATE VIEW stg_lines AS SELECT id AS line_id, sale AS sale_id, code AS good_id FROM raw_lines;
CREATE VIEW stg_payments AS
  SELECT id AS payment_id, sale AS sale_id, way, CAST(cents / 100 AS DECIMAL(16, 2)) AS amount FROM raw_payments;

CREATE VIEW lines AS
  WITH lines AS (SELECT * FROM stg_lines),
  sales AS (SELECT * FROM stg_sales),
  goods AS (SELECT * FROM stg_goods),
  costs AS (SELECT good_id, SUM(cost) AS cost FROM stg_ingredients GROUP BY 1),
  joined AS (
    SELECT lines.*, sales.sold_on, goods.good, goods.price, goods.is_bread, goods.is_drink, costs.cost
    FROM lines
    LEFT JOIN sales ON lines.sale_id = sales.sale_id
    LEFT JOIN goods ON lines.good_id = goods.good_id
    LEFT JOIN costs ON lines.good_id = costs.good_id)
  SELECT * FROM joined;

CREATE VIEW sales AS
  WITH sales AS (SELECT * FROM stg_sales),
  summary AS (
    SELECT sale_id, SUM(cost) AS cost, SUM(price) AS subtotal, COUNT(line_id) AS lines,
      SUM(CASE WHEN is_bread THEN 1 ELSE 0 END) AS breads, SUM(CASE WHEN is_drink THEN 1 ELSE 0 END) AS drinks
    FROM lines GROUP BY 1),
  flagged AS (
    SELECT sales.*, summary.cost, summary.subtotal, summary.lines, summary.breads, summary.drinks,
      summary.breads > 0 AS has_bread, summary.drinks > 0 AS has_drink
    FROM sales LEFT JOIN summary ON sales.sale_id = summary.sale_id),
  numbered AS (SELECT *, ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY sold_on, sale_id) AS number_of_person FROM flagged)
  SELECT * FROM numbered;

CREATE VIEW people AS
  WITH people AS (SELECT * FROM stg_people),
  sales AS (SELECT * FROM sales),
  summary AS (
    SELECT person_id, COUNT(DISTINCT sale_id) AS sales, COUNT(DISTINCT sale_id) > 1 AS comes_again,
      MIN(sold_on) AS first_on, MAX(sold_on) AS last_on, SUM(total) AS spent
    FROM sales GROUP BY 1)
  SELECT people.*, summary.sales, summary.first_on, summary.last_on, summary.spent,
    CASE WHEN summary.comes_again THEN 'returning' ELSE 'new' END AS kind
  FROM people LEFT JOIN summary ON people.person_id = summary.person_id;

CREATE VIEW paid AS
  WITH payments AS (SELECT * FROM stg_payments),
  by_sale AS (
    SELECT sale_id, SUM(CASE WHEN way = 'card' THEN amount ELSE 0 END) AS by_card,
      SUM(CASE WHEN way = 'coupon' THEN amount ELSE 0 END) AS by_coupon, SUM(amount) AS total
    FROM payments GROUP BY sale_id)
  SELECT s.sale_id, s.person_id, s.sold_on, s.state, by_sale.by_card, by_sale.by_coupon, by_sale.total
  FROM stg_sales s LEFT JOIN by_sale ON s.sale_id = by_sale.sale_id;

CREATE VIEW values_of_people AS
  WITH payments AS (
    SELECT sales.person_id, SUM(amount) AS value
    FROM stg_payments AS payments LEFT JOIN stg_sales AS sales ON payments.sale_id = sales.sale_id
    GROUP BY sales.person_id)
  SELECT p.person_id, p.first_name, payments.value FROM stg_people p LEFT JOIN payments ON p.person_id = payments.person_id;
