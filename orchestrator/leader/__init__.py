"""Cluster-wide duties: the election, and one duty of the leader per file."""
