"""Runs drivers on this host, on standalone clusters, in YARN and in Kubernetes, behind one Protocol."""
