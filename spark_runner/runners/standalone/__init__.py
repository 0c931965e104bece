"""Spark standalone clusters: drivers on this host (client mode) or on a node (cluster mode)."""
