"""What an ETL job calls: load a warehouse, check an update, maintain the views, write them."""
