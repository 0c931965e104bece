"""Health checks of a cluster: each finding is explained and, if that is safe, fixed."""
