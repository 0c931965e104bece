"""Parquet, CSV and JSON files."""
