"""Rows that clients fetch over HTTP."""
