"""Rows made at a given rate, to try streams."""
