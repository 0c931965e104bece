"""From the spool to where logs are looked for: batches, retries, checkpoints."""
