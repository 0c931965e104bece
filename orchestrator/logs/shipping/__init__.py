"""Shipping of logs from the spool to a target: batches, retries, checkpoints."""
