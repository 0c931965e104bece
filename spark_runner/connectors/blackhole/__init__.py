"""Rows that are counted and dropped."""
