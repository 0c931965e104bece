"""Compiles a script into a plan, with all checks that need no Spark."""
