"""Kubernetes: drivers that are pods."""
