"""Periodic jobs: the nodes in which they are registered, and the leader's duty to enqueue their runs."""
