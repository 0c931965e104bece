"""Rows on standard output."""
