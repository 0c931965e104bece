"""Spark standalone clusters: each driver runs on this host (client mode) or on a node (cluster mode)."""
