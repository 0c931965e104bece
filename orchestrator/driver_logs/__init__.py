"""Collects the output of drivers and their Spark as documents in the spool, and reads it in pages."""
