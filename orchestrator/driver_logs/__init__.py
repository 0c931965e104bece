"""What drivers and their Spark write becomes documents in the spool, each byte of it once."""
