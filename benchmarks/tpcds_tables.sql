CREATE TABLE call_center (
  cc_call_center_sk BIGINT NOT NULL, cc_call_center_id STRING, cc_rec_start_date DATE, cc_rec_end_date DATE,
  cc_closed_date_sk BIGINT REFERENCES date_dim, cc_open_date_sk BIGINT REFERENCES date_dim, cc_name STRING,
  cc_class STRING, cc_employees BIGINT, cc_sq_ft BIGINT, cc_hours STRING, cc_manager STRING, cc_mkt_id BIGINT,
  cc_mkt_class STRING, cc_mkt_desc STRING, cc_market_manager STRING, cc_division BIGINT, cc_division_name STRING,
  cc_company BIGINT, cc_company_name STRING, cc_street_number STRING, cc_street_name STRING,
  cc_street_type STRING, cc_suite_number STRING, cc_city STRING, cc_county STRING, cc_state STRING, cc_zip STRING,
  cc_country STRING, cc_gmt_offset DECIMAL(5,2), cc_tax_percentage DECIMAL(5,2), PRIMARY KEY (cc_call_center_sk)
);
CREATE TABLE catalog_page (
  cp_catalog_page_sk BIGINT NOT NULL, cp_catalog_page_id STRING, cp_start_date_sk BIGINT REFERENCES date_dim,
  cp_end_date_sk BIGINT REFERENCES date_dim, cp_department STRING, cp_catalog_number BIGINT,
  cp_catalog_page_number BIGINT, cp_description STRING, cp_type STRING, PRIMARY KEY (cp_catalog_page_sk)
);
CREATE TABLE catalog_returns (
  cr_returned_date_sk BIGINT REFERENCES date_dim, cr_returned_time_sk BIGINT REFERENCES time_dim,
  cr_item_sk BIGINT NOT NULL REFERENCES item, cr_refunded_customer_sk BIGINT REFERENCES customer,
  cr_refunded_cdemo_sk BIGINT REFERENCES customer_demographics,
  cr_refunded_hdemo_sk BIGINT REFERENCES household_demographics,
  cr_refunded_addr_sk BIGINT REFERENCES customer_address, cr_returning_customer_sk BIGINT REFERENCES customer,
  cr_returning_cdemo_sk BIGINT REFERENCES customer_demographics,
  cr_returning_hdemo_sk BIGINT REFERENCES household_demographics,
  cr_returning_addr_sk BIGINT REFERENCES customer_address, cr_call_center_sk BIGINT REFERENCES call_center,
  cr_catalog_page_sk BIGINT REFERENCES catalog_page, cr_ship_mode_sk BIGINT REFERENCES ship_mode,
  cr_warehouse_sk BIGINT REFERENCES warehouse, cr_reason_sk BIGINT REFERENCES reason,
  cr_order_number BIGINT NOT NULL, cr_return_quantity BIGINT, cr_return_amount DECIMAL(7,2),
  cr_return_tax DECIMAL(7,2), cr_return_amt_inc_tax DECIMAL(7,2), cr_fee DECIMAL(7,2),
  cr_return_ship_cost DECIMAL(7,2), cr_refunded_cash DECIMAL(7,2), cr_reversed_charge DECIMAL(7,2),
  cr_store_credit DECIMAL(7,2), cr_net_loss DECIMAL(7,2),
  FOREIGN KEY (cr_item_sk, cr_order_number) REFERENCES catalog_sales, PRIMARY KEY (cr_item_sk, cr_order_number)
);
CREATE TABLE catalog_sales (
  cs_sold_date_sk BIGINT REFERENCES date_dim, cs_sold_time_sk BIGINT REFERENCES time_dim,
  cs_ship_date_sk BIGINT REFERENCES date_dim, cs_bill_customer_sk BIGINT REFERENCES customer,
  cs_bill_cdemo_sk BIGINT REFERENCES customer_demographics,
  cs_bill_hdemo_sk BIGINT REFERENCES household_demographics, cs_bill_addr_sk BIGINT REFERENCES customer_address,
  cs_ship_customer_sk BIGINT REFERENCES customer, cs_ship_cdemo_sk BIGINT REFERENCES customer_demographics,
  cs_ship_hdemo_sk BIGINT REFERENCES household_demographics, cs_ship_addr_sk BIGINT REFERENCES customer_address,
  cs_call_center_sk BIGINT REFERENCES call_center, cs_catalog_page_sk BIGINT REFERENCES catalog_page,
  cs_ship_mode_sk BIGINT REFERENCES ship_mode, cs_warehouse_sk BIGINT REFERENCES warehouse,
  cs_item_sk BIGINT NOT NULL REFERENCES item, cs_promo_sk BIGINT REFERENCES promotion,
  cs_order_number BIGINT NOT NULL, cs_quantity BIGINT, cs_wholesale_cost DECIMAL(7,2), cs_list_price DECIMAL(7,2),
  cs_sales_price DECIMAL(7,2), cs_ext_discount_amt DECIMAL(7,2), cs_ext_sales_price DECIMAL(7,2),
  cs_ext_wholesale_cost DECIMAL(7,2), cs_ext_list_price DECIMAL(7,2), cs_ext_tax DECIMAL(7,2),
  cs_coupon_amt DECIMAL(7,2), cs_ext_ship_cost DECIMAL(7,2), cs_net_paid DECIMAL(7,2),
  cs_net_paid_inc_tax DECIMAL(7,2), cs_net_paid_inc_ship DECIMAL(7,2), cs_net_paid_inc_ship_tax DECIMAL(7,2),
  cs_net_profit DECIMAL(7,2), PRIMARY KEY (cs_item_sk, cs_order_number)
);
CREATE TABLE customer (
  c_customer_sk BIGINT NOT NULL, c_customer_id STRING, c_current_cdemo_sk BIGINT REFERENCES customer_demographics,
  c_current_hdemo_sk BIGINT REFERENCES household_demographics,
  c_current_addr_sk BIGINT REFERENCES customer_address, c_first_shipto_date_sk BIGINT REFERENCES date_dim,
  c_first_sales_date_sk BIGINT REFERENCES date_dim, c_salutation STRING, c_first_name STRING, c_last_name STRING,
  c_preferred_cust_flag STRING, c_birth_day BIGINT, c_birth_month BIGINT, c_birth_year BIGINT,
  c_birth_country STRING, c_login STRING, c_email_address STRING, c_last_review_date_sk INT REFERENCES date_dim,
  PRIMARY KEY (c_customer_sk)
);
CREATE TABLE customer_address (
  ca_address_sk BIGINT NOT NULL, ca_address_id STRING, ca_street_number STRING, ca_street_name STRING,
  ca_street_type STRING, ca_suite_number STRING, ca_city STRING, ca_county STRING, ca_state STRING, ca_zip STRING,
  ca_country STRING, ca_gmt_offset DECIMAL(5,2), ca_location_type STRING, PRIMARY KEY (ca_address_sk)
);
CREATE TABLE customer_demographics (
  cd_demo_sk BIGINT NOT NULL, cd_gender STRING, cd_marital_status STRING, cd_education_status STRING,
  cd_purchase_estimate BIGINT, cd_credit_rating STRING, cd_dep_count BIGINT, cd_dep_employed_count BIGINT,
  cd_dep_college_count INT, PRIMARY KEY (cd_demo_sk)
);
CREATE TABLE date_dim (
  d_date_sk BIGINT NOT NULL, d_date_id STRING, d_date DATE, d_month_seq BIGINT, d_week_seq BIGINT,
  d_quarter_seq BIGINT, d_year BIGINT, d_dow BIGINT, d_moy BIGINT, d_dom BIGINT, d_qoy BIGINT, d_fy_year BIGINT,
  d_fy_quarter_seq BIGINT, d_fy_week_seq BIGINT, d_day_name STRING, d_quarter_name STRING, d_holiday STRING,
  d_weekend STRING, d_following_holiday STRING, d_first_dom BIGINT, d_last_dom BIGINT, d_same_day_ly BIGINT,
  d_same_day_lq BIGINT, d_current_day STRING, d_current_week STRING, d_current_month STRING,
  d_current_quarter STRING, d_current_year STRING, PRIMARY KEY (d_date_sk)
);
CREATE TABLE household_demographics (
  hd_demo_sk BIGINT NOT NULL, hd_income_band_sk BIGINT REFERENCES income_band, hd_buy_potential STRING,
  hd_dep_count BIGINT, hd_vehicle_count INT, PRIMARY KEY (hd_demo_sk)
);
CREATE TABLE income_band (
  ib_income_band_sk BIGINT NOT NULL, ib_lower_bound BIGINT, ib_upper_bound INT, PRIMARY KEY (ib_income_band_sk)
);
CREATE TABLE inventory (
  inv_date_sk BIGINT NOT NULL REFERENCES date_dim, inv_item_sk BIGINT NOT NULL REFERENCES item,
  inv_warehouse_sk BIGINT NOT NULL REFERENCES warehouse, inv_quantity_on_hand INT,
  PRIMARY KEY (inv_date_sk, inv_item_sk, inv_warehouse_sk)
);
CREATE TABLE item (
  i_item_sk BIGINT NOT NULL, i_item_id STRING, i_rec_start_date DATE, i_rec_end_date DATE, i_item_desc STRING,
  i_current_price DECIMAL(7,2), i_wholesale_cost DECIMAL(7,2), i_brand_id BIGINT, i_brand STRING,
  i_class_id BIGINT, i_class STRING, i_category_id BIGINT, i_category STRING, i_manufact_id BIGINT,
  i_manufact STRING, i_size STRING, i_formulation STRING, i_color STRING, i_units STRING, i_container STRING,
  i_manager_id BIGINT, i_product_name STRING, PRIMARY KEY (i_item_sk)
);
CREATE TABLE promotion (
  p_promo_sk BIGINT NOT NULL, p_promo_id STRING, p_start_date_sk BIGINT REFERENCES date_dim,
  p_end_date_sk BIGINT REFERENCES date_dim, p_item_sk BIGINT REFERENCES item, p_cost DECIMAL(15,2),
  p_response_target BIGINT, p_promo_name STRING, p_channel_dmail STRING, p_channel_email STRING,
  p_channel_catalog STRING, p_channel_tv STRING, p_channel_radio STRING, p_channel_press STRING,
  p_channel_event STRING, p_channel_demo STRING, p_channel_details STRING, p_purpose STRING,
  p_discount_active STRING, PRIMARY KEY (p_promo_sk)
);
CREATE TABLE reason (
  r_reason_sk BIGINT NOT NULL, r_reason_id STRING, r_reason_desc STRING, PRIMARY KEY (r_reason_sk)
);
CREATE TABLE ship_mode (
  sm_ship_mode_sk BIGINT NOT NULL, sm_ship_mode_id STRING, sm_type STRING, sm_code STRING, sm_carrier STRING,
  sm_contract STRING, PRIMARY KEY (sm_ship_mode_sk)
);
CREATE TABLE store (
  s_store_sk BIGINT NOT NULL, s_store_id STRING, s_rec_start_date DATE, s_rec_end_date DATE,
  s_closed_date_sk BIGINT REFERENCES date_dim, s_store_name STRING, s_number_employees BIGINT,
  s_floor_space BIGINT, s_hours STRING, s_manager STRING, s_market_id BIGINT, s_geography_class STRING,
  s_market_desc STRING, s_market_manager STRING, s_division_id BIGINT, s_division_name STRING,
  s_company_id BIGINT, s_company_name STRING, s_street_number STRING, s_street_name STRING, s_street_type STRING,
  s_suite_number STRING, s_city STRING, s_county STRING, s_state STRING, s_zip STRING, s_country STRING,
  s_gmt_offset DECIMAL(5,2), s_tax_percentage DECIMAL(5,2), PRIMARY KEY (s_store_sk)
);
CREATE TABLE store_returns (
  sr_returned_date_sk BIGINT REFERENCES date_dim, sr_return_time_sk BIGINT REFERENCES time_dim,
  sr_item_sk BIGINT NOT NULL REFERENCES item, sr_customer_sk BIGINT REFERENCES customer,
  sr_cdemo_sk BIGINT REFERENCES customer_demographics, sr_hdemo_sk BIGINT REFERENCES household_demographics,
  sr_addr_sk BIGINT REFERENCES customer_address, sr_store_sk BIGINT REFERENCES store,
  sr_reason_sk BIGINT REFERENCES reason, sr_ticket_number BIGINT NOT NULL, sr_return_quantity BIGINT,
  sr_return_amt DECIMAL(7,2), sr_return_tax DECIMAL(7,2), sr_return_amt_inc_tax DECIMAL(7,2), sr_fee DECIMAL(7,2),
  sr_return_ship_cost DECIMAL(7,2), sr_refunded_cash DECIMAL(7,2), sr_reversed_charge DECIMAL(7,2),
  sr_store_credit DECIMAL(7,2), sr_net_loss DECIMAL(7,2),
  FOREIGN KEY (sr_item_sk, sr_ticket_number) REFERENCES store_sales, PRIMARY KEY (sr_item_sk, sr_ticket_number)
);
CREATE TABLE store_sales (
  ss_sold_date_sk BIGINT REFERENCES date_dim, ss_sold_time_sk BIGINT REFERENCES time_dim,
  ss_item_sk BIGINT NOT NULL REFERENCES item, ss_customer_sk BIGINT REFERENCES customer,
  ss_cdemo_sk BIGINT REFERENCES customer_demographics, ss_hdemo_sk BIGINT REFERENCES household_demographics,
  ss_addr_sk BIGINT REFERENCES customer_address, ss_store_sk BIGINT REFERENCES store,
  ss_promo_sk BIGINT REFERENCES promotion, ss_ticket_number BIGINT NOT NULL, ss_quantity BIGINT,
  ss_wholesale_cost DECIMAL(7,2), ss_list_price DECIMAL(7,2), ss_sales_price DECIMAL(7,2),
  ss_ext_discount_amt DECIMAL(7,2), ss_ext_sales_price DECIMAL(7,2), ss_ext_wholesale_cost DECIMAL(7,2),
  ss_ext_list_price DECIMAL(7,2), ss_ext_tax DECIMAL(7,2), ss_coupon_amt DECIMAL(7,2), ss_net_paid DECIMAL(7,2),
  ss_net_paid_inc_tax DECIMAL(7,2), ss_net_profit DECIMAL(7,2), PRIMARY KEY (ss_item_sk, ss_ticket_number)
);
CREATE TABLE time_dim (
  t_time_sk BIGINT NOT NULL, t_time_id STRING, t_time BIGINT, t_hour BIGINT, t_minute BIGINT, t_second BIGINT,
  t_am_pm STRING, t_shift STRING, t_sub_shift STRING, t_meal_time STRING, PRIMARY KEY (t_time_sk)
);
CREATE TABLE warehouse (
  w_warehouse_sk BIGINT NOT NULL, w_warehouse_id STRING, w_warehouse_name STRING, w_warehouse_sq_ft BIGINT,
  w_street_number STRING, w_street_name STRING, w_street_type STRING, w_suite_number STRING, w_city STRING,
  w_county STRING, w_state STRING, w_zip STRING, w_country STRING, w_gmt_offset DECIMAL(5,2),
  PRIMARY KEY (w_warehouse_sk)
);
CREATE TABLE web_page (
  wp_web_page_sk BIGINT NOT NULL, wp_web_page_id STRING, wp_rec_start_date DATE, wp_rec_end_date DATE,
  wp_creation_date_sk BIGINT REFERENCES date_dim, wp_access_date_sk BIGINT REFERENCES date_dim,
  wp_autogen_flag STRING, wp_customer_sk BIGINT REFERENCES customer, wp_url STRING, wp_type STRING,
  wp_char_count BIGINT, wp_link_count BIGINT, wp_image_count BIGINT, wp_max_ad_count INT,
  PRIMARY KEY (wp_web_page_sk)
);
CREATE TABLE web_returns (
  wr_returned_date_sk BIGINT REFERENCES date_dim, wr_returned_time_sk BIGINT REFERENCES time_dim,
  wr_item_sk BIGINT NOT NULL REFERENCES item, wr_refunded_customer_sk BIGINT REFERENCES customer,
  wr_refunded_cdemo_sk BIGINT REFERENCES customer_demographics,
  wr_refunded_hdemo_sk BIGINT REFERENCES household_demographics,
  wr_refunded_addr_sk BIGINT REFERENCES customer_address, wr_returning_customer_sk BIGINT REFERENCES customer,
  wr_returning_cdemo_sk BIGINT REFERENCES customer_demographics,
  wr_returning_hdemo_sk BIGINT REFERENCES household_demographics,
  wr_returning_addr_sk BIGINT REFERENCES customer_address, wr_web_page_sk BIGINT REFERENCES web_page,
  wr_reason_sk BIGINT REFERENCES reason, wr_order_number BIGINT NOT NULL, wr_return_quantity BIGINT,
  wr_return_amt DECIMAL(7,2), wr_return_tax DECIMAL(7,2), wr_return_amt_inc_tax DECIMAL(7,2), wr_fee DECIMAL(7,2),
  wr_return_ship_cost DECIMAL(7,2), wr_refunded_cash DECIMAL(7,2), wr_reversed_charge DECIMAL(7,2),
  wr_account_credit DECIMAL(7,2), wr_net_loss DECIMAL(7,2),
  FOREIGN KEY (wr_item_sk, wr_order_number) REFERENCES web_sales, PRIMARY KEY (wr_item_sk, wr_order_number)
);
CREATE TABLE web_sales (
  ws_sold_date_sk BIGINT REFERENCES date_dim, ws_sold_time_sk BIGINT REFERENCES time_dim,
  ws_ship_date_sk BIGINT REFERENCES date_dim, ws_item_sk BIGINT NOT NULL REFERENCES item,
  ws_bill_customer_sk BIGINT REFERENCES customer, ws_bill_cdemo_sk BIGINT REFERENCES customer_demographics,
  ws_bill_hdemo_sk BIGINT REFERENCES household_demographics, ws_bill_addr_sk BIGINT REFERENCES customer_address,
  ws_ship_customer_sk BIGINT REFERENCES customer, ws_ship_cdemo_sk BIGINT REFERENCES customer_demographics,
  ws_ship_hdemo_sk BIGINT REFERENCES household_demographics, ws_ship_addr_sk BIGINT REFERENCES customer_address,
  ws_web_page_sk BIGINT REFERENCES web_page, ws_web_site_sk BIGINT REFERENCES web_site,
  ws_ship_mode_sk BIGINT REFERENCES ship_mode, ws_warehouse_sk BIGINT REFERENCES warehouse,
  ws_promo_sk BIGINT REFERENCES promotion, ws_order_number BIGINT NOT NULL, ws_quantity BIGINT,
  ws_wholesale_cost DECIMAL(7,2), ws_list_price DECIMAL(7,2), ws_sales_price DECIMAL(7,2),
  ws_ext_discount_amt DECIMAL(7,2), ws_ext_sales_price DECIMAL(7,2), ws_ext_wholesale_cost DECIMAL(7,2),
  ws_ext_list_price DECIMAL(7,2), ws_ext_tax DECIMAL(7,2), ws_coupon_amt DECIMAL(7,2),
  ws_ext_ship_cost DECIMAL(7,2), ws_net_paid DECIMAL(7,2), ws_net_paid_inc_tax DECIMAL(7,2),
  ws_net_paid_inc_ship DECIMAL(7,2), ws_net_paid_inc_ship_tax DECIMAL(7,2), ws_net_profit DECIMAL(7,2),
  PRIMARY KEY (ws_item_sk, ws_order_number)
);
CREATE TABLE web_site (
  web_site_sk BIGINT NOT NULL, web_site_id STRING, web_rec_start_date DATE, web_rec_end_date DATE,
  web_name STRING, web_open_date_sk BIGINT REFERENCES date_dim, web_close_date_sk BIGINT REFERENCES date_dim,
  web_class STRING, web_manager STRING, web_mkt_id BIGINT, web_mkt_class STRING, web_mkt_desc STRING,
  web_market_manager STRING, web_company_id BIGINT, web_company_name STRING, web_street_number STRING,
  web_street_name STRING, web_street_type STRING, web_suite_number STRING, web_city STRING, web_county STRING,
  web_state STRING, web_zip STRING, web_country STRING, web_gmt_offset DECIMAL(5,2),
  web_tax_percentage DECIMAL(5,2), PRIMARY KEY (web_site_sk)
);
