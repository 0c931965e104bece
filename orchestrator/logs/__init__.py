"""Logging: what the process says of itself. A leaf: it imports nothing else of ours."""
