"""What monitoring reads of one process: metrics, and whether it lives and is ready."""
