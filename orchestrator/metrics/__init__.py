"""Metrics and probes of a process, for Prometheus and Kubernetes."""
