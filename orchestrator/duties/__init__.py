"""What the leader does for all workers, one duty per file."""
