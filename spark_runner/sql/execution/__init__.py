"""Execution of a plan inside Spark."""
