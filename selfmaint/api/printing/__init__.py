"""What decides and maintains a view, as Spark SQL to ship with an ETL job."""
