"""Kubernetes: each driver runs in a pod."""
