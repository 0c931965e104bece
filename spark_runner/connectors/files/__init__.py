"""Files: Parquet, CSV, JSON, ORC and text."""
