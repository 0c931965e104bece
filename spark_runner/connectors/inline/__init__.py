"""Rows in the script itself."""
