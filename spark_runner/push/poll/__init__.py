"""Rows that a target fetches: one task serves them over HTTP, page by page."""
