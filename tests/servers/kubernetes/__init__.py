"""A real Kubernetes API for tests, with a kubelet that runs pods as processes of this host."""
